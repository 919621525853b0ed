# SPDX-License-Identifier: GPL-2.0-only
"""Compares runs of one test: does it complain of anything with a mechanism that it does without?

Test programs report in many ways, and their words hold numbers that differ from run to run. So a
run is reduced to its marks: what went wrong or was left out, numbers taken away, how often each.
With the mechanism a test may have no mark that it never has without, and none more often.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.foreign.arms import Arm

# Addresses, too, which the kernel's log has without a 0x.
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b|\d+")
# How programs say that something failed or was left out: TAP, KUnit's harness and its like,
# uffd-unit-tests, stress-ng.
_MARK = re.compile(
    r"""^\W*(?:
        not\ ok\b.*
      | ok\b.*\#\ *(?i:skip|xfail)\b.*
      | .*\[\ *(?:FAIL|SKIP|XFAIL)\w*\ *\].*
      | Testing\ .*\.\.\.\ *(?:failed|skipped)\b.*
      | stress-ng:\ (?:fail|error):.*
    )$""",
    re.VERBOSE,
)
# kselftest's; stress-ng's for what the machine or the kernel does not have.
_SKIPPED = (3, 4)


@dataclass(frozen=True)
class Run:
    """One run of a test. status: None when it did not end; left: what it left behind."""

    status: int | None
    output: str = ""
    complaints: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def skipped(self) -> bool:
        """Whether the test said that it cannot run here."""
        return self.status in _SKIPPED


def marks(run: Run) -> Counter[str]:
    """Return what is wrong with a run, and how often."""
    found = [line.strip() for line in run.output.splitlines() if _MARK.match(line)]
    found += [f"kernel log: {line}" for line in run.complaints]
    found += run.left
    counted = Counter(_NUMBER.sub("N", text) for text in found)
    if run.status is None:
        counted["no end"] += 1
    elif run.status:
        counted[f"exit status {run.status}"] += 1
    return counted


def worse(without: Sequence[Run], forced: Run) -> list[str]:
    """Return the marks that a run with the mechanism has more often than each of those without."""
    known: Counter[str] = Counter()
    for run in without:
        known |= marks(run)
    return sorted(marks(forced) - known)


def otherwise(forced: Run, trouble: Sequence[str], says: str, expected: Sequence[str]) -> list[str]:
    """Return what is not as it has to be in a test that is known to differ.

    trouble: what worse() found. says: a part of the output, which has to be there.
    """
    found = sorted(set(trouble) - set(expected))
    if says not in forced.output:
        found.append(f"it does not say '{says}' any more")
    return found


def unusable(arm: Arm, without: Sequence[Run], forced: Run, *, maps: bool) -> list[str]:
    """Return why the runs show nothing about an arm. maps: the test is known to map files."""
    reasons = []
    if any(arm.uses(run.counters) for run in without):
        reasons.append(f"{arm.used} was counted in the run without")
    if maps and not arm.uses(forced.counters):
        reasons.append(f"{arm.used} was not counted")
    return reasons
