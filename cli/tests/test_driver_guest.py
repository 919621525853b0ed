# SPDX-License-Identifier: GPL-2.0-only
"""Jobs in a guest: one that hangs is dead at once, and what it did not get to goes on in a fresh
one; a complaint of the kernel and a skip without a reason fail the job.

A shell script stands in for virtme-run and QEMU. It prints what a kernel prints that hangs, or
nothing any more, and would not end for as long as the job may take.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.driver import cases
from tests.driver.__main__ import run_job
from tests.driver.suites import Job, Mutation

from ceasefire import paths
from ceasefire.errors import GuestError
from ceasefire.vm import GuestSpec, pulse, run_guest
from ceasefire.vm.files import new_log

FakeGuest = Callable[[str], None]
READY = 'say() { echo "[    1.000000] $*" >>$log; }; say ceasefire-vm: ready'
ENDS = "say ceasefire-vm: command returned 0; exit 0"
HANGS = "sleep 600"
# Nothing here takes as long, unless a guest that hangs is waited for.
PATIENCE = 300.0
SOFT = "watchdog: BUG: soft lockup - CPU#1 stuck for 41s! [ld:77]"

KUNIT = paths.linux_dir() / "tools" / "testing" / "kunit"
needs_tree = pytest.mark.skipif(not KUNIT.is_dir(), reason="no kernel tree")


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch) -> GuestSpec:
    monkeypatch.setattr(pulse, "_LAST_WORDS", 1.0)
    return GuestSpec(accel="tcg", timeout=PATIENCE, silence=PATIENCE)


@pytest.mark.parametrize(
    "line",
    [
        SOFT,
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
        "INFO: task fpr_tables:99 blocked for more than 45 seconds.",
    ],
)
def test_kernel_that_says_it_hangs_is_dead(
    line: str, fake_guest: FakeGuest, spec: GuestSpec
) -> None:
    fake_guest(f"{READY}; say '{line}'; sleep 0.2; say Call Trace:; {HANGS}")
    result = run_guest(spec, ["x"])
    assert not result.timed_out
    assert line in result.hung
    # What the kernel says about it is not cut off.
    assert "Call Trace" in result.log.read_text(encoding="utf-8")
    with pytest.raises(GuestError, match=line.split(maxsplit=1)[0]):
        result.check()


def test_line_that_is_allowed_is_no_hang(fake_guest: FakeGuest) -> None:
    fake_guest(f"{READY}; say '{SOFT}'; sleep 4; {ENDS}")
    spec = GuestSpec(accel="tcg", silence=PATIENCE, allow_log=("soft lockup",))
    assert run_guest(spec, ["x"]).check() == 0


def test_guest_without_a_sign_of_life_is_dead(fake_guest: FakeGuest) -> None:
    fake_guest(f"{READY}; {HANGS}")
    result = run_guest(GuestSpec(accel="tcg", timeout=PATIENCE, silence=1.0), ["x"])
    assert not result.timed_out
    with pytest.raises(GuestError, match="the guest hangs, no sign of life for 1 s, guest killed"):
        result.check()


def test_slow_guest_that_gives_signs_of_life_is_waited_for(fake_guest: FakeGuest) -> None:
    beats = "for i in $(seq 10); do sleep 1; say ceasefire-vm: alive; done"
    fake_guest(f"{READY}; {beats}; {ENDS}")
    assert run_guest(GuestSpec(accel="tcg", silence=8.0), ["x"]).check() == 0


def test_guest_that_gets_no_cpu_is_not_silent(
    fake_guest: FakeGuest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "waited", lambda _: {1: time.monotonic(), 2: 0.0})
    fake_guest(f"{READY}; {HANGS}")
    result = run_guest(GuestSpec(accel="tcg", timeout=6.0, silence=1.0), ["x"])
    assert result.timed_out
    assert not result.hung


def test_wait_for_a_cpu_is_measured() -> None:
    cpu = min(os.sched_getaffinity(0))
    busy = f"for i in 1 2 3; do taskset -c {cpu} sh -c 'while :; do :; done' & done; wait"
    process = subprocess.Popen(["sh", "-c", busy], start_new_session=True)
    try:
        end = time.monotonic() + 600
        while not any(wait > 0.5 for wait in pulse.waited(process.pid).values()):
            assert time.monotonic() < end, "three programs on one CPU never wait"
            time.sleep(0.1)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_without_a_limit_of_silence_only_the_time_counts(fake_guest: FakeGuest) -> None:
    fake_guest(f"{READY}; say '{SOFT}'; {HANGS}")
    assert run_guest(GuestSpec(accel="tcg", timeout=4.0), ["x"]).timed_out


def test_heart_beats(tmp_path: Path) -> None:
    lines = "\n".join(pulse.heartbeat()).replace("/dev/kmsg", str(tmp_path / "log"))
    lines = lines.replace(f"sleep {pulse.BEAT}", "sleep 0.1").replace("/proc/self", str(tmp_path))
    process = subprocess.Popen(["sh", "-c", f"{lines}\nwait"], start_new_session=True)
    end = time.monotonic() + 600
    while not (tmp_path / "log").exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.terminate()
    process.wait()
    subprocess.run(["pkill", "-s", str(process.pid)], check=False)
    assert (tmp_path / "log").read_text(encoding="utf-8").startswith("<7>ceasefire-vm: alive")


def test_less_than_a_minute_is_lost() -> None:
    assert Job("x/y", "guest", "c").silence == pulse.SILENCE
    assert pulse.BEAT * 10 <= pulse.SILENCE < 60


# One boot of the fake guest each; the number of boots so far is in $boot.
COUNT = "boot=$(($(cat ${PIDFILE}s 2>/dev/null || echo 0) + 1)); echo $boot >${PIDFILE}s"


def mutated(number: int, status: int | None = 1) -> str:
    lines = [f"{number} control begins", f"{number} control status 0", f"{number} mutated begins"]
    lines += [f"{number} mutated status {status}"] if status is not None else []
    return "; ".join(f"say ceasefire-test: mutation {line}" for line in lines)


def outcome_of(job: Job) -> cases.Outcome:
    return run_job(job, new_log("test", ".ktap"), threading.Event())


def pairs_job(*mutations: Mutation) -> Job:
    values = {"timeout": PATIENCE, "silence": 2.0, "mutations": mutations}
    return Job("x/y", "guest", **values)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boot no guest to find out whether there is KVM."""
    monkeypatch.setattr("ceasefire.vm.guest.accelerator", lambda _: "tcg")


