# SPDX-License-Identifier: GPL-2.0-only
"""The test driver: what it counts, what it refuses, and how it judges mutations."""

import re
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.driver import cases, host, ktap, live, mutations, suites
from tests.driver.__main__ import reason, run_all, run_job
from tests.driver.environment import variables
from tests.driver.suites import Job, Mutation

from ceasefire import paths
from ceasefire.errors import UsageError
from ceasefire.vm.files import new_log

needs_tree = pytest.mark.skipif(
    not (paths.linux_dir() / "tools" / "testing" / "kunit").is_dir(), reason="no kernel tree"
)


def results(found: Iterable[cases.Case]) -> dict[str, str]:
    return {case.name: case.result for case in found}


@needs_tree
def test_plain_ktap() -> None:
    text = "TAP version 13\n1..3\nok 1 - one\n# why\nnot ok 2 - two\nok 3 - three # SKIP none\n"
    found = ktap.parse(text)
    assert results(found) == {"one": "pass", "two": "fail", "three": "skip"}
    assert found[1].detail == "failure\n# why"
    assert found[2].detail == "none"


@needs_tree
def test_nested_ktap_counts_the_leaves() -> None:
    text = (
        "KTAP version 1\n1..2\n"
        "  TAP version 13\n  1..2\n  ok 1 - a\n  ok 2 - b\nok 1 - first\n"
        "  KTAP version 1\n  1..1\n  not ok 1 - c\nnot ok 2 - second\n"
    )
    assert results(ktap.parse(text, nested=True)) == {
        "first.a": "pass",
        "first.b": "pass",
        "second.c": "fail",
    }


@needs_tree
@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "TAP version 13\n1..0\n",
        "TAP version 13\nok 1 - no plan\n",
        "TAP version 13\n1..2\nok 1 - one\n",
        "TAP version 13\n1..1\nok 7 - wrong number\n",
        "KTAP version 1\n1..1\n  TAP version 13\n  1..1\n  ok 1 - a\nnot ok 1 - ended badly\n",
        "KTAP version 1\n1..1\n  TAP version 13\n  ok 1 - no plan inside\nok 1 - program\n",
    ],
)
def test_what_the_kernels_parser_lets_pass_is_a_failure(text: str) -> None:
    assert cases.FAIL in results(ktap.parse(text)).values()


@needs_tree
def test_program_without_cases_is_a_failure() -> None:
    text = "KTAP version 1\n1..1\nok 1 - silent\n"
    assert results(ktap.parse(text)) == {"silent": "pass"}
    assert results(ktap.parse(text, nested=True)) == {"silent": "fail"}


def test_skip_needs_a_reason() -> None:
    found = [cases.Case("a", cases.SKIP, "no device"), cases.Case("b.x", cases.SKIP)]
    judged = cases.judge_skips(found, {"b.*": "needs hardware"})
    assert results(judged) == {"a": "fail", "b.x": "skip"}
    assert judged[1].detail == "needs hardware"


def test_junit() -> None:
    text = (
        "<testsuites><testsuite><testcase classname='m' name='a'/>"
        "<testcase classname='m' name='b'><failure message='x'>why</failure></testcase>"
        "<testcase name='c'><skipped message='later'/></testcase></testsuite></testsuites>"
    )
    found = host.junit_cases(text)
    assert results(found) == {"m.a": "pass", "m.b": "fail", "c": "skip"}
    assert found[1].detail == "why"


def test_complaint_of_a_guest_is_told_where_the_report_is_long() -> None:
    said = ["GuestError: the guest's kernel complained:", "WARNING: here", "CPU: 0"]
    said += [f"R{number}: 0" for number in range(40)]
    text = "\n".join(["def test():", *(f"E   {line}" for line in said), "test.py:7: GuestError"])
    found = host.junit_cases(f"<s><testcase name='a'><failure>{text}</failure></testcase></s>")
    assert reason(found[0]) == f": {' '.join(said[:3])}"
    assert found[0].detail.endswith("E   R39: 0\ntest.py:7: GuestError")
    assert len(found[0].detail.splitlines()) == 25


def host_job(command: str, **values: object) -> Job:
    given = {"name": "x/y", "kind": "host", "command": command, **values}
    return Job(**given)  # type: ignore[arg-type]


