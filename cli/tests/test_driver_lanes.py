# SPDX-License-Identifier: GPL-2.0-only
"""The test driver's lanes: what runs beside what, in which order, and with which priority."""

import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.driver import lanes
from tests.driver.__main__ import run_all, run_job
from tests.driver.suites import Job

from ceasefire.vm.files import new_log


def job(command: str, **values: object) -> Job:
    """Return a job on this machine that is judged by its status."""
    given = {"name": "x/y", "kind": "host", "format": "status", "command": command, **values}
    return Job(**given)  # type: ignore[arg-type]


def test_a_job_of_guests_runs_alone(empty_build: Path) -> None:
    lock = empty_build / "lock"
    alone = f"mkdir {lock} && sleep 0.5 && rmdir {lock}"
    beside = f"[ ! -e {lock} ] && sleep 0.5 && [ ! -e {lock} ]"
    jobs = [
        job(beside, name="x/c", lane="beside"),
        job(alone, name="x/a"),
        job(beside, name="x/d", lane="beside"),
        job(alone, name="x/b"),
    ]
    assert run_all(jobs, verbose=False) == 0


def test_others_run_two_at_a_time(empty_build: Path) -> None:
    # Each waits for the other: only side by side do they end.
    meet = "touch {0}; for i in $(seq 6000); do [ -e {1} ] && exit 0; sleep 0.1; done; exit 1"
    here, there = str(empty_build / "here"), str(empty_build / "there")
    jobs = [
        job(meet.format(*pair), name=f"x/{Path(pair[0]).name}", lane="beside")
        for pair in ((here, there), (there, here))
    ]
    assert run_all(jobs, verbose=False) == 0


def test_job_waits_for_the_other_lane(empty_build: Path) -> None:
    made = empty_build / "made"
    built = job(f"sleep 1; touch {made}", name="build/x", lane="beside")
    test = job(f"[ -e {made} ]", after=("build/x",))
    assert run_all([test, built], verbose=False) == 0


def test_job_that_waits_lets_others_pass(empty_build: Path) -> None:
    here, made = empty_build / "here", empty_build / "made"
    # The build ends when the second of the other jobs has run.
    until = f"for i in $(seq 6000); do [ -e {here} ] && exec touch {made}; sleep 0.1; done; exit 1"
    late = job(f"[ -e {made} ]", name="x/late", after=("build/x",))
    jobs = [
        job(until, name="build/x", lane="beside"),
        late,
        job(f"touch {here}", name="x/early", lane="beside"),
    ]
    assert run_all(jobs, verbose=False) == 0


def test_mutations_wait_for_their_control_runs() -> None:
    order: list[str] = []
    control = job("", name="x/control", lane="beside")
    jobs = [Job("x/pairs", "guest", control="x/control", kernel="debug"), control]

    def work(_place: int, one: Job, _stop: threading.Event) -> None:
        time.sleep(0.5)
        order.append(one.name)

    lanes.run(jobs, work)
    assert order == ["x/control", "x/pairs"]