def test_pair_that_hangs_goes_on_in_a_fresh_guest(fake_guest: FakeGuest) -> None:
    second = f"{mutated(1)}; {mutated(2)}; {ENDS}"
    fake_guest(
        f"{COUNT}; {READY}; [ $boot = 1 ] || {{ {second}; }}; {mutated(0)}; {mutated(1, None)};"
        f" {HANGS}"
    )
    outcome = outcome_of(pairs_job(*(Mutation(f"m{n}", "t") for n in range(3))))
    assert [case.result for case in outcome.cases] == ["pass"] * 3
    assert outcome.boots == 2


def test_hang_is_the_pairs_own_in_a_fresh_guest_only(fake_guest: FakeGuest) -> None:
    first = f"{COUNT}; {READY}; [ $boot = 2 ] || {{ {mutated(0)}; }}"
    fake_guest(f"{first}; {mutated(1, None)}; {HANGS}")
    outcome = outcome_of(pairs_job(Mutation("m0", "t"), Mutation("m1", "t")))
    assert [case.result for case in outcome.cases] == ["pass", "fail"]
    assert "wanted fail, got timeout" in outcome.cases[1].detail
    fake_guest(f"{READY}; {mutated(0, None)}; {HANGS}")
    outcome = outcome_of(pairs_job(Mutation("m0", "t", catch=("timeout",))))
    assert [case.result for case in outcome.cases] == ["pass"]


def test_lockup_of_a_mutated_kernel_is_noticed_in_its_log(fake_guest: FakeGuest) -> None:
    fake_guest(f"{READY}; {mutated(0, None)}; say '{SOFT}'; {HANGS}")
    outcome = outcome_of(pairs_job(Mutation("m0", "t", catch=("fail", "log"))))
    assert [case.result for case in outcome.cases] == ["pass"]


def test_control_run_that_hangs_in_a_fresh_guest_fails(fake_guest: FakeGuest) -> None:
    fake_guest(f"{READY}; say ceasefire-test: mutation 0 control begins; {HANGS}")
    outcome = outcome_of(pairs_job(Mutation("m0", "t", catch=("fail", "timeout", "crash"))))
    assert [case.result for case in outcome.cases] == ["fail"]
    assert "without the mutation the test does not end" in outcome.cases[0].detail


def test_pair_after_one_that_damages_gets_a_fresh_guest(fake_guest: FakeGuest) -> None:
    # The fake guest runs what is in the list it gets.
    listed = "list=$(sed -n 's/.*run-mutations \\(.*\\)/\\1/p' \"${2%/*}/guest.sh\")"
    fake_guest(f"{COUNT}; {listed}; cp $list $PIDFILE.list$boot; {READY}; {mutated(0)}; {ENDS}")
    outcome_of(pairs_job(Mutation("m0", "t", damages=True), Mutation("m1", "t")))
    build = paths.build_dir()
    first = (build / "pid.list1").read_text(encoding="utf-8")
    second = (build / "pid.list2").read_text(encoding="utf-8")
    assert [text.split("\t")[3] for text in (first, second)] == ["m0", "m1"]