def end_of(job: Job) -> cases.Outcome:
    return run_job(job, new_log("test", ".ktap"), threading.Event())


def test_host_job_by_status(empty_build: Path) -> None:
    assert end_of(host_job("exit 0", format="status")).count("pass") == 1
    outcome = end_of(host_job("echo reason; exit 3", format="status"))
    assert "exit status 3\nreason" in outcome.cases[0].detail


def test_host_job_has_a_time_limit_and_leaves_nothing(empty_build: Path) -> None:
    outcome = end_of(host_job("sleep 61.7 & sleep 61.7", format="status", timeout=0.5))
    assert "no end after 0.5 s" in outcome.cases[0].detail
    assert list((empty_build / "runs").iterdir()) == []
    found = subprocess.run(["pgrep", "-f", "^sleep 61.7"], capture_output=True, check=False)
    assert found.stdout == b""


def test_job_that_has_to_fail(empty_build: Path) -> None:
    def outcome(command: str) -> cases.Outcome:
        return end_of(host_job(command, format="status", expect="fail", because="my reason"))

    assert outcome("echo my reason; exit 1").count("pass") == 1
    assert outcome("echo another; exit 1").count("fail") == 1
    assert outcome("echo my reason; exit 0").count("fail") == 1


def test_pytest_that_dies_is_a_failure(empty_build: Path) -> None:
    assert end_of(host_job("exit 4", format="pytest")).count("fail") == 1


