# SPDX-License-Identifier: GPL-2.0-only
"""Reads a guest's kernel log: did the kernel complain, and what did our script say.

A run counts as failed when the kernel reports a warning, a bug, a lockdep finding, a stall or
memory corruption, whatever the command itself returned. Patterns are anchored at the start of
a message, so that a program which merely prints such a word into the log is not taken for it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_STAMP = re.compile(r"^\s*(?:<\d+>)?\s*\[\s*\d+\.\d+\](?:\[\s*[TC]\d+\])?\s?")
# One pattern a line, for grep -E as well: tests/guest/run-mutations reads it, too.
COMPLAINTS = Path(__file__).with_name("complaints")
_LIST = [p for p in COMPLAINTS.read_text(encoding="ascii").splitlines() if not p.startswith("#")]
# Apart, because a search looks for the first ones in the whole of a line, too.
_AT_START = re.compile("|".join(pattern for pattern in _LIST if pattern.startswith("^")))
_ANYWHERE = re.compile("|".join(pattern for pattern in _LIST if not pattern.startswith("^")))
# What QEMU's emulation is known to do wrong, by the first complaint of a kernel that met it.
_LOST_PATCH = "lost a code patch"
_FLAWS = {
    # The kernel patches its own code, with a breakpoint in the place of the first byte meanwhile.
    # QEMU 7.2, which Debian 12 has, may go on executing the breakpoint afterwards with several
    # emulated CPUs; about one boot in a hundred ends so.
    "Oops: int3": _LOST_PATCH,
    # The kernel waits for some ticks of a timer. On a busy host the emulator may not get to them.
    "Kernel panic - not syncing: IO-APIC + timer doesn't work": "was too slow with a timer",
    # While the kernel asks how large a register window of a device is, the window is somewhere
    # else for a moment; QEMU 7.2 may end itself if something is written there just then.
    "qemu-system-x86_64: ../../hw/pci/msix.c:218: msix_table_mmio_write:": "has ended itself",
}
_MARKER = re.compile(r"ceasefire-vm: (ready|command returned (\d{1,3})\b)")
CONTEXT_LINES = 24
SHOWN_REPORTS = 3


@dataclass(frozen=True)
class LogReport:
    """One complaint of the kernel: its first line and some of what follows."""

    line: int
    text: tuple[str, ...]


@dataclass(frozen=True)
class LogVerdict:
    """What a kernel log says about the run."""

    reports: tuple[LogReport, ...]
    booted: bool
    status: int | None

    @property
    def clean(self) -> bool:
        """Say whether the kernel did not complain."""
        return not self.reports


def message(line: str) -> str:
    """Return a log line without its time stamp."""
    return _STAMP.sub("", line.rstrip("\r\n"), count=1)


def is_bad(line: str) -> bool:
    """Say whether one line of a kernel log reports a malfunction."""
    text = message(line)
    return bool(_AT_START.match(text) or _ANYWHERE.search(text))


def scan(lines: Iterable[str], allow: Sequence[str] = ()) -> LogVerdict:
    """Judge a kernel log. Lines that match a pattern of `allow` are expected complaints.

    Lines within CONTEXT_LINES of a complaint belong to it: a WARNING, its registers and its
    backtrace are one report.
    """
    allowed = [re.compile(pattern) for pattern in allow]
    reports: list[LogReport] = []
    text: list[str] = []
    start = 0
    booted = False
    status: int | None = None
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        marker = _MARKER.search(line)
        if marker:
            booted = True
            status = int(marker.group(2)) if marker.group(2) else status
        if text and len(text) < CONTEXT_LINES:
            text.append(line)
        elif is_bad(line) and not any(pattern.search(line) for pattern in allowed):
            if text:
                reports.append(LogReport(start, tuple(text)))
            text, start = [line], number
    if text:
        reports.append(LogReport(start, tuple(text)))
    return LogVerdict(tuple(reports), booted, status)


def emulator_failed(verdict: LogVerdict) -> str:
    """Say what the emulator did wrong in a boot that failed only for that; empty if nothing.

    Nothing was run by then, so that booting again hides nothing. Once the command has started it
    is a failure as any other.
    """
    return "" if verdict.booted else _flaw(verdict)


def lost_patch(verdict: LogVerdict) -> bool:
    """Say whether a guest ended because the emulator lost a code patch, at whatever time."""
    return _flaw(verdict) == _LOST_PATCH


def _flaw(verdict: LogVerdict) -> str:
    if not verdict.reports:
        return ""
    first = message(verdict.reports[0].text[0])
    return next((what for begin, what in _FLAWS.items() if first.startswith(begin)), "")


def describe(verdict: LogVerdict) -> str:
    """Return the first reports as text for a person."""
    parts = ["\n".join(report.text) for report in verdict.reports[:SHOWN_REPORTS]]
    more = len(verdict.reports) - SHOWN_REPORTS
    if more > 0:
        parts.append(f"... and {more} more")
    return "\n\n".join(parts)
