# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire morsel` on a kernel that has them."""

import json

import pytest

from ceasefire.paths import build_dir
from ceasefire.vm import GuestSpec, run_guest

pytestmark = pytest.mark.guest

LIMIT = 1200.0
SCRIPT = r"""
export C="$CEASEFIRE morsel"
$C create --populate pool 8M -- sh -c '
  $C stat --json $$:$MORSEL_FD
  $C depopulate $$:$MORSEL_FD 0:1M 4M:512K
  $C populate $$:$MORSEL_FD 0:4K
  $C list --json
  $C depopulate --async $$:$MORSEL_FD 6M:1M; sync /proc/$$/fd/$MORSEL_FD
  $C stat --json $$:$MORSEL_FD
  $C populate $$:$MORSEL_FD 8M:4K; echo "behind $?"
  $C destroy $$:$MORSEL_FD; $C destroy $$:$MORSEL_FD; echo "twice $?"
  exec 9</proc/$$/fd/$MORSEL_FD
'
echo "ended $?"
$C create --lazy --populate easy 4M -- sh -c '
  $C depopulate --lazy $$:$MORSEL_FD 0:1M; $C stat --json $$:$MORSEL_FD >/run/easy
  cat /run/easy | sed s/^/lazy:/; echo "lazily $?"
  sed -n "s/morsel_lazy_pages/given up/p" /proc/vmstat
'
$C create --page 2M --populate large 6M -- sh -c '$C stat --json $$:$MORSEL_FD | sed s/^/large:/'
$C create pool 4M -- sh -c 'printf before 1<>/proc/$$/fd/$MORSEL_FD; O=$$ F=$MORSEL_FD
  $C copy $$:$MORSEL_FD copy -- sh -c "
    printf behind 1<>/proc/$O/fd/$F
    head -c 6 /proc/\$\$/fd/\$MORSEL_FD | sed s/^/copied:/
    $C stat --json \$\$:\$MORSEL_FD | sed s/^/copy:/"
  head -c 6 /proc/$$/fd/$MORSEL_FD | sed s/^/origin:/'
echo; $C create --lazy easy 4M -- sh -c '$C copy $$:$MORSEL_FD x -- true; echo "copy lazy $?"'
$C create --populate strict 4M -- sh -c '$C depopulate --lazy $$:$MORSEL_FD 0:1M; echo "strict $?"'
$C create pool 1024M --unit 2M -- true; echo "option behind $?"
$C create --unit 2M pool 1024M -- true; echo "units $?"
$C create pool 4M -- /nosuch; echo "missing $?"
$C list
$CEASEFIRE doctor | grep morsels
mkdir /run/morsels && mount -t morsel test /run/morsels
P=/run/morsels/pool
$C create --mode 640 --populate $P 4M; echo "named $?"
stat -c 'file %a %s' $P
$C depopulate $P 0:1M
sh -c "exec 9<>$P; $C list --json; $C stat --json $P; true"
$C create $P 4M; echo "exists $?"
$C create --unit 2M $P.large 2G; echo "large $?"
ls /run/morsels
$C copy --mode 600 $P $P.before; echo "copied $?"; stat -c 'copy %a %s' $P.before
$C stat --json $P.before | sed s/^/copy:/
$C copy $P $P.before; echo "copied again $?"
$C copy $P other -- true; echo "other place $?"
$C destroy $P; rm $P $P.before; $C list
umount /run/morsels; echo "unmounted $?"
"""


@pytest.fixture(scope="module")
def lines(started: str) -> list[str]:
    """Run everything in one guest and return what it printed."""
    spec = GuestSpec(timeout=LIMIT, environment=(("CEASEFIRE_BUILD", str(build_dir())),))
    script = f'exec 2>&1\nCEASEFIRE="{started}"\n{SCRIPT}'
    result = run_guest(spec, ["sh", "-c", script], name="test-morsel")
    assert result.check() == 0, result.stderr.decode()
    return result.stdout.decode().splitlines()