def test_last_line_is_the_count(empty_build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = host_job("exit 0", format="status")
    bad = host_job("exit 1", name="x/bad", format="status")
    assert run_all([good], verbose=False) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed"
    assert run_all([good, bad], verbose=False) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"


def test_end_says_what_has_failed_and_why(
    empty_build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = host_job("echo first; echo the reason; exit 3", name="x/bad", format="status")
    run_all([bad], verbose=False)
    printed = capsys.readouterr().out.splitlines()
    assert "failed: x/bad: x/bad: exit status 3 ... the reason" in printed
    found = [
        "<testcase classname='m' name='b'>",
        "<failure message='x'>def test():\n> assert f() == 1\nE   assert 2 == 1\nE   + where\n",
        "m.py:1: AssertionError</failure></testcase>",
    ]
    (case,) = host.junit_cases("".join(found))
    assert reason(case) == ": assert 2 == 1 + where"
    assert reason(cases.Case("x", "fail", "a" * 1000)) == f": {'a' * 300}"
    assert reason(cases.Case("x", "fail")) == ""


def test_table_of_what_each_job_takes(
    empty_build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "from ceasefire.vm.files import new_log; new_log('a', '.klog'); new_log('b', '.ktap')"
    boots = f'PYTHONPATH=cli $PYTHON -c "{code}" && sleep 3'
    jobs = [
        host_job("exit 0", name="x/quick", format="status"),
        host_job(boots, name="x/slow", format="status"),
    ]
    assert run_all(jobs, verbose=False) == 0
    *_, head, first, second, both, clock, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["seconds", "guests", "job"]
    assert (first.split()[1:], second.split()[1:]) == (["0", "x/quick"], ["1", "x/slow"])
    assert float(second.split()[0]) >= 3 > float(first.split()[0])
    assert both.split()[1:] == ["1", "all,", "some", "beside", "others"]
    assert clock.split()[1:] == ["on", "the", "clock"]
    # The two ran beside each other, or one after the other.
    assert float(clock.split()[0]) >= 3
    assert last == "2 passed, 0 failed"


def test_a_build_says_how_far_it_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert live._progress(log) == ""
    log.write_text("building\n  12 of 20 steps\n")
    assert live._progress(log) == ": 12 of 20 steps"
    log.write_text("  12 of 20 steps\nready\n")
    assert live._progress(log) == ""


def test_like_takes_the_keys_of_the_other_job(tmp_path: Path) -> None:
    text = """
[[job]]
name = "a"
kind = "guest"
command = "c"
append = "x"
env = { A = "$TOOLS/a", B = "$$" }
qemu_args = ["-device", "d"]
[[job]]
name = "b"
like = "a"
append = "y"
"""
    first, second = suites.load(write_suite(tmp_path, text))
    assert (second.command, second.append, second.env) == ("c", "y", first.env)
    assert second.qemu_args == ("-device", "d")
    assert variables(second)["A"].endswith("/tools/a") and variables(second)["B"] == "$"


def test_nothing_to_run_is_wrong_use() -> None:
    with pytest.raises(UsageError):
        run_all([], verbose=False)


def write_suite(folder: Path, text: str) -> Path:
    (folder / "s.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "KTAP version 1\nok 1 - a\n1..1\n",
        "KTAP version 1\n1..1\n  KTAP version 1\n  ok 1 - a\n  1..1\nok 1 - p\n",
    ],
)
def test_late_plan_is_refused(text: str) -> None:
    assert results(ktap.parse(text)) == {"KTAP format": "fail"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ok 1 - a\nnot ok 2 - b\n# why\n1..2\n", {"a": "pass", "b": "fail"}),
        ("TAP version 13\n1..1\nok 1 - a\n", {"a": "pass"}),
        ("ok 1 - a\n1..2\n", {"a": "pass", "(no name)": "fail", "KTAP format": "fail"}),
        ("ok 1 - a\n", {"a": "pass", "KTAP format": "fail"}),
        ("nothing\n", {"KTAP format": "fail"}),
        ("", {"KTAP format": "fail"}),
    ],
)
def test_tap_may_have_its_plan_last(text: str, expected: dict[str, str]) -> None:
    assert results(ktap.parse(ktap.with_plan_first(text))) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[[job]]\n",
        "[[job]]\nname='a'\nkind='host'\n",
        "[[job]]\nname='a'\nkind='boat'\ncommand='x'\n",
        "[[job]]\nname='a'\nkind='host'\ncommand='x'\nspeed=3\n",
        "[[job]]\nname='a'\nkind='host'\ncommand='x'\nformat='xml'\n",
        "[[job]]\nname='a'\nkind='guest'\ncommand='x'\ntests=['y']\n",
        "[[job]]\nname='a'\nkind='guest'\nemulator='checking'\ntests=['y']\n"
        "mutations=[{name='m', test='t', unreported='x'}]\n",
        "[[job]]\nname='a'\nkind='host'\ntests=['y']\n",
        "[[job]]\nname='a'\nkind='guest'\nmutations=[{name='m'}]\n",
        "[[job]]\nname='a'\nkind='guest'\nmutations=[{name='m', test='t', catch='luck'}]\n",
        "[[job]]\nname='a'\nkind='guest'\nmutations=[{name='m', test='t', reported='x'}]\n",
        "[[job]]\nname='a'\nkind='guest'\nemulator='checking'\nmutations=[{name='m', test='t'}]\n",
        "[[job]]\nname='a'\nkind='guest'\n"
        "mutations=[{name='m', test='t', reported='old', unreported='x'}]\n",
        "[[job]]\nname='a'\nkind='guest'\nmutations=[{name='m', test='t', hangs=true}]\n",
        "[[job]]\nname='a'\nkind='guest'\n"
        "mutations=[{name='m', test='t', catch='timeout', hangs=true, control='never'}]\n",
        "[[job]]\nname='a'\nkind='guest'\nlane='third'\ncommand='c'\n",
        "[[job]]\nname='a'\nkind='guest'\nlane='spare'\ncommand='c'\n",
        "[[job]]\nname='a'\nlike='b'\n",
        "[[job]]\nname='a'\nkind='host'\ncommand='x'\nafter=['s/b']\n",
        "[[job]]\nname='a'\nkind='guest'\ncommand='x'\nafter=['s/a']\n",
        "[[job]]\nname='a'\nkind='host'\ncommand='x'\n[[job]]\nname='a'\nkind='host'\ncommand='x'\n",
        "[[job]]\nname='a'\nkind='host'\ncommand='x'\nexpect='fail'\n",
        "[[job]]\nname='a'\nkind='host'\ncommand='x'\nbecause='x'\n",
        "[[job]\n",
    ],
)
def test_wrong_suites_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        suites.load(write_suite(tmp_path, text))


