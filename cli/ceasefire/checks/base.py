# SPDX-License-Identifier: GPL-2.0-only
"""The result of one check of `ceasefire doctor`."""

from dataclasses import dataclass

PASS = "pass"
FAIL = "fail"
INFO = "info"


@dataclass(frozen=True)
class Check:
    """What one check found.

    found: what there is, in a few words, also when all is well.
    fix: one line that says what to do; empty when there is nothing to do.
    needed: without it this way of using ceasefire does not work.
    """

    name: str
    result: str
    found: str
    fix: str = ""
    needed: bool = True


def check(name: str, good: bool, found: str, fix: str, *, needed: bool = True) -> Check:
    """Return a check that passed, or one that failed with its fix; INFO if it is not needed."""
    if good:
        return Check(name, PASS, found, needed=needed)
    return Check(name, FAIL if needed else INFO, found, fix, needed)
