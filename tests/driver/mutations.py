# SPDX-License-Identifier: GPL-2.0-only
"""Runs mutation jobs: a test must pass as it is and notice when its protection is off.

Many pairs share a boot. A mutated kernel may be damaged afterwards, which shows as a control run
that fails, as a crash or as a hang; then the pair goes on in a fresh guest, and so does the one
after a pair that says it damages the kernel. Only what happens first in a fresh guest counts: a
control run that fails there is a failure of the test, a crash or a hang there is the pair's own.

A test that has passed in this run already, among the tests of the same job or in the job that
stands for the control runs, is repeated only after the kernel has complained. On an emulator that
checks, it also has to report the class of violation that the pair names, and none in the control
run. Results come from the kernel log, see guest/run-mutations.
"""

import contextlib
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ceasefire.vm import GuestResult, klog
from ceasefire.vm.files import run_directory
from ceasefire.vm.spec import STOCK_EMULATOR
from tests.driver.cases import PASS, Case, Outcome, failed, passed
from tests.driver.environment import ROOT
from tests.driver.guest import boot, run_tests
from tests.driver.suites import Job, Mutation

_MARK = re.compile(
    r"ceasefire-test: mutation (\d+) "
    r"(?:(control|mutated) (?:(begins)|status (\d+)|counted ([a-z0-9 ]*))|unknown)"
)
_TIMED_OUT = (124, 137)
_FAIL = 1


@dataclass
class Attempt:
    """What one boot showed of one pair."""

    control: int | None = None
    mutated: int | None = None
    began: bool = False
    unknown: bool = False
    control_reports: list[str] = field(default_factory=list)
    mutated_reports: list[str] = field(default_factory=list)
    control_violations: dict[str, int] = field(default_factory=dict)
    mutated_violations: dict[str, int] = field(default_factory=dict)


def run(job: Job, log: Path, stop: threading.Event, proven: Collection[str] = ()) -> Outcome:
    """Run all pairs of a job, booting as often as needed; the tests of the job come first.

    proven: what has passed without a mutation, see proven_by().
    """
    if job.emulator == STOCK_EMULATOR:
        job = replace(job, mutations=tuple(replace(m, reported="") for m in job.mutations))
    pending = list(range(len(job.mutations)))
    verdicts: dict[int, Case] = {}
    cases: tuple[Case, ...] = ()
    notes: list[str] = []
    if job.tests:
        # Each pair as if its test had passed; which have is known afterwards.
        with _command(_trusting(job), share(job.mutations, pending)) as command:
            tests, result = run_tests(job, log, stop, command)
        cases, notes = tests.cases, list(tests.notes)
        proven = {*proven, *proven_by(cases)}
        verdicts = _verdicts(_trusting(job, proven), pending, result)
        job = replace(job, tests=())
    job = _trusting(job, proven)
    while pending := [number for number in pending if number not in verdicts]:
        with _command(job, share(job.mutations, pending)) as command:
            result = boot(job, command, log, stop)
        notes.append(f"kernel log {result.log}")
        settled = _verdicts(job, pending, result)
        if not settled:
            first = job.mutations[pending[0]]
            settled = {pending[0]: failed(case_name(first), _no_result(result))}
        verdicts.update(settled)
    cases += tuple(verdicts[n] for n in sorted(verdicts))
    return Outcome(cases, log, tuple(notes), len(notes))


def _trusting(job: Job, proven: Collection[str] | None = None) -> Job:
    """Return the job with fewer control runs: pairs that are proven, or all, need them only after
    the kernel has complained.
    """

    def needs_none(mutation: Mutation) -> bool:
        trusted = proven is None or is_proven(mutation, proven)
        return mutation.control == "always" and trusted and not mutation.hangs

    pairs = (replace(m, control="damaged") if needs_none(m) else m for m in job.mutations)
    return replace(job, mutations=tuple(pairs))


def _verdicts(job: Job, pending: Sequence[int], result: GuestResult) -> dict[int, Case]:
    """Return the verdicts that one boot allows.

    A pair without the control run that it needs has none: it comes after tests that did not pass.
    """
    with result.log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        found = read_attempts(lines, job.allow_log)
    attempts = {}
    for number, attempt in found.items():
        bare = attempt.control is None and attempt.began
        if not (bare and job.mutations[number].control == "always"):
            attempts[number] = attempt
    return settle(job.mutations, pending, attempts, bool(result.timed_out or result.hung))


def case_name(mutation: Mutation) -> str:
    """Return the name of the test case that a pair makes."""
    return f"{mutation.name} is caught by {mutation.test}"


def is_proven(mutation: Mutation, proven: Collection[str]) -> bool:
    """Return whether the pair's test has passed, or every case of it (a program and its cases)."""
    program, *cases = mutation.test.split()
    return mutation.test in proven or (
        bool(cases) and all(f"{program}.{case}" in proven for case in cases)
    )


def proven_by(cases: Iterable[Case]) -> frozenset[str]:
    """Return what the cases of a job prove: `program.case`, and whole entries of its tests.

    An entry with more than names of cases behind the program proves itself only: with a variable or
    another command before it the same case may be another one.
    """
    entries: dict[str, list[Case]] = {}
    for case in cases:
        entries.setdefault(case.name.rpartition(".")[0], []).append(case)
    proven = {e for e, found in entries.items() if e and all(c.result == PASS for c in found)}
    for entry, found in entries.items():
        program, *words = entry.split() or [""]
        if all(word.isidentifier() for word in (program, *words)):
            names = (case.name.rpartition(".")[2] for case in found if case.result == PASS)
            proven |= {f"{program}.{name}" for name in names}
    return frozenset(proven)