def test_control_runs_have_the_same_environment(tmp_path: Path) -> None:
    first = "[[job]]\nname='a'\nkind='guest'\nenv={MECHANISM='x'}\ntests=['t']\n"
    pairs = "[[job]]\nname='b'\nkind='guest'\ncontrol='s/a'\nmutations=[{name='m', test='t'}]\n"
    with pytest.raises(UsageError, match="s/b: s/a has another env"):
        suites.load(write_suite(tmp_path, first + pairs))
    same = pairs.replace("control=", "env={MECHANISM='x'}\ncontrol=")
    assert [job.name for job in suites.load(write_suite(tmp_path, first + same))] == ["s/a", "s/b"]


def test_selection(tmp_path: Path) -> None:
    text = "".join(
        f"[[job]]\nname='{name}'\nkind='host'\ncommand='x'\nlong={long}\n"
        for name, long in (("a", "false"), ("b", "true"), ("ab", "false"))
    )
    jobs = suites.load(write_suite(tmp_path, text))

    def names(*patterns: str, long: bool = False) -> list[str]:
        return [job.name for job in suites.select(jobs, patterns, long=long)]

    assert names() == ["s/a", "s/ab"]
    assert names(long=True) == ["s/a", "s/b", "s/ab"]
    assert names("s/a*") == ["s/a", "s/ab"]
    assert names("s") == ["s/a", "s/ab"]
    assert names("s/b") == ["s/b"]
    with pytest.raises(UsageError):
        names("nothing")


def test_second_pairs_of_a_mutation_are_long(tmp_path: Path) -> None:
    pairs = "".join(f"{{name='{name}',test='{test}'}}," for name, test in ("ax", "bx", "ay", "cz"))
    jobs = suites.load(
        write_suite(tmp_path, f"[[job]]\nname='a'\nkind='guest'\nmutations=[{pairs}]")
    )

    def tests(*patterns: str, long: bool = False) -> list[str]:
        (job,) = suites.select(jobs, patterns, long=long)
        return [pair.name + pair.test for pair in job.mutations]

    assert tests() == tests("s") == ["ax", "bx", "cz"]
    assert tests("s/a") == tests(long=True) == ["ax", "bx", "ay", "cz"]


def test_builds_come_first_where_they_are_needed(tmp_path: Path) -> None:
    kinds = ("kernel-debug", "kernel-run", "emulator")
    text = "".join(f"[[job]]\nname='{n}'\nkind='host'\ncommand='x'\n" for n in kinds)
    (tmp_path / "build.toml").write_text(text, encoding="utf-8")
    text = """
[[job]]
name = "a"
kind = "guest"
command = "x"
[[job]]
name = "b"
like = "a"
kernel = "debug"
emulator = "checking"
[[job]]
name = "c"
kind = "host"
command = "x"
after = ["build/kernel-run"]
"""
    jobs = suites.load(write_suite(tmp_path, text))

    def names(*patterns: str, build: bool = True) -> list[str]:
        return [j.name for j in suites.select(jobs, patterns, long=False, build=build)]

    assert names(build=False) == ["s/a", "s/b", "s/c"]
    assert names() == [*(f"build/{n}" for n in kinds), *names(build=False)]
    assert names("s/b") == ["build/kernel-debug", "build/emulator", "s/b"]
    assert names("s/c", "build/kernel-run") == ["build/kernel-run", "s/c"]


def test_suites_of_the_repository_load(root: Path) -> None:
    assert suites.load(root / "tests" / "suites")


PAIRS = (
    Mutation("m0", "t0"),
    Mutation("m1", "t1"),
    Mutation("m2", "t2", catch=("crash", "log")),
)


def mark(text: str) -> str:
    return f"[    1.000000] ceasefire-test: mutation {text}\n"


def ran(number: int, control: int = 0, mutated: int | None = 1, *, report: str = "") -> list[str]:
    log = [mark(f"{number} control begins"), mark(f"{number} control status {control}")]
    if control == 0:
        log.append(mark(f"{number} mutated begins"))
        log += [f"[    1.500000] {report}\n"] if report else []
        log += [mark(f"{number} mutated status {mutated}")] if mutated is not None else []
    return log


def settled(
    log: list[str], pending: tuple[int, ...] = (0, 1, 2), *, timed_out: bool = False
) -> dict[int, str]:
    found = mutations.settle(PAIRS, pending, mutations.read_attempts(log), timed_out)
    return {number: case.result for number, case in found.items()}


def test_mutation_that_the_test_notices() -> None:
    assert settled(ran(0) + ran(1)) == {0: "pass", 1: "pass"}


