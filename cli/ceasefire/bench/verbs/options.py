# SPDX-License-Identifier: GPL-2.0-only
"""Numbers that options of several verbs take."""

from ceasefire.errors import UsageError

MAX_CPUS = 64


def numbers(option: str, text: str, low: int, high: int) -> list[int]:
    """Return the numbers of '1-3,5' in the order given, each once."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UsageError(f"{option} {text}: write numbers like 1,2,5 or 1-5")
        start, end = int(first), int(last) if dash else int(first)
        if not low <= start <= end <= high:
            raise UsageError(f"{option} {text}: the numbers are from {low} to {high}")
        found += [n for n in range(start, end + 1) if n not in found]
    return found


def number(option: str, text: str, high: int) -> int:
    """Return the one number of an option, from 1."""
    found = numbers(option, text, 1, high)
    if len(found) != 1:
        raise UsageError(f"{option} {text}: give one number")
    return found[0]


def seconds(value: float) -> float:
    """Return the length of a sample if it can be one."""
    if not 0.05 <= value <= 3600:
        raise UsageError("--seconds is from 0.05 to 3600")
    return value
