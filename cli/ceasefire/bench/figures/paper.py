# SPDX-License-Identifier: GPL-2.0-only
"""What the FPR paper measured, beside what was measured here.

The paper's figures are in the suites (`paper`, by metric), with a sentence on what a comparison is
worth (`paper_note`). Ours are those of mode `fpr`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ceasefire import modes
from ceasefire.bench.catalog import spec
from ceasefire.bench.figures.compare import Comparison, Interval

# The paper is about this mechanism.
_MODE = modes.FPR.name
# Rounds below which an interval says nothing.
FEW_ROUNDS = 3


@dataclass(frozen=True)
class Beside:
    """A line of the comparison. paper, ours: each a list of short texts."""

    benchmark: str
    paper: tuple[str, ...]
    ours: tuple[str, ...]
    note: str


def facts(recorded: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is known of the benchmarks of some results, by name.

    recorded: the line `suite` of the results. What it says of the paper is replaced by what the
    suites say now, so that old results are shown beside corrected words.
    """
    there = spec.load_all()[0] if spec.folder().is_dir() else {}
    found = {}
    for name, about in recorded.get("benchmarks", {}).items():
        own = there.get(name)
        now = {} if own is None else {"paper": own.paper or {}, "paper_note": own.paper_note}
        found[name] = {**about, **now}
    return found


def beside(name: str, about: Mapping[str, Any], compared: Sequence[Comparison]) -> Beside | None:
    """Return the line of a benchmark; None if the paper did not measure it."""
    figures: Mapping[str, str] = about.get("paper", {})
    if not figures:
        return None
    ours = tuple(
        text for c in compared if c.benchmark == name and c.mode == _MODE for text in _ours(c)
    )
    return Beside(
        name,
        tuple(f"{metric}: {text}" for metric, text in figures.items()),
        ours or ("nothing that could be compared",),
        str(about.get("paper_note", "")),
    )


def _ours(c: Comparison) -> list[str]:
    found = [f"{metric}, {c.cpus} CPUs: {change(ratio)}" for metric, ratio in c.ratios.items()]
    if c.shootdowns is not None and c.shootdowns.share is not None:
        found.append(f"shootdowns left, {c.cpus} CPUs: {100 * c.shootdowns.share:.2f} %")
    return found


def change(ratio: Interval) -> str:
    """Return a ratio as the paper has it: by how many percent it is more or less."""
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