def test_mutation_that_nobody_notices() -> None:
    assert settled(ran(0, mutated=0)) == {0: "fail"}


def test_broken_test_is_not_a_catch() -> None:
    assert settled(ran(0, mutated=127)) == {0: "fail"}
    assert settled(ran(0, mutated=4)) == {0: "fail"}


def test_hanging_test_is_a_catch_only_where_allowed() -> None:
    assert settled(ran(0, mutated=124)) == {0: "fail"}


def test_crash_is_a_catch_only_where_allowed() -> None:
    assert settled(ran(0, mutated=None), (0,)) == {0: "fail"}
    assert settled(ran(2, mutated=None), (2,)) == {2: "pass"}


def test_complaint_of_a_mutated_kernel_is_a_catch_only_where_allowed() -> None:
    bug = "BUG: Bad page state in process a"
    assert settled(ran(0, mutated=0, report=bug), (0,)) == {0: "fail"}
    assert settled(ran(2, mutated=0, report=bug), (2,)) == {2: "pass"}
    assert settled(ran(0, mutated=1, report=bug), (0,)) == {0: "pass"}


def test_rest_goes_to_a_fresh_guest_after_a_crash() -> None:
    assert settled(ran(0, mutated=None)) == {0: "fail"}


def test_control_that_fails_first_is_the_tests_fault() -> None:
    assert settled(ran(0, control=1)) == {0: "fail"}


def test_control_that_fails_later_is_tried_again() -> None:
    assert settled(ran(0) + ran(1, control=1)) == {0: "pass"}


def test_control_that_fails_after_a_late_catch() -> None:
    late = [mark("0 control begins"), mark("0 control status 1")]
    assert settled(ran(0) + late) == {0: "fail"}
    # It may be damage by an earlier pair.
    late = [mark("1 control begins"), mark("1 control status 1")]
    assert settled(ran(0) + ran(1) + late) == {0: "pass"}


