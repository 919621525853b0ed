# SPDX-License-Identifier: GPL-2.0-only
"""The samples of `ceasefire try`: read from the guest's output, and summed up.

The program runs as root in the guest and may print what it likes, also to the output of ours. A
line counts only with the token of the run, and only in the form that agent.py gives it.
"""

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from ceasefire import modes
from ceasefire.text import shown

_MODE = r"([a-z][a-z+]{0,63})"
_RUN = re.compile(rf"run {_MODE} ([0-9]{{1,9}})")
_SAMPLE = re.compile(
    rf"sample {_MODE} ([0-9]{{1,9}}) ([0-9]{{1,3}}) ([0-9]{{1,15}}) ([0-9a-f]{{16}})"
    r"((?: [a-z0-9_]+=-?[0-9]{1,19})*) ?"
)
_TEXT = re.compile(r"(error|differ|text) (.*)", re.DOTALL)
_LONGEST = 1 << 16
_MOST_TEXTS = 100
# Runtimes, or their ratios, that differ by more than this say nothing.
_WIDE = 2.0


@dataclass(frozen=True)
class Sample:
    """One run of the program. Round 0 warms up and is left out of the sums.

    digest: of what it printed.
    """

    mode: str
    round: int
    status: int
    usec: int
    digest: str
    counters: dict[str, int]


@dataclass(frozen=True)
class Spread:
    """Median, least and greatest of some values."""

    median: float
    least: float
    greatest: float

    @property
    def wide(self) -> bool:
        """Say whether the values differ so much that the median means nothing."""
        return self.greatest > _WIDE * self.least


@dataclass(frozen=True)
class Trial:
    """All runs of one program, and the lines that the guest has for the user, by their kind."""

    samples: tuple[Sample, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: "Trial") -> "Trial":
        """Return the samples of two guests together."""
        return Trial(self.samples + other.samples, self.texts + other.texts)

    def said(self, kind: str) -> list[str]:
        """Return the lines of a kind."""
        return [text for found, text in self.texts if found == kind]

    def measured(self, mode: str) -> list[Sample]:
        """Return the runs of a mode that count."""
        return [s for s in self.samples if s.mode == mode and s.round > 0]

    def spread(self, mode: str, *counters: str) -> Spread:
        """Return the spread over the rounds of a counter, or of the sum of several."""
        runs = self.measured(mode)
        return _spread([sum(s.counters.get(name, 0) for name in counters) for s in runs])

    def has(self, counter: str) -> bool:
        """Say whether any kernel has counted that."""
        return any(counter in sample.counters for sample in self.samples)

    def runtime(self, mode: str) -> Spread:
        """Return the spread of the runtime in microseconds."""
        return _spread([max(s.usec, 1) for s in self.measured(mode)])

    def ratio(self, base: str, mode: str) -> Spread:
        """Return how much longer the program runs in the first mode, round by round."""
        pairs = zip(self.measured(base), self.measured(mode), strict=True)
        return _spread([max(a.usec, 1) / max(b.usec, 1) for a, b in pairs])

    def skipped(self, mode: str) -> Spread:
        """Return the spread of the flushes that the mechanisms of a mode made unnecessary."""
        return self.spread(mode, *(m.skipped for m in modes.parse(mode).mechanisms))

    def narrowed(self, mode: str) -> Spread:
        """Return the spread of the flushes that went only to those who needed them."""
        return self.spread(mode, *(n for m in modes.parse(mode).mechanisms for n in m.narrowed))

    def comparable(self, mode: str) -> bool:
        """Say whether the mode did anything, so that a runtime may be another one for that."""
        done = (self.skipped(mode), self.narrowed(mode))
        return not modes.parse(mode).mechanisms or any(spread.median > 0 for spread in done)

    def differing(self, mode: str) -> list[Sample]:
        """Return the runs that did not print or end as the very first one."""
        first = self.samples[0]
        runs = [s for s in self.samples if s.mode == mode]
        return [s for s in runs if (s.digest, s.status) != (first.digest, first.status)]

    def medians(self, mode: str) -> dict[str, int]:
        """Return the median of each counter."""
        names = {name: None for s in self.measured(mode) for name in s.counters}
        return {name: round(self.spread(mode, name).median) for name in names}


@dataclass
class Reader:
    """Takes the output of a guest as it comes, and keeps of it what is ours.

    token: that of the plan. now: mode and round of the run that has begun last.
    """

    token: str
    now: tuple[str, int] | None = None
    _rest: bytes = b""
    _samples: list[Sample] = field(default_factory=list)
    _texts: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, chunk: bytes) -> None:
        """Take a piece, which may end anywhere."""
        mark = f"{self.token} ".encode()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        # Our lines are shorter; this one is dropped with its end.
        self._rest = self._rest[:_LONGEST]
        for line in lines:
            if line.startswith(mark) and len(line) < _LONGEST:
                self._line(line.removeprefix(mark).decode(errors="replace"))

    def _line(self, line: str) -> None:
        if match := _SAMPLE.fullmatch(line):
            mode, number, status, usec, digest, pairs = match.groups()
            values = {n: int(v) for n, _, v in (pair.partition("=") for pair in pairs.split())}
            self._samples.append(Sample(mode, int(number), int(status), int(usec), digest, values))
        elif match := _RUN.fullmatch(line):
            self.now = match[1], int(match[2])
        elif (match := _TEXT.fullmatch(line)) and len(self._texts) < _MOST_TEXTS:
            self._texts.append((match[1], shown(match[2])))

    def found(self) -> Trial:
        """Return what came until now."""
        return Trial(tuple(self._samples), tuple(self._texts))


def complete(trial: Trial, names: Sequence[str], rounds: int) -> bool:
    """Say whether there are the samples of these modes and rounds, each once and in their order."""
    wanted = [(mode, n) for n in range(rounds + 1) for mode in modes.order(names, n)]
    return [(sample.mode, sample.round) for sample in trial.samples] == wanted


def _spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))