def test_complaint_of_the_kernel_fails_the_job(fake_guest: FakeGuest) -> None:
    fake_guest(f"{READY}; say 'WARNING: made up'; {ENDS}")
    job = {"timeout": PATIENCE, "format": "status", "command": "x"}
    outcome = outcome_of(Job("x/y", "guest", **job))  # type: ignore[arg-type]
    found = {case.name: case.result for case in outcome.cases}
    assert found == {"x/y: guest": "fail", "x/y": "pass"}
    assert "WARNING: made up" in outcome.cases[0].detail


@needs_tree
def test_skip_without_a_reason_fails_the_job(
    fake_guest: FakeGuest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(KUNIT)
    fake_guest(f"{READY}; printf 'KTAP version 1\\n1..1\\nok 1 - a # SKIP no reason\\n'; {ENDS}")
    job = {"timeout": PATIENCE, "command": "x"}
    outcome = outcome_of(Job("x/y", "guest", **job))  # type: ignore[arg-type]
    assert [(case.name, case.result) for case in outcome.cases] == [("a", "fail")]
    job["skips"] = {"a": "there is a reason"}
    outcome = outcome_of(Job("x/y", "guest", **job))  # type: ignore[arg-type]
    assert [(case.name, case.result) for case in outcome.cases] == [("a", "skip")]


def program(number: int, name: str) -> str:
    text = f"  KTAP version 1\\n  1..1\\n  ok 1 - case\\nok {number} - {name}\\n"
    return f"say ceasefire-test: {name}; printf '{text}'"


@needs_tree
@pytest.mark.parametrize("end", [HANGS, "say 'Kernel panic - not syncing: x'; exit 1"])
def test_programs_after_one_that_hangs_run_in_a_fresh_guest(
    end: str, fake_guest: FakeGuest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(KUNIT)
    head = "printf 'KTAP version 1\\n1..%d\\n'"
    fake_guest(
        f"{COUNT}; {READY}; [ $boot = 1 ] || {{ {head} 1; {program(1, 'c')}; {ENDS}; }};"
        f"{head} 3; {program(1, 'a')}; say ceasefire-test: b; printf '  KTAP version 1\\n'; {end}"
    )
    values = {"timeout": PATIENCE, "silence": 2.0, "tests": ("a", "b", "c")}
    outcome = outcome_of(Job("x/y", "guest", **values))  # type: ignore[arg-type]
    found = {case.name: case.result for case in outcome.cases}
    assert found == {"a.case": "pass", "b": "fail", "c.case": "pass", "x/y: guest": "fail"}
    assert outcome.boots == 2


def both_job(**values: object) -> Job:
    given = {"timeout": PATIENCE, "silence": 2.0, "tests": ("a",), **values}
    return Job("x/y", "guest", **given)  # type: ignore[arg-type]


@needs_tree
@pytest.mark.parametrize("end", [ENDS, HANGS, "say 'Kernel panic - not syncing: x'; exit 1"])
def test_pairs_share_the_guest_of_the_tests(
    end: str, fake_guest: FakeGuest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(KUNIT)
    pair = "; ".join(f"say ceasefire-test: mutation 0 mutated {w}" for w in ("begins", "status 1"))
    fake_guest(f"{READY}; printf 'KTAP version 1\\n1..1\\n'; {program(1, 'a')}; {pair}; {end}")
    outcome = outcome_of(both_job(mutations=(Mutation("m", "a case"),)))
    found = {case.name: case.result for case in outcome.cases}
    assert found == {"a.case": "pass", "m is caught by a case": "pass"}
    assert outcome.boots == 1


@needs_tree
def test_pair_of_a_test_that_did_not_pass_proves_nothing(
    fake_guest: FakeGuest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(KUNIT)
    bad = program(1, "a").replace("ok 1", "not ok 1")
    pair = "; ".join(f"say ceasefire-test: mutation 0 mutated {w}" for w in ("begins", "status 1"))
    control = "say ceasefire-test: mutation 0 control"
    fake_guest(
        f"{COUNT}; {READY}; [ $boot = 1 ] || {{ {control} begins; {control} status 1; {ENDS}; }};"
        f"printf 'KTAP version 1\\n1..1\\n'; {bad}; {pair}; {ENDS}"
    )
    outcome = outcome_of(both_job(mutations=(Mutation("m", "a case"),)))
    found = {case.name: case.result for case in outcome.cases}
    assert found == {"a.case": "fail", "m is caught by a case": "fail"}
    assert "without the mutation the test does not pass" in outcome.cases[-1].detail
    assert outcome.boots == 2