def test_a_command_has_a_new_one(lines: list[str]) -> None:
    full, later, left = [json.loads(line) for line in lines if line.startswith("{")][:3]
    assert full["name"] == "pool" and full["size"] == 8 << 20 and full["unit"] == 2 << 20
    assert full["memory"] == 8 << 20 and full["mappings"] == 0 and len(full["holders"]) == 1
    assert later["memory"] == (8 << 20) - (1 << 20) - (512 << 10) + 4096
    # sync waits for what --async has left to the kernel.
    assert left["memory"] == later["memory"] - (1 << 20)
    # The command, and the shell that it has started.
    assert full["holders"][0] in later["holders"]
    assert "ended 0" in lines


def test_pages_are_as_large_as_asked_for(lines: list[str]) -> None:
    text = next(line for line in lines if line.startswith("large:"))
    large = json.loads(text.removeprefix("large:"))
    assert (large["page"], large["unit"]) == (2 << 20, 1 << 30)
    assert (large["size"], large["memory"]) == (6 << 20, 6 << 20)


def test_memory_is_given_up_where_that_is_allowed(lines: list[str]) -> None:
    text = next(line for line in lines if line.startswith("lazy:"))
    easy = json.loads(text.removeprefix("lazy:"))
    # What waits is free after a second, which starting the command may take.
    assert easy["memory"] - easy["pool"] == 3 << 20 and "lazily 0" in lines
    assert "given up 256" in lines
    assert "does not allow --lazy" in lines[lines.index("strict 1") - 1]


def test_a_copy_is_what_there_was(lines: list[str]) -> None:
    # head prints no end of line.
    assert any("copied:before" in line for line in lines)
    assert any("origin:behind" in line for line in lines)
    copy, named = [
        json.loads(text) for line in lines for _, _, text in [line.partition("copy:")] if text
    ]
    # A page is its own since the origin was written to; or the origin's is.
    assert copy["name"] == "copy" and copy["size"] == 4 << 20 and copy["memory"] <= 4096
    assert "copied 0" in lines and f"copy 600 {4 << 20}" in lines
    assert named["name"] == "/run/morsels/pool.before" and not named["memory"]
    assert "something with this name" in lines[lines.index("copied again 1") - 1]
    assert "only those with pages of 4K and without --lazy" in lines[lines.index("copy lazy 1") - 1]
    assert "different file systems" in lines[lines.index("other place 1") - 1]


def test_what_cannot_be_is_one_line(lines: list[str]) -> None:
    assert "ends behind the morsel" in lines[lines.index("behind 2") - 1]
    assert "it was destroyed" in lines[lines.index("twice 1") - 1]
    assert "options come before the name" in lines[lines.index("option behind 2") - 1]
    assert "at most 511 units" in lines[lines.index("units 1") - 1]
    assert "command not found" in lines[lines.index("missing 127") - 1]


def test_one_with_a_name_stays(lines: list[str]) -> None:
    listed, one = [json.loads(line) for line in lines if line.startswith("{")][3:]
    assert "named 0" in lines and f"file 640 {4 << 20}" in lines
    assert listed["name"] == one["name"] == "/run/morsels/pool"
    assert listed["memory"] == one["memory"] == 3 << 20
    assert len(listed["holders"]) == 1 and listed["holders"] == one["holders"]
    assert "something with this name" in lines[lines.index("exists 1") - 1]
    assert "at most 511 units" in lines[lines.index("large 1") - 1]
    # What cannot have its size has no name, either.
    assert lines[lines.index("large 1") + 1] == "pool"
    assert "unmounted 0" in lines


def test_nothing_is_left(lines: list[str]) -> None:
    assert lines.count("no morsels that you may see") == 2


def test_doctor_knows_them(lines: list[str]) -> None:
    assert any("morsels" in line and "on for programs that ask" in line for line in lines)
