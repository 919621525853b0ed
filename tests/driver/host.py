# SPDX-License-Identifier: GPL-2.0-only
"""Runs a job on this machine: pytest, meson, anything that prints KTAP, or a plain check."""

import contextlib
import os
import subprocess
import threading
import time
from pathlib import Path
from xml.etree import ElementTree

from ceasefire import paths
from ceasefire.errors import Interrupted
from ceasefire.process_group import keep_nice, kill_group
from ceasefire.vm.files import LIST, run_directory
from tests.driver import ktap, priority
from tests.driver.cases import PASS, SKIP, Case, Outcome, failed, passed
from tests.driver.environment import ROOT, variables
from tests.driver.suites import Job

_KILL_WAIT = 10.0
_POLL = 0.5
_SHOWN_LINES = 25
# Of those in which pytest says why: a guest's complaint is in the second.
REASON_LINES = 3


def run(job: Job, log: Path, stop: threading.Event) -> Outcome:
    """Run a host job. All that it prints goes to the log.

    Raises Interrupted soon after stop is set.
    """
    with run_directory("job") as scratch:
        status = _execute(job, log, scratch, stop)
        boots = _guests(scratch / "logs")
        text = log.read_bytes().decode(errors="replace")
        if status is None:
            case = failed(job.name, f"no end after {job.timeout:g} s, killed")
            return Outcome((case,), log, boots=boots)
        cases = _cases(job, status, text, scratch)
    if status != 0 and all(case.result == PASS for case in cases):
        cases.append(failed(job.name, f"exit status {status}\n{_last_lines(text)}"))
    return Outcome(tuple(cases), log, boots=boots)


def _guests(listed: Path) -> int:
    """Return how many guests the commands of a job have booted: each has a kernel log."""
    names = listed.read_text(encoding="utf-8").split() if listed.exists() else []
    return sum(name.endswith(".klog") for name in names)


def _execute(job: Job, log: Path, scratch: Path, stop: threading.Event) -> int | None:
    """Run the command; return its exit status, None when it had to be killed."""
    environment = {**os.environ, **variables(job)}
    _meson_report().unlink(missing_ok=True)
    environment["JUNIT"] = str(scratch / "junit.xml")
    environment[LIST] = str(scratch / "logs")
    command = ["sh", "-c", job.command]
    spare = job.lane == "spare"
    with log.open("wb") as output:
        process = subprocess.Popen(
            priority.idle(command) if spare else command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            if spare:
                priority.let_idle(process)
            else:
                keep_nice(process)
            return _wait(process, job.timeout, stop)
        finally:
            kill_group(process, _KILL_WAIT)


def _wait(process: subprocess.Popen[bytes], timeout: float, stop: threading.Event) -> int | None:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(_POLL, timeout))
        if stop.is_set():
            raise Interrupted
    return None


def _cases(job: Job, status: int, text: str, scratch: Path) -> list[Case]:
    if job.format == "ktap":
        return ktap.parse(text)
    if job.format == "status":
        if status == 0:
            return [passed(job.name)]
        return [failed(job.name, f"exit status {status}\n{_last_lines(text)}")]
    report = _meson_report() if job.format == "meson" else scratch / "junit.xml"
    if not report.is_file():
        return [failed(job.name, f"no report, exit status {status}\n{_last_lines(text)}")]
    return junit_cases(report.read_text(encoding="utf-8")) or [failed(job.name, "no test ran")]


def junit_cases(text: str) -> list[Case]:
    """Return the cases of a JUnit report, as pytest and meson write it."""
    cases = []
    try:
        tree = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return [failed("JUnit format", f"the report cannot be read: {error}")]
    for node in tree.iter("testcase"):
        name = ".".join(filter(None, (node.get("classname"), node.get("name"))))
        bad = node.find("failure") if node.find("failure") is not None else node.find("error")
        skipped = node.find("skipped")
        if bad is not None:
            detail = (bad.text or bad.get("message") or "failed").strip()
            cases.append(failed(name, _reason_and_last_lines(detail)))
        elif skipped is not None:
            cases.append(Case(name, SKIP, skipped.get("message") or ""))
        else:
            cases.append(passed(name))
    return cases


def _meson_report() -> Path:
    return paths.build_dir() / "tools" / "meson-logs" / "testlog.junit.xml"


def _last_lines(text: str) -> str:
    return "\n".join(text.rstrip().split("\n")[-_SHOWN_LINES:])


def _reason_and_last_lines(text: str) -> str:
    """Shorten what pytest says of a failure, without losing where its reason begins."""
    lines = text.split("\n")
    reason = [line for line in lines if line.startswith("E ")][:REASON_LINES]
    kept = lines[-(_SHOWN_LINES - len(reason)) :]
    if len(lines) <= _SHOWN_LINES or not reason or reason[0] in kept:
        return _last_lines(text)
    return "\n".join([*reason, *kept])
