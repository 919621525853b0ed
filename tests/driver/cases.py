# SPDX-License-Identifier: GPL-2.0-only
"""Results: one Case for each test case of a job, whatever kind of job it came from."""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

PASS = "pass"
FAIL = "fail"
SKIP = "skip"


@dataclass(frozen=True)
class Case:
    """One test case. detail: why it failed or was skipped, possibly several lines."""

    name: str
    result: str
    detail: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a job: its cases, the log with all that was printed, how many guests booted."""

    cases: tuple[Case, ...]
    log: Path | None = None
    notes: tuple[str, ...] = field(default=())
    boots: int = 0

    def count(self, result: str) -> int:
        """Return how many cases had that result."""
        return sum(case.result == result for case in self.cases)


def passed(name: str) -> Case:
    """Return a case that passed."""
    return Case(name, PASS)


def failed(name: str, detail: str) -> Case:
    """Return a case that failed."""
    return Case(name, FAIL, detail)


def judge_skips(cases: Iterable[Case], reasons: Mapping[str, str]) -> list[Case]:
    """Turn every skip into a failure that the suite gives no reason for.

    reasons: from a pattern of case names to the reason, which replaces the test's own words.
    """
    judged = []
    for case in cases:
        if case.result == SKIP:
            reason = next((r for p, r in reasons.items() if fnmatch.fnmatch(case.name, p)), None)
            if reason is None:
                detail = f"skipped, and the suite allows no skip: {case.detail}".rstrip(": ")
                judged.append(failed(case.name, detail))
            else:
                judged.append(replace(case, detail=reason))
        else:
            judged.append(case)
    return judged
