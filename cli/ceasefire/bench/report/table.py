# SPDX-License-Identifier: GPL-2.0-only
"""What results say on a terminal: the table, and the notes that a reader needs to judge it.

Also how a ratio is written, in tables, on the page and in texts.
"""

from collections.abc import Sequence

from ceasefire import modes
from ceasefire.bench.figures.compare import Comparison, Interval, settled
from ceasefire.bench.results.store import Results
from ceasefire.output import print_table, say


def show(found: Results, compared: Sequence[Comparison], against: str) -> int:
    """Print the table and its notes; return 1 when something was wrong or failed."""
    per_operation, ratio = f"received/op {against}", f"ratio to {against}"
    print_table(
        ("benchmark", "CPUs", "mode", per_operation, "with", "left", ratio, "of what"),
        [row for c in compared for row in _rows(c)],
        numbers_from=3,
    )
    for note in notes(found, compared):
        say(note)
    return 1 if any(c.wrong or c.different or c.failed for c in compared) else 0


def _rows(c: Comparison) -> list[list[str]]:
    """Return the lines of a mode: one for each metric, shootdowns in the first."""
    shot = c.shootdowns
    share = shot.share if shot is not None else None
    head = [
        c.benchmark,
        str(c.cpus),
        c.mode,
        "-" if shot is None else f"{shot.base:.5f}",
        "-" if shot is None else f"{shot.own:.5f}",
        "-" if share is None else f"{100 * share:.2f} %",
    ]
    ratios = [[ratio_text(ratio), name] for name, ratio in c.ratios.items()] or [["-", ""]]
    return [(head if not n else [""] * len(head)) + cells for n, cells in enumerate(ratios)]


def ratio_text(ratio: Interval) -> str:
    """Return a ratio with its interval."""
    return f"{ratio.middle:.2f} ({ratio.low:.2f}..{ratio.high:.2f})"


def notes(found: Results, compared: Sequence[Comparison]) -> list[str]:
    """Return what must be said beside the table."""
    said = [
        "Ratios are medians over the rounds with a 95 % bootstrap interval; received is the sum."
    ]
    if found.hosts:
        host = found.hosts[-1]
        said.append(f"Measured {host['where']}, {host['host_cpus']} CPUs in the host.")
        if "emulated" in str(host["where"]):
            said.append("Emulated CPUs: counts are exact, ratios an indication, times nothing.")
    if not all(c.comparable for c in compared):
        said.append("No ratios (-) where the guest has more CPUs than the host.")
    if any(c.mode == modes.STOCK.name for c in compared):
        said.append(
            "stock: the command of off on a kernel without ceasefire, in boots of its own between "
            "the others; boots differ, so its ratios say less."
        )
    if debts := settled(found.samples):
        said.append(debts)
    for c in compared:
        name = f"{c.benchmark}, {c.cpus} CPUs"
        said += [f"FAILED: {name}, {text}" for text in c.failed]
        if c.wrong:
            said.append(f"WRONG DATA: {name}, {c.mode}: {c.wrong}")
        if c.different:
            said.append(f"DIFFERENT OUTPUT: {name}, {c.mode}: in {c.different} samples")
        said += [f"outlier: {name}, {text}" for text in c.outliers]
    return list(dict.fromkeys(said))