def test_job_fails_with_what_it_waits_for(
    empty_build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = job("exit 1", name="build/x", lane="beside")
    assert run_all([built, job("exit 0", after=("build/x",))], verbose=False)
    output = capsys.readouterr().out
    assert "build/x has failed" in output
    assert output.splitlines()[-1] == "0 passed, 2 failed"


def has_nice(value: int) -> str:
    """Return a command that waits until its session has a nice value, and ends well if it has."""
    return (
        f'i=0; until [ ! -e /proc/self/autogroup ] || grep -q "nice {value}$" /proc/self/autogroup;'
        f' do i=$((i+1)); [ $i -lt 6000 ] || exit 1; sleep 0.1; done; [ "$(nice)" = {value} ]'
    )


def test_priority_is_kept_in_its_session_too() -> None:
    value = max(10, os.getpriority(os.PRIO_PROCESS, 0))

    def run() -> int:
        # Of this thread and of the processes that it starts.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), value)
        return run_all([job(has_nice(value))], verbose=False)

    with ThreadPoolExecutor(max_workers=1) as pool:
        assert pool.submit(run).result() == 0


IDLE = "chrt -p $$ | grep -q SCHED_IDLE"


def test_spare_job_runs_beside_a_job_of_guests_in_its_spare_time(empty_build: Path) -> None:
    here, there = str(empty_build / "here"), str(empty_build / "there")
    meet = "touch {0}; for i in $(seq 6000); do [ -e {1} ] && exit 0; sleep 0.1; done; exit 1"
    jobs = [
        job(meet.format(here, there), name="x/a"),
        job(
            f"{IDLE} && ( {has_nice(19)} ) && {meet.format(there, here)}",
            name="x/b",
            lane="spare",
        ),
    ]
    assert run_all(jobs, verbose=False) == 0


def test_spare_job_is_as_any_other_without_jobs_of_guests(empty_build: Path) -> None:
    before = os.sched_getscheduler(0)
    same = f"{IDLE}; [ $? = {0 if before == os.SCHED_IDLE else 1} ]"
    assert run_all([job(same, lane="spare")], verbose=False) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can raise a priority")
def test_spare_job_that_still_runs_gets_its_share_at_the_end(empty_build: Path) -> None:
    began = empty_build / "began"
    until = "for i in $(seq 6000); do {0} && exit 0; sleep 0.1; done; exit 1"
    inner = f"{IDLE} && touch {began}; {until.format(f'! {IDLE}')}"
    jobs = [
        job(until.format(f"[ -e {began} ]"), name="x/a"),
        # What it has started, too, in a session of its own.
        job(f"setsid --wait sh -c '{inner}'", name="x/b", lane="spare"),
    ]
    assert run_all(jobs, verbose=False) == 0


def places(jobs: list[Job]) -> tuple[lanes.Lanes, list[str]]:
    """Return lanes and what begins at once, in its lane."""
    found = lanes.Lanes(jobs)
    names = []
    while place := found._next():
        found._left.remove(next(left for left in found._left if left[0] == place[0]))
        found._running.append(place[1])
        names.append(f"{place[1].name} {place[1].lane}")
    return found, names


def test_what_runs_at_the_same_time() -> None:
    spare = [job("", name=f"x/s{n}", lane="spare") for n in range(3)]
    beside = [job("", name=f"x/b{n}", lane="beside") for n in range(3)]
    guests = [job("", name="x/g", lane="guests")]
    found, names = places([*spare, *beside, *guests])
    assert names == ["x/g guests", "x/s0 spare", "x/s1 spare"]
    # Those that still run are one of the two.
    found.over(guests[0])
    assert found._next() == (4, beside[0])
    assert places([*spare, *beside])[1] == ["x/b0 beside", "x/b1 beside"]
    assert places(spare)[1] == ["x/s0 beside", "x/s1 beside"]
    waits = [job("", name=f"x/w{n}", lane="waits") for n in range(2)]
    assert places([*waits, *guests])[1] == ["x/g guests"]
    assert places([*beside, *waits])[1] == ["x/w0 waits", "x/b0 beside", "x/b1 beside"]
    # A build leaves no time, and a job of guests that waits for it lets others pass.
    late = [job("", name="x/g", lane="guests", after=("build/x",))]
    build = job("", name="build/x", lane="beside")
    found, names = places([build, *spare, *beside, *late])
    assert names == ["build/x beside", "x/b0 beside"]
    found.over(build)
    assert found._next() == (2, spare[0])
    # Three builds run at a time, before all others.
    builds = [job("", name=f"build/{n}", lane="beside") for n in range(4)]
    found, names = places([*guests, *beside, *builds])
    assert names == ["build/0 beside", "build/1 beside", "build/2 beside"]
    found.over(builds[0])
    assert found._next() == (8, builds[3])


def test_attacks_do_not_wait_for_builds_in_spare_time() -> None:
    first = job("", name="build/a", lane="beside")
    builds = [job("", name=f"build/{name}", lane="spare") for name in "bc"]
    guest = job("", name="x/g", lane="guests", after=("build/a",))
    late = job("", name="x/late", lane="guests", after=("build/c",))
    other = job("", name="x/s", lane="spare")
    found, names = places([other, first, *builds, guest, late])
    assert names == ["build/a beside", "build/b spare", "build/c spare"]
    found.over(first)
    assert found._next() == (5, guest)
    found._left.remove((5, guest))
    found._running.append(guest)
    assert not found._next()
    found.over(builds[0])
    assert found._next() == (1, other)
    # Without attacks they run as any other build.
    beside = job("", name="x/b", lane="beside")
    names = places([beside, first, *builds])[1]
    assert names == ["build/a beside", "build/b beside", "build/c beside"]


def test_error_of_the_other_lane_ends_a_wait() -> None:
    jobs = [
        job("", name="build/a", lane="beside"),
        job("", name="build/b", lane="beside"),
        job("", after=("build/b",)),
    ]

    def work(_place: int, one: Job, _stop: threading.Event) -> None:
        if one.lane == "beside":
            raise RuntimeError

    with pytest.raises(RuntimeError):
        lanes.run(jobs, work)


def test_giving_up_ends_the_other_lane(empty_build: Path) -> None:
    sleeps = job("sleep 62.9", name="x/a", lane="beside")
    jobs = [sleeps, job("", lane="beside")]

    def work(_place: int, one: Job, stop: threading.Event) -> None:
        if one is not sleeps:
            raise KeyboardInterrupt
        run_job(one, new_log("test", ".ktap"), stop)

    with pytest.raises(KeyboardInterrupt):
        lanes.run(jobs, work)
    found = subprocess.run(["pgrep", "-f", "^sleep 62.9"], capture_output=True, check=False)
    assert found.stdout == b""
    assert list((empty_build / "runs").iterdir()) == []
