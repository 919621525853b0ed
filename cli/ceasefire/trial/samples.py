# SPDX-License-Identifier: GPL-2.0-only
"""The samples of `ceasefire try`: read from the guest's output, summed up, and told.

The program runs as root in the guest and may print what it likes, also to the output of ours. A
line counts only with the token of the run, and only in the form that agent.py gives it.
"""

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ceasefire.counters import RECEIVED, SENT, SKIPPED
from ceasefire.reasons import GROUPS, is_reason, words
from ceasefire.text import shown

OFF = "off"
ON = "on"
_SAMPLE = re.compile(
    r"sample (off|on) ([0-9]{1,9}) ([0-9]{1,3}) ([0-9]{1,15}) ([01])"
    r"((?: [a-z0-9_]+=-?[0-9]{1,19})*) ?"
)
_LONGEST = 1 << 16
_MOST_TEXTS = 100


@dataclass(frozen=True)
class Sample:
    """One run of the program. Round 0 warms up and is left out of the sums.

    same: it printed what the first run printed.
    """

    mode: str
    round: int
    status: int
    usec: int
    same: bool
    counters: dict[str, int]


@dataclass(frozen=True)
class Spread:
    """Median, least and greatest of some values."""

    median: float
    least: float
    greatest: float


@dataclass(frozen=True)
class Trial:
    """All runs of one program, and the lines that the guest has for the user."""

    samples: tuple[Sample, ...]
    texts: tuple[str, ...]

    def measured(self, mode: str) -> list[Sample]:
        """Return the runs of a mode that count."""
        return [s for s in self.samples if s.mode == mode and s.round > 0]

    def spread(self, mode: str, counter: str) -> Spread:
        """Return the spread of a counter over the rounds."""
        return _spread([s.counters.get(counter, 0) for s in self.measured(mode)])

    def runtime(self, mode: str) -> Spread:
        """Return the spread of the runtime in microseconds."""
        return _spread([s.usec for s in self.measured(mode)])

    def ratio(self) -> Spread:
        """Return how much longer the program runs without FPR, round by round."""
        pairs = zip(self.measured(OFF), self.measured(ON), strict=True)
        return _spread([off.usec / max(on.usec, 1) for off, on in pairs])

    def differing(self, mode: str) -> list[Sample]:
        """Return the runs that did not print or end as the very first one."""
        first = self.samples[0]
        runs = [s for s in self.samples if s.mode == mode]
        return [s for s in runs if not s.same or s.status != first.status]

    def counter_names(self) -> list[str]:
        """Return the counters that moved in some measured run."""
        names: dict[str, None] = {}
        for sample in self.measured(OFF) + self.measured(ON):
            names.update((name, None) for name, value in sample.counters.items() if value)
        return list(names)


class Reader:
    """Takes the output of a guest as it comes, and keeps of it what is ours."""

    def __init__(self, token: str) -> None:
        """token: that of the plan."""
        self._mark = f"{token} ".encode()
        self._rest = b""
        self._samples: list[Sample] = []
        self._texts: list[str] = []

    def __call__(self, chunk: bytes) -> None:
        """Take a piece, which may end anywhere."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        # Our lines are shorter; this one is dropped with its end.
        self._rest = self._rest[:_LONGEST]
        for line in lines:
            if line.startswith(self._mark) and len(line) < _LONGEST:
                self._line(line.removeprefix(self._mark).decode(errors="replace"))

    def _line(self, line: str) -> None:
        match = _SAMPLE.fullmatch(line)
        if match:
            mode, number, status, usec, same, pairs = match.groups()
            values = {n: int(v) for n, _, v in (pair.partition("=") for pair in pairs.split())}
            self._samples.append(
                Sample(mode, int(number), int(status), int(usec), same == "1", values)
            )
        elif line.startswith("text ") and len(self._texts) < _MOST_TEXTS:
            self._texts.append(shown(line.removeprefix("text ")))

    def found(self) -> Trial:
        """Return what came until now."""
        return Trial(tuple(self._samples), tuple(self._texts))


def complete(trial: Trial, rounds: int) -> bool:
    """Say whether there are the samples of these rounds, each once and in their order."""
    wanted = [(mode, number) for number in range(rounds + 1) for mode in (OFF, ON)]
    return [(sample.mode, sample.round) for sample in trial.samples] == wanted


def verdict(trial: Trial) -> str:
    """Return why the outputs are not the same, empty when they are."""
    if trial.differing(OFF):
        return (
            "the program prints something else each time, also without FPR: "
            "use --sort-output if only the order differs"
        )
    wrong = trial.differing(ON)
    if not wrong:
        return ""
    status = trial.samples[0].status
    ends = [s.status for s in wrong if s.status != status]
    if ends:
        return f"with FPR the program ended with status {ends[0]}, without it with {status}"
    total = len([s for s in trial.samples if s.mode == ON])
    return f"with FPR the program printed something else in {len(wrong)} of {total} runs"


def rows(trial: Trial, *, relative: bool, timed: bool) -> list[list[str]]:
    """Return the table: what, without FPR, with FPR, and how they compare.

    relative: give runtimes in units of the median without FPR. timed: give them at all.
    """
    table = []
    for name, counter in (
        ("shootdowns received", RECEIVED),
        ("shootdowns sent", SENT),
        ("flushes skipped", SKIPPED),
    ):
        off, on = trial.spread(OFF, counter), trial.spread(ON, counter)
        share = f"{100 * on.median / off.median:.2f} %" if off.median else ""
        table.append([name, _counts(off), _counts(on), share])
    if timed:
        off, on = trial.runtime(OFF), trial.runtime(ON)
        unit, name = (
            (off.median, "runtime, without FPR = 1") if relative else (1000.0, "runtime, ms")
        )
        digits = 2 if relative else 1
        ratio = trial.ratio()
        middle = f"{off.median / max(on.median, 1):.2f}x"
        compared = f"{middle} ({ratio.least:.2f}..{ratio.greatest:.2f})"
        table.append([name, _times(off, unit, digits), _times(on, unit, digits), compared])
    return table


def obstacles(trial: Trial) -> list[str]:
    """Return in words why nothing was skipped, the most frequent reason first."""
    counts = {name: trial.spread(ON, name).median for name in trial.counter_names()}
    bad = [name for name in counts if is_reason(name) and name not in (g.good for g in GROUPS)]
    bad.sort(key=lambda name: -counts[name])
    return [f"{words(name)[0]} ({name} {counts[name]:,.0f})" for name in bad]


def _spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def _counts(spread: Spread) -> str:
    return f"{spread.median:,.0f} ({spread.least:,.0f}..{spread.greatest:,.0f})"


def _times(spread: Spread, unit: float, digits: int) -> str:
    middle, least, greatest = (
        f"{value / unit:.{digits}f}" for value in (spread.median, spread.least, spread.greatest)
    )
    return f"{middle} ({least}..{greatest})"