@pytest.mark.parametrize(
    ("results", "runs"),
    [
        ("1", "m"),
        ("0 5 1", "mmm"),
        ("0 0 0 1 0 0 0 0", "mmmmcccc"),
        ("5 0 0 1 0 1", "mmmmcc"),
        ("0 0 0 0 124", "mmmmm"),
        ("0 0 0 0 0 0 0 0 0 5", "mmmmmmmmmm"),
    ],
)
def test_what_is_noticed_late_passes_as_often_without(
    results: str, runs: str, root: Path, tmp_path: Path
) -> None:
    text = (root / "tests/guest/run-mutations").read_text(encoding="utf-8")
    function = re.search(r"^attack\(\) \{.*?^\}$", text, re.MULTILINE | re.DOTALL)
    assert function
    given = "status=${results%% *}; results=${results#* }; ran=$ran${2%${2#?}}"
    script = (
        f"results='{results}'; switch={tmp_path}/switch; ran=; note() {{ :; }}\n"
        f"run() {{ {given}; }}\n{function[0]}\nattack 0 10 x; echo $ran"
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{runs}\n", "")
    assert (tmp_path / "switch").read_text(encoding="utf-8") == "none\n"


def test_complaint_during_the_control_run() -> None:
    log = [
        mark("0 control begins"),
        "[    1.5] WARNING: CPU: 0 at mm/a.c:1\n",
        mark("0 control status 0"),
        mark("0 mutated begins"),
        mark("0 mutated status 1"),
    ]
    assert settled(log, (0,)) == {0: "fail"}


def test_line_that_the_job_allows_is_no_complaint() -> None:
    line, said = "page dumped because: migration failure", "migration failure"
    log = [
        mark("0 control begins"),
        f"[    1.5] {line}\n",
        mark("0 control status 0"),
        mark("0 mutated begins"),
        mark("0 mutated status 1"),
    ]
    (case,) = mutations.settle(PAIRS, (0,), mutations.read_attempts(log), False).values()
    assert reason(case).startswith(": the kernel complained without the mutation: ... ")
    attempts = mutations.read_attempts(log, [said])
    assert mutations.settle(PAIRS, (0,), attempts, False)[0].result == "pass"
    # Nor is it a catch.
    attempts = mutations.read_attempts(ran(2, mutated=0, report=line), [said])
    assert mutations.settle(PAIRS, (2,), attempts, False)[2].result == "fail"


def checked(control: str, mutated: str) -> list[str]:
    return [
        mark("0 control begins"),
        mark(f"0 control counted {control}"),
        mark("0 control status 0"),
        mark("0 mutated begins"),
        mark(f"0 mutated counted {mutated}"),
        mark("0 mutated status 1"),
    ]


def judged(log: list[str], **values: str) -> str:
    pairs = (Mutation("m", "t", **values),)  # type: ignore[arg-type]
    return mutations.settle(pairs, (0,), mutations.read_attempts(log), False)[0].result


def test_the_checker_has_to_report_what_the_pair_says() -> None:
    seen = checked("freed 0 armed 0 ", "freed 0 armed 16 ")
    assert judged(seen) == judged(seen, reported="armed") == "pass"
    assert judged(seen, reported="freed") == "fail"
    assert judged(ran(0), reported="armed") == "fail"


def test_a_violation_without_the_mutation_is_a_failure() -> None:
    assert judged(checked("freed 1 armed 0 ", "freed 9 armed 0 "), reported="freed") == "fail"


def test_unknown_mutation() -> None:
    log = [mark("0 control begins"), mark("0 control status 0"), mark("0 unknown")]
    assert settled(log + ran(1)) == {0: "fail", 1: "pass"}


def test_passed_tests_need_no_control_run() -> None:
    pair = Mutation("m", "fpr_leak truncated dropped")
    assert mutations.is_proven(pair, {"fpr_leak.truncated", "fpr_leak.dropped"})
    assert not mutations.is_proven(pair, {"fpr_leak.truncated"})
    assert not mutations.is_proven(Mutation("m", "fpr_leak"), {"fpr_leak.truncated"})


def test_what_a_job_proves() -> None:
    proven = mutations.proven_by(
        [
            cases.passed("fpr_leak.truncated"),
            cases.failed("fpr_leak.dropped", "why"),
            cases.passed("fpr_moves by_collapse by_compaction.by_collapse"),
            cases.passed("fpr_fuzz --seconds 5.whole"),
            cases.passed("A=1 fpr_evict at_once.at_once"),
            cases.passed("echo n >x && fpr_evict.stays_old"),
            cases.passed("x/y: guest"),
        ]
    )

    def is_proven(test: str) -> bool:
        return mutations.is_proven(Mutation("m", test), proven)

    assert is_proven("fpr_leak truncated") and not is_proven("fpr_leak dropped")
    assert is_proven("fpr_moves by_collapse") and not is_proven("fpr_moves by_compaction")
    assert is_proven("fpr_fuzz --seconds 5") and not is_proven("fpr_fuzz --seconds 6")
    assert not is_proven("fpr_evict at_once") and not is_proven("fpr_evict stays_old")
    assert is_proven("A=1 fpr_evict at_once")


def test_control_run_of_a_proven_pair_counts_where_there_is_one() -> None:
    pairs = (Mutation("m0", "t0"), Mutation("m1", "t1", control="damaged"))
    mutated = [mark("1 mutated begins"), mark("1 mutated status 1")]

    def numbers(log: list[str]) -> set[int]:
        return set(mutations.settle(pairs, (0, 1), mutations.read_attempts(log), False))

    assert numbers(ran(0) + mutated) == {0, 1}
    assert numbers(ran(0) + ran(1, control=1)) == {0}


def test_pair_that_hangs_is_timed_by_its_control_run(empty_build: Path) -> None:
    pairs = (Mutation("m0", "t"), Mutation("m1", "t", catch=("timeout",), hangs=True))
    job = mutations._trusting(Job("x/y", "guest", mutations=pairs), {"t"})
    with mutations._command(job, [0, 1]) as (_, listing):
        lines = Path(listing).read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[2] for line in lines] == ["damaged", "timed"]
    # It was ended, and what it had set stays.
    assert mutations.share([*pairs, *pairs], range(4)) == [0, 1]
    log = [mark("1 control begins"), mark("1 control status 0")]
    log += [mark("1 mutated begins"), mark("1 mutated status 124")]
    found = mutations.settle(pairs, (1,), mutations.read_attempts(log), False)
    assert [case.result for case in found.values()] == ["pass"]


def test_guest_that_showed_nothing_settles_nothing() -> None:
    assert settled([]) == {}
