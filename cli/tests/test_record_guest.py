# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire record` and `ceasefire advise` on the kernel `run`: what they count, and what
they leave behind. Whether the forecast comes true: test_forecast_guest.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.driver.traced import COUNTS, HOSTILE, LIMIT, build, run_shootdowns, run_traced

from ceasefire.paths import build_dir
from ceasefire.vm import GuestSpec

pytestmark = [pytest.mark.guest, pytest.mark.traced]

# Linux 6.12 warns if a task is killed (SIGKILL) while it makes a trace buffer: the allocation ends
# early (__rb_allocate_pages()). Nothing is left of it.
KILLED = r"WARNING: .* trace_rb_cpu_prepare\+"
# The program waits until its other thread runs, but that may be preempted right after: nothing is
# sent to a CPU that runs something else.
SEEN = 0.8
SCRIPT = r"""
$CEASEFIRE advise --json -o /run/page -- $PROGRAM >/run/printed
echo "status $?"
cat /run/page
$CEASEFIRE record --repeat 2 -o /run/repeated -- $PROGRAM
echo "repeated $?"
echo "twice $($CEASEFIRE advise --json -i /run/repeated)"
$CEASEFIRE record -o /run/recording -- sh -c 'kill -TERM $PPID; sleep 60'
echo "ended $?"
$CEASEFIRE record -o /run/none -- /nosuch/program
echo "missing $?"
ls /run/none /sys/kernel/tracing/instances
$CEASEFIRE record -o /run/killed -- sleep 20 &
while [ -z "$(ls /sys/kernel/tracing/instances)" ]; do sleep 0.2; done
kill -KILL $!; wait $!
$CEASEFIRE record -o /run/attached -p $$ --seconds 0.2
echo "attached $?"
ls /sys/kernel/tracing/instances
"""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory, started: str) -> list[str]:
    """Run everything in one guest and return what it printed."""
    source = Path(__file__).with_name("data") / "shootdowns.c"
    return run_shootdowns(source, tmp_path_factory.mktemp("record"), started, SCRIPT)


def value(lines: list[str], name: str) -> int:
    return int(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


@pytest.fixture
def page(lines: list[str]) -> dict[str, Any]:
    found = json.loads(next(line for line in lines if line.startswith("{")))
    assert isinstance(found, dict)
    return found


def test_causes_have_the_known_numbers(lines: list[str], page: dict[str, Any]) -> None:
    assert value(lines, "status") == 0
    assert page["lost"] == 0
    causes = page["causes"]
    munmap = sum(COUNTS[name] for name in ("file", "dirty", "anonymous", "fixed"))
    assert SEEN * munmap <= causes["munmap"]["sent"] <= munmap + 5
    assert SEEN * COUNTS["file"] <= causes["munmap"]["saved"] <= COUNTS["file"] + 5
    assert SEEN * COUNTS["dontneed"] <= causes["madvise:DONTNEED"]["sent"] <= COUNTS["dontneed"] + 5
    assert SEEN * 2 * COUNTS["protect"] <= causes["mprotect"]["sent"]
    why_not = page["why_not"]
    for reason, kind in (("dirty", "dirty"), ("anonymous", "anonymous"), ("address", "fixed")):
        assert SEEN * COUNTS[kind] <= why_not[reason] <= COUNTS[kind] + 5
    # What is not saved has a reason.
    assert sum(why_not.values()) == pytest.approx(
        causes["munmap"]["sent"] - causes["munmap"]["saved"], abs=5
    )


def test_counts_are_those_of_the_kernel(page: dict[str, Any]) -> None:
    sent = page["forecast"]["sent"]
    machine = page["machine_sent"]
    assert 0.8 * machine <= sent <= machine


def test_two_runs_are_twice_one(lines: list[str], page: dict[str, Any]) -> None:
    assert value(lines, "repeated") == 0
    twice = json.loads(next(line for line in lines if line.startswith("twice "))[len("twice ") :])
    assert len(twice["runs"]) == len(twice["forecast"]["verdicts"]) == 2
    assert sum(run["sent"] for run in twice["runs"]) == twice["forecast"]["sent"]
    assert twice["forecast"]["sent"] >= 2 * SEEN * page["forecast"]["sent"]
    assert twice["forecast"]["verdicts"] == [True, True] and twice["forecast"]["agree"]
    assert twice["lost"] == 0 and "unmap_file (shootdowns.c:" in str(twice["sites"])


def test_call_sites_have_names(page: dict[str, Any]) -> None:
    frames = " ".join(str(site) for site in page["sites"])
    assert "unmap_file (shootdowns.c:" in frames


def test_nothing_is_left_behind(lines: list[str]) -> None:
    assert value(lines, "missing") == 127
    assert value(lines, "attached") == 0
    # The command, which ended by the signal that it had us pass on.
    assert value(lines, "ended") == 143
    assert not [
        line
        for line in lines
        if "ceasefire-" in line and not line.startswith(("{", "round ", "twice "))
    ]
    assert "/run/none" not in lines


@pytest.mark.long
def test_hostile_programs(tmp_path: Path) -> None:
    """Run the tests of test_record_hostile.py where tracing is possible."""
    tests = Path(__file__).with_name("test_record_hostile.py")
    words = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    built = build(tests.with_name("data") / "hostile.c", tmp_path / "built")
    environment = (("CEASEFIRE_BUILD", str(build_dir())), (HOSTILE, str(built)))
    spec = GuestSpec(timeout=LIMIT, environment=environment, allow_log=(KILLED,))
    result = run_traced(spec, words)
    printed = result.stdout.decode(errors="replace")
    assert result.check() == 0, printed
    assert " passed" in printed and "skipped" not in printed
