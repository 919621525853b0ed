# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire run` on the kernel `run`: which mappings of which programs really get the flag, and
which programs are lazy, or have CPUs that note what they use.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ceasefire.paths import build_dir
from ceasefire.vm import GuestSpec, run_guest
from ceasefire.vm.spec import parse_disk

pytestmark = pytest.mark.guest

Runner = Callable[..., "subprocess.CompletedProcess[str]"]
# More than ten starts of Python on an emulated CPU.
LIMIT = 2400.0
MAPPED = "/run/disk/0/mapped"
SHARERS = "/sys/kernel/mm/ceasefire/sharers/enabled"
MORSELS = "/sys/kernel/mm/ceasefire/morsel/enabled"
# Asks for sharers while it has a second thread, and becomes the command.
THREADED = """
import os, sys, threading
sys.path.insert(0, sys.argv[1])
from ceasefire.launch import prctl
threading.Thread(target=threading.Event().wait, daemon=True).start()
prctl.set_sharers(on=True)
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
def program(data: Path, tmp_path: Path) -> Path:
    """Build the program that tells what became of its mapping, statically."""
    path = tmp_path / "recycles"
    subprocess.run(["cc", "-static", data / "recycles.c", "-o", path], check=True)
    return path


def shell(lines: list[str]) -> list[str]:
    """Run lines of shell in a guest and return what each printed, with its status."""
    # The home of root in the guest need not be ours.
    build = ("CEASEFIRE_BUILD", str(build_dir()))
    spec = GuestSpec(timeout=LIMIT, disks=(parse_disk("brd-ext4:32M"),), environment=(build,))
    script = "\n".join(f'{{ {line}; }} 2>&1; echo "= $?"' for line in lines)
    result = run_guest(spec, ["sh", "-c", script], name="pytest")
    assert result.check() == 0, result.stderr.decode()
    found = [""]
    for line in result.stdout.decode().splitlines():
        if line.startswith("= "):
            found[-1] += line[1:]
            found.append("")
        else:
            found[-1] += f"{line}\n"
    return found[:-1]


def test_which_programs_and_mappings_have_what_they_ask_for(
    root: Path, started: str, data: Path, program: Path
) -> None:
    run = f"{started} run"
    dynamic = program.with_name("dynamic")
    subprocess.run(["cc", data / "recycles.c", "-o", dynamic], check=True)
    setuid = "/run/disk/0/setuid"
    asks = program.with_name("wishes")
    subprocess.run(["cc", data / "wishes.c", "-o", asks], check=True)
    threaded = program.with_name("threaded.py")
    threaded.write_text(THREADED)
    cases = {
        # Nobody has used it yet.
        "cat /sys/kernel/mm/ceasefire/fpr/tag_bytes": "0\n 0",
        f"{program} {MAPPED} 8192": "plain\n 0",
        f"{root}/ceasefire run -- {program} {MAPPED} 8192": "recycles\n 0",
        f"{run} -v -- {program} {MAPPED} 8192": (
            "ceasefire run: the kernel treats the mappings of all files\nrecycles\n 0"
        ),
        f"{run} --max-size 8K -- {program} {MAPPED} 8192": "recycles\n 0",
        f"{run} --max-size 4K -- {program} {MAPPED} 8192": "plain\n 0",
        # What it starts, too.
        f"{run} -- sh -c 'sh -c \"{program} {MAPPED} 8192\"'": "recycles\n 0",
        f"{run} -- {dynamic} {MAPPED} 8192": "recycles\n 0",
        f"{run} --path '*/mapped' -- {dynamic} {MAPPED} 8192": "recycles\n 0",
        f"{run} --path '*/other' -- {dynamic} {MAPPED} 8192": "plain\n 0",
        f"{run} --path '*' -- {program} {MAPPED} 8192": (
            f"ceasefire run: {program} is statically linked, so no library can be preloaded: "
            "leave --path and --exclude out\n 2"
        ),
        # Somebody else's rights: nobody's, since this is root.
        f"cp {program} {setuid} && chown nobody {setuid} && chmod 4755 {setuid} "
        f"&& chmod 777 /run/disk/0 && chmod 666 {MAPPED} "
        f"&& {run} -- {setuid} {MAPPED} 8192": (
            f"ceasefire run: {setuid} gains privileges when it starts, so the kernel clears FPR: "
            "start `ceasefire run` with these privileges instead\nplain\n 0"
        ),
        # The wishes of whole processes, and of those that they start.
        f"{asks}": "0 0\n 0",
        f"{run} --sharers -- sh -c '{asks}'": "0 1\n 0",
        f"{run} -v --mode latr+sharers -- {asks}": (
            "ceasefire run: munmap is lazy, flushes go to CPUs that have used what is flushed\n"
            "1 1\n 0"
        ),
        f"{run} --mode fpr+sharers -- sh -c '{asks}; {program} {MAPPED} 8192'": (
            "0 1\nrecycles\n 0"
        ),
        f"{run} --sharers -- {run} --mode off -- {asks}": "0 0\n 0",
        # A process of several threads may not have it, but what it executes.
        f"{sys.executable} -I -B {threaded} {root}/cli {asks}": "0 1\n 0",
        f"echo always >{SHARERS}; {asks}": "0 1\n 0",
        f"{run} --mode off -- {asks}": (
            f"ceasefire run: all programs have Sharers here: echo ask > {SHARERS}\n 77"
        ),
        f"echo never >{SHARERS}; {run} --sharers -- {asks}": (
            f"ceasefire run: Sharers is switched off: echo ask > {SHARERS}\n 77"
        ),
        f"{run} --force --sharers -- {asks}": "0 0\n 0",
        f"echo ask >{SHARERS}": " 0",
        "echo 0 >/sys/kernel/mm/ceasefire/fpr/enabled": " 0",
        f"{run} -v -- {program} {MAPPED} 4096": (
            "ceasefire run: FPR is switched off: echo 1 > /sys/kernel/mm/ceasefire/fpr/enabled\n 77"
        ),
    }
    found = shell(list(cases))
    assert dict(zip(cases, found, strict=True)) == cases


def test_shared_memory_has_one_set_of_page_tables(started: str, data: Path, tmp_path: Path) -> None:
    """A program that shares memory with its children, unchanged; and where it cannot be morsels."""
    program = tmp_path / "shares"
    subprocess.run(["cc", data / "shares.c", "-o", program], check=True)
    run = f"{started} run --mode off"
    size = (64 << 20) + 1
    limit = "/sys/kernel/mm/ceasefire/morsel/limit"
    found = shell(
        [
            f"{program} {size}",
            f"{run} --shared-tables -- {program} {size}",
            f"{run} --shared-tables=65M -- {program} {size}",
            f"read old <{limit}; echo 1000 >{limit}",
            f"{run} --shared-tables -- {program} {size}",
            # A file may not be so large, which other shared memory does not know.
            f"echo $old >{limit}; (ulimit -f 100; {run} --shared-tables -- {program} {size})",
            f"echo never >{MORSELS}",
            f"{run} --shared-tables -- {program} {size}",
            f"{run} --force --shared-tables -- {program} {size}",
            f"echo ask >{MORSELS}; cat /sys/kernel/mm/ceasefire/morsel/pages",
        ]
    )
    plain, shared, too_small, _, no_room, no_file, _, off, forced, left = found
    mapped = (plain, too_small, no_room, no_file, forced)
    assert all(text.endswith(" 0") for text in (shared, *mapped)), found
    assert "/memfd:shared (deleted)" in shared and "morsel" not in plain
    # 64 MiB of entries are 128 kB; the child of the morsel has none of them.
    assert page_tables(plain) - page_tables(shared) >= 100, found
    for text in mapped:
        assert "/dev/zero (deleted)" in text
    assert off.endswith(" 77") and "morsels are switched off" in off
    assert left.split()[0] == "0"


def page_tables(text: str) -> int:
    """Return the kB of page tables that a process has printed."""
    return int(text.split("VmPTE:")[1].split(maxsplit=1)[0])


@pytest.mark.long
def test_go_program_recycles(root: Path, data: Path, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    program = tmp_path / "recycles-go"
    variables = {"CGO_ENABLED": "0", "GOCACHE": str(tmp_path / "cache"), "GOTOOLCHAIN": "local"}
    subprocess.run(
        [go, "build", "-o", program, data / "recycles.go"],
        env={**os.environ, **variables},
        timeout=LIMIT,
        check=True,
    )
    command = f"{program} {MAPPED} 8192"
    assert shell([command, f"{root}/ceasefire run -- {command}"]) == ["plain\n 0", "recycles\n 0"]
