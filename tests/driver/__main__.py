# SPDX-License-Identifier: GPL-2.0-only
"""Run the test suites of tests/suites and count every test case.

The last line is 'N passed, N failed' and nothing else. Before it stands a line for each case that
failed, and before these what each job took. The exit status is 0 when none failed.
A job fails when a test fails or is skipped without the suite allowing it, when it prints no test
or no plan, when it takes too long, and when the kernel of its guest complains.
"""

import argparse
import re
import signal
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from ceasefire.__main__ import Parser
from ceasefire.errors import Failure, UsageError, said
from ceasefire.text import shown
from ceasefire.vm.files import new_log
from tests.driver import guest, host, lanes, mutations
from tests.driver.cases import FAIL, PASS, SKIP, Case, Outcome, failed, judge_skips, passed
from tests.driver.environment import ROOT
from tests.driver.live import Board
from tests.driver.suites import Job, load, select

_DETAIL_LINES = 30
# Of a line that says why a case has failed; all of it stands further up.
_LONGEST_REASON = 300


def main(argv: Sequence[str]) -> int:
    """Run what was selected; return the exit status of the process."""
    args = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        suites = load(ROOT / "tests" / "suites")
        jobs = select(suites, args.job, long=args.long, build=args.build)
        if args.list:
            for job in jobs:
                print(f"{job.name}  ({describe(job)})")
            return 0
        return run_all(jobs, verbose=args.verbose)
    except Failure as failure:
        print(f"tests/run: {said(failure)}", file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        print("\ntests/run: interrupted", file=sys.stderr)
        return 130


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def run_all(jobs: Sequence[Job], *, verbose: bool) -> int:
    """Run jobs one after the other and print the final count."""
    if not jobs:
        raise UsageError("nothing to run: the suites have no such job, see `tests/run --list`")
    outcomes: dict[str, Outcome] = {}
    took: dict[str, float] = {}
    began = time.monotonic()
    with Board() as board:

        def work(place: int, job: Job, stop: threading.Event) -> None:
            title = f"[{place}/{len(jobs)}] {job.name}"
            control = outcomes.get(job.control)
            proven = mutations.proven_by(control.cases) if control else frozenset()
            log = new_log(job.name.replace("/", "-"), ".ktap")
            missing = [n for n in job.needs if n in outcomes and outcomes[n].count(FAIL)]
            with board.job(title, log) as seconds:
                if missing:
                    outcome = Outcome((failed(job.name, f"{missing[0]} has failed"),))
                else:
                    outcome = run_job(job, log, stop, proven)
            outcomes[job.name] = outcome
            took[job.name] = seconds()
            where = f"[{place}/{len(jobs)}]"
            board.print(report(job, outcome, took[job.name], where, verbose=verbose))

        lanes.run(jobs, work)
    print(table(took, outcomes, time.monotonic() - began))
    good = sum(outcome.count(PASS) for outcome in outcomes.values())
    bad = sum(outcome.count(FAIL) for outcome in outcomes.values())
    for name, outcome in outcomes.items():
        for case in outcome.cases:
            if case.result == FAIL:
                print(f"failed: {name}: {shown(case.name)}{reason(case)}")
    print(f"{good} passed, {bad} failed")
    return 1 if bad or not good else 0


def reason(case: Case) -> str:
    """Return in a line why a case has failed: how pytest begins to say it, or what comes first and
    last.
    """
    lines = [line.strip() for line in case.detail.splitlines() if line.strip()]
    found = [line[1:].strip() for line in lines if line.startswith("E ")][: host.REASON_LINES]
    if not found and len(lines) > 1:
        lines = [lines[0][: _LONGEST_REASON // 2], "...", lines[-1]]
    text = " ".join(found or lines)
    return f": {shown(text)[:_LONGEST_REASON]}" if text else ""


def table(took: Mapping[str, float], outcomes: Mapping[str, Outcome], elapsed: float) -> str:
    """Return what each job took, the slowest last: seconds, guests that it booted.

    elapsed: seconds that all of it took.
    """
    lines = [f"{'seconds':>9} {'guests':>6}  job"]
    for name in sorted(took, key=took.__getitem__):
        lines.append(f"{took[name]:9.1f} {outcomes[name].boots:6}  {name}")
    boots = sum(outcome.boots for outcome in outcomes.values())
    lines.append(f"{sum(took.values()):9.1f} {boots:6}  all, some beside others")
    return "\n".join([*lines, f"{elapsed:9.1f}         on the clock"])


def run_job(job: Job, log: Path, stop: threading.Event, proven: Collection[str] = ()) -> Outcome:
    """Run one job, whatever happens in it is an outcome.

    log: for what the job prints. stop: set to end the job early. proven: see mutations.run().
    """
    try:
        if job.kind == "host":
            outcome = host.run(job, log, stop)
        elif job.mutations:
            outcome = mutations.run(job, log, stop, proven)
        else:
            outcome = guest.run(job, log, stop)
    except Failure as failure:
        return Outcome((failed(job.name, str(failure)),), log)
    cases = tuple(judge_skips(outcome.cases, job.skips))
    if job.expect == "fail":
        cases = (_expected_failure(job, cases),)
    return replace(outcome, cases=cases)


def describe(job: Job) -> str:
    """Return in a few words what a job is."""
    if job.kind == "host":
        words = ["on this machine", job.format]
    else:
        words = [f"{job.kernel} kernel", f"{job.cpus} CPUs"]
        words += [f"{len(job.tests)} programs"] if job.tests else []
        words += [f"{len(job.mutations)} mutations"] if job.mutations else []
    return ", ".join([*words, "long"] if job.long else words)


def _expected_failure(job: Job, cases: Sequence[Case]) -> Case:
    details = [case.detail for case in cases if case.result == FAIL]
    if any(re.search(job.because, detail) for detail in details):
        return passed(f"{job.name} fails, as it has to")
    if details:
        return failed(job.name, f"it failed, but not because of {job.because!r}:\n{details[0]}")
    return failed(job.name, "it passed, but has to fail")


def report(job: Job, outcome: Outcome, seconds: float, place: str, *, verbose: bool) -> str:
    """Return the lines that tell how a job ended."""
    bad, skipped = outcome.count(FAIL), outcome.count(SKIP)
    counts = f"{outcome.count(PASS)} passed"
    counts += f", {bad} failed" if bad else ""
    counts += f", {skipped} skipped" if skipped else ""
    lines = [f"{place} {'FAIL' if bad else 'ok  '} {job.name}: {counts} ({seconds:.1f} s)"]
    for case in outcome.cases:
        if case.result == FAIL or verbose or case.result == SKIP:
            lines.append(f"      {case.result} {shown(case.name)}")
            if case.result != PASS:
                detail = case.detail.split("\n")[:_DETAIL_LINES] if case.detail else []
                lines += [f"           {shown(text)}" for text in detail]
    if bad or verbose:
        lines += [f"      {note}" for note in (f"log {outcome.log}", *outcome.notes)]
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    description, _, epilog = (__doc__ or "").partition("\n\n")
    parser = Parser(
        prog="tests/run",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", nargs="*", metavar="JOB", help="names, globs or suites to run")
    parser.add_argument("--list", action="store_true", help="print the jobs, run nothing")
    parser.add_argument("--build", action="store_true", help="build what the jobs run first")
    parser.add_argument("--long", action="store_true", help="also the jobs that take very long")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every test case")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
