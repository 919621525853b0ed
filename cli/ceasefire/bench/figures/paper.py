# SPDX-License-Identifier: GPL-2.0-only
"""What the papers measured, beside what was measured here.

The figures of each paper are in the suites, by metric (`paper` for that of FPR, `paper_latr` for
that of LATR), with a sentence on what a comparison is worth (`paper_note`, `paper_latr_note`). Ours
are those of the mode that the paper is about.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ceasefire import modes
from ceasefire.bench.catalog import spec
from ceasefire.bench.figures.compare import Comparison, Interval

# Rounds below which an interval says nothing.
FEW_ROUNDS = 3


@dataclass(frozen=True)
class Paper:
    """A paper. mode: what it is about. key: its figures in the suites. where: its machines."""

    mode: str
    key: str
    title: str
    where: str

    @property
    def note_key(self) -> str:
        """The key of what comparing is worth."""
        return f"{self.key}_note"

    @property
    def anchor(self) -> str:
        """What links on a page name."""
        return self.key.replace("_", "-")


FPR = Paper(
    modes.FPR.name,
    "paper",
    "Skip TLB flushes for reused pages within mmap's",
    "servers of 10 to 96 cores",
)
LATR = Paper(
    modes.LATR.name,
    "paper_latr",
    "LATR: Lazy Translation Coherence",
    "servers of 16 and 120 cores",
)
PAPERS = (FPR, LATR)


@dataclass(frozen=True)
class Beside:
    """A line of the comparison. paper, ours: each a list of short texts."""

    benchmark: str
    paper: tuple[str, ...]
    ours: tuple[str, ...]
    note: str


def facts(recorded: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is known of the benchmarks of some results, by name.

    recorded: the line `suite` of the results. What it says of the papers is replaced by what the
    suites say now, so that old results are shown beside corrected words.
    """
    there = spec.load_all()[0] if spec.folder().is_dir() else {}
    found = {}
    for name, about in recorded.get("benchmarks", {}).items():
        own = there.get(name)
        now = {} if own is None else {k: getattr(own, k) for p in PAPERS for k in _keys(p)}
        found[name] = {**about, **now}
    return found


def _keys(paper: Paper) -> tuple[str, str]:
    return paper.key, paper.note_key


def beside(
    name: str, about: Mapping[str, Any], compared: Sequence[Comparison], paper: Paper = FPR
) -> Beside | None:
    """Return the line of a benchmark; None if the paper did not measure it, or nobody here did."""
    figures: Mapping[str, str] = about.get(paper.key) or {}
    own = [c for c in compared if c.benchmark == name and c.mode == paper.mode]
    if not figures or not own:
        return None
    ours = tuple(text for c in own for text in _ours(c))
    return Beside(
        name,
        tuple(f"{metric}: {text}" for metric, text in figures.items()),
        ours or ("nothing that could be compared",),
        str(about.get(paper.note_key, "")),
    )


def _ours(c: Comparison) -> list[str]:
    found = [f"{metric}, {c.cpus} CPUs: {change(ratio)}" for metric, ratio in c.ratios.items()]
    if c.shootdowns is not None and c.shootdowns.share is not None:
        found.append(f"shootdowns left, {c.cpus} CPUs: {100 * c.shootdowns.share:.2f} %")
    return found


def change(ratio: Interval) -> str:
    """Return a ratio as the papers have it: by how many percent it is more or less."""
    values = [100 * (value - 1) for value in (ratio.middle, ratio.low, ratio.high)]
    digits = 1 if max(abs(value) for value in values) < 10 else 0
    middle, low, high = (f"{value:+.{digits}f}" for value in values)
    if 0 < len(ratio.values) < FEW_ROUNDS:
        return f"{middle} % in {rounds_text(ratio)} only"
    return f"{middle} % ({low}..{high})"


def rounds_text(ratio: Interval) -> str:
    """Return in words how many rounds a ratio is the median of."""
    count = len(ratio.values)
    return "one round" if count == 1 else f"{count} rounds"