def settle(
    mutations: Sequence[Mutation],
    pending: Sequence[int],
    attempts: dict[int, Attempt],
    timed_out: bool,
) -> dict[int, Case]:
    """Return the verdicts that one boot allows; the pairs left out need a fresh guest.

    timed_out: the guest did not end, it hung or its time was up.
    """
    settled: dict[int, Case] = {}
    for place, number in enumerate(pending):
        attempt = attempts.get(number)
        if attempt is None:
            break
        mutation = mutations[number]
        name = case_name(mutation)
        problem = _control_problem(mutation, attempt)
        if problem:
            if place == 0:
                settled[number] = failed(name, problem)
            break
        if attempt.unknown:
            settled[number] = failed(name, "the kernel does not know this mutation")
            continue
        if not attempt.began:
            break
        dead = attempt.mutated is None
        # An earlier pair may have killed it.
        if dead and place > 0:
            break
        settled[number] = judge(mutation, attempt, timed_out)
        if dead:
            break
    return settled


def share(mutations: Sequence[Mutation], pending: Sequence[int]) -> list[int]:
    """Return the first of the pairs, as many as may share a guest."""
    # A test that was ended has not put back what it had set.
    alone = (p for p, n in enumerate(pending) if mutations[n].damages or mutations[n].hangs)
    return list(pending[: next(alone, len(pending)) + 1])


def judge(mutation: Mutation, attempt: Attempt, timed_out: bool) -> Case:
    """Say whether a mutation was noticed in the way its suite expects."""
    noticed = set()
    if attempt.mutated == _FAIL:
        noticed.add("fail")
    if attempt.mutated in _TIMED_OUT or (attempt.mutated is None and timed_out):
        noticed.add("timeout")
    if attempt.mutated_reports:
        noticed.add("log")
    if attempt.mutated is None and not timed_out:
        noticed.add("crash")
    name = case_name(mutation)
    if noticed & set(mutation.catch):
        if mutation.reported and not attempt.mutated_violations.get(mutation.reported):
            return failed(name, f"the checker reports no violation of class {mutation.reported}")
        return passed(name)
    wanted = " or ".join(mutation.catch)
    seen = ", ".join(sorted(noticed)) or f"exit status {attempt.mutated}"
    report = "".join(f"\n{text}" for text in attempt.mutated_reports[:1])
    return failed(name, f"not noticed: wanted {wanted}, got {seen}{report}")


def read_attempts(lines: Iterable[str], allow: Sequence[str] = ()) -> dict[int, Attempt]:
    """Read from a kernel log what happened to each pair.

    allow: patterns of lines that are no complaint, with a mutation or without.
    """
    text = list(lines)
    attempts: dict[int, Attempt] = {}
    sections: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text, 1):
        match = _MARK.search(line)
        if not match:
            continue
        attempt = attempts.setdefault(int(match.group(1)), Attempt())
        if match.group(2) is None:
            attempt.unknown = True
            continue
        control = match.group(2) == "control"
        if match.group(5) is not None:
            counted = attempt.control_violations if control else attempt.mutated_violations
            words = match.group(5).split()
            counted |= dict(zip(words[::2], map(int, words[1::2]), strict=True))
        elif match.group(3):
            attempt.began = attempt.began or not control
            sections.append(
                (number, attempt.control_reports if control else attempt.mutated_reports)
            )
        elif control:
            attempt.control = int(match.group(4))
        else:
            attempt.mutated = int(match.group(4))
    for report in klog.scan(text, allow).reports:
        within = [reports for line, reports in sections if line < report.line]
        if within:
            within[-1].append("\n".join(report.text))
    return attempts


def _control_problem(mutation: Mutation, attempt: Attempt) -> str:
    if attempt.control is None and mutation.control != "always":
        return ""
    if attempt.control is None:
        return "without the mutation the test does not end"
    if attempt.control != 0:
        return f"without the mutation the test does not pass: exit status {attempt.control}"
    if attempt.control_reports:
        return "the kernel complained without the mutation:\n" + attempt.control_reports[0]
    if any(attempt.control_violations.values()):
        return f"violations without the mutation: {attempt.control_violations}"
    return ""


@contextlib.contextmanager
def _command(job: Job, pending: Sequence[int]) -> Iterator[list[str]]:
    """Write the list of these pairs; gives the command that runs them in a guest."""
    with run_directory("job") as scratch:
        listing = scratch / "mutations"
        listing.write_text(
            "".join(
                f"{n}\t{job.test_timeout}\t"
                f"{'timed' if job.mutations[n].hangs else job.mutations[n].control}\t"
                f"{job.mutations[n].name}\t{job.mutations[n].test}\n"
                for n in pending
            ),
            encoding="utf-8",
        )
        yield [str(ROOT / "tests" / "guest" / "run-mutations"), str(listing)]


def _no_result(result: GuestResult) -> str:
    detail = klog.describe(result.verdict) or f"exit status {result.status}"
    return f"the guest gave no result: {detail}\nlog: {result.log}"
