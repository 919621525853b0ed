# SPDX-License-Identifier: GPL-2.0-only
"""Runs a job in a guest: one command that prints KTAP, or a list of test programs in one boot."""

import shlex
import shutil
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ceasefire.errors import Failure
from ceasefire.text import lines_of
from ceasefire.vm import GuestResult, GuestSpec, run_guest
from ceasefire.vm.files import run_directory
from ceasefire.vm.spec import parse_disk
from tests.driver import ktap
from tests.driver.cases import Case, Outcome, failed, passed
from tests.driver.environment import ROOT, variables
from tests.driver.suites import Job

# A command of two words, and one after it, whose result is for others to judge.
_BOTH = '"$1" "$2"; status=$?; shift 2; "$@"; exit $status'


def run(job: Job, log: Path, stop: threading.Event) -> Outcome:
    """Run a guest job; its output goes to the log, the kernel's beside it.

    Raises Interrupted soon after stop is set.
    """
    if job.tests:
        return run_tests(job, log, stop)[0]
    result = boot(job, ["sh", "-c", job.command], log, stop)
    cases = kernel_cases(job, result)
    if job.format == "status":
        status = result.status
        cases.append(passed(job.name) if status == 0 else failed(job.name, f"exit status {status}"))
    else:
        cases += _ktap_cases(job, result)
    return Outcome(tuple(cases), log, (f"kernel log {result.log}",), 1)


def run_tests(
    job: Job, log: Path, stop: threading.Event, then: Sequence[str] = ()
) -> tuple[Outcome, GuestResult]:
    """Run the programs in one boot, and what is left in a fresh one when a guest dies.

    then: a command for the guest in which the last program ends; that guest is returned, too.
    """
    cases: list[Case] = []
    notes: list[str] = []
    left = list(job.tests)
    while True:
        with run_directory("job") as scratch:
            listing = scratch / "tests"
            listing.write_text(
                "".join(f"{job.test_timeout}\t{t}\t{t}\n" for t in left), encoding="utf-8"
            )
            command = [str(ROOT / "tests" / "guest" / "run-tests"), str(listing)]
            if then:
                command = ["sh", "-c", _BOTH, "sh", *command, *then]
            result = boot(job, command, log, stop)
        notes.append(f"kernel log {result.log}")
        cases += kernel_cases(job, result)
        started = len(_started(result))
        text = result.stdout.decode(errors="replace")
        if ktap.has_ended(len(left), text):
            result = replace(result, stdout=ktap.until_end_of(len(left), text).encode())
        elif result.status is None and not result.timed_out and started:
            text = ktap.until_end_of(started - 1, text)
            cases += ktap.parse(text, nested=True) if started > 1 else []
            why = result.hung or "no end"
            cases.append(failed(left[started - 1], f"the guest died in it: {why}"))
            left = left[started:]
            if left:
                continue
            break
        cases += _ktap_cases(job, result)
        break
    return Outcome(tuple(cases), log, tuple(notes), len(notes)), result


def _ktap_cases(job: Job, result: GuestResult) -> list[Case]:
    text = result.stdout.decode(errors="replace")
    if job.format == "tap":
        text = ktap.with_plan_first(text)
    cases = ktap.parse(text, nested=bool(job.tests))
    if result.status not in (0, None) and all(case.result == "pass" for case in cases):
        cases.append(failed(job.name, f"exit status {result.status} although all passed"))
    return cases


def _started(result: GuestResult) -> list[tuple[int, str]]:
    with result.log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        return ktap.programs_started(lines)


def boot(job: Job, command: list[str], log: Path, stop: threading.Event) -> GuestResult:
    """Boot the guest that a job describes.

    The log gets the output as it comes, and what the command said on standard error at the end:
    in between it could tear a line of KTAP apart.
    """
    disk_dir = {"CEASEFIRE_TEST_DIR": "/run/disk/0"} if job.disks else {}
    environment = {**variables(job), **disk_dir}
    spec = GuestSpec(
        kernel=job.kernel,
        cpus=job.cpus,
        memory=job.memory,
        numa=job.numa,
        append=tuple(shlex.split(job.append)),
        emulator=job.emulator,
        check=job.check,
        cpu_model=job.cpu,
        qemu_args=job.qemu_args,
        disks=tuple(parse_disk(text) for text in job.disks),
        timeout=job.timeout,
        silence=job.silence,
        environment=tuple(environment.items()),
        allow_log=job.allow_log,
        files=files_of(job, environment["PATH"], command),
        tmpfiles=False,
    )
    name = "test-" + job.name.replace("/", "-")
    printed = bytearray()
    with log.open("ab", buffering=0) as output:

        def keep(chunk: bytes) -> None:
            printed.extend(chunk)
            output.write(chunk)

        result = run_guest(spec, command, name=name, cwd=ROOT, stdout=keep, stop=stop)
        for line in lines_of(result.stderr):
            output.write(f"# stderr: {line}\n".encode())
    return replace(result, stdout=bytes(printed))


def files_of(job: Job, search: str, command: list[str]) -> tuple[Path, ...]:
    """Return what a guest that boots from memory needs: its programs, and what the command names.

    Nothing for one that has the host's file tree.
    """
    if not job.files:
        return ()
    found = [Path(shutil.which(name, path=search) or name) for name in job.files]
    missing = [path.name for path in found if not path.is_file()]
    if missing:
        raise Failure(f"{', '.join(missing)}: not built, run `make tools` first")
    return (*found, *(Path(word) for word in command if Path(word).is_file()))


def kernel_cases(job: Job, result: GuestResult) -> list[Case]:
    """Return a failure when the guest or its kernel misbehaved, blamed on a program."""
    name = f"{job.name}: guest"
    with result.log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        pairs = ktap.mutations_begin(lines)
    # What a mutated kernel does is no fault of the tests before it.
    reports = [r for r in result.verdict.reports if pairs is None or r.line < pairs]
    if pairs is not None and not reports:
        return []
    if result.verdict.clean:
        try:
            result.check()
        except Failure as failure:
            return [failed(name, str(failure))]
        return []
    started = _started(result)
    cases = []
    for report in reports:
        blamed = [program for line, program in started if line < report.line]
        during = f"during {blamed[-1]}" if blamed else "before the first test"
        text = "\n".join(report.text)
        cases.append(failed(name, f"the kernel complained {during}:\n{text}\nlog: {result.log}"))
    return cases
