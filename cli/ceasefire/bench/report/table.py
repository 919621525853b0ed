# SPDX-License-Identifier: GPL-2.0-only
"""What results say on a terminal: the table, and the notes that a reader needs to judge it.

Also how a ratio is written, in tables, on the page and in texts.
"""

from collections.abc import Sequence

from ceasefire import modes
from ceasefire.bench.figures.compare import Comparison, Interval, settled
from ceasefire.bench.figures.copies import Copies
from ceasefire.bench.results.store import Results
from ceasefire.output import say
from ceasefire.tables import print_table

COSTS = ("faults, off", "in the mode", "page tables, off, KiB", "in the mode, KiB")


def show(found: Results, compared: Sequence[Comparison], against: str) -> int:
    """Print the tables and their notes; return 1 when something was wrong or failed."""
    print_table(
        ("benchmark", "CPUs", "mode", against, "in the mode", "left"),
        [_received(c) for c in compared],
        numbers_from=3,
        title="TLB shootdowns received for each operation",
    )
    ratios = [
        [c.benchmark, str(c.cpus), c.mode, name, ratio_text(ratio)]
        for c in compared
        for name, ratio in c.ratios.items()
    ]
    if ratios:
        print_table(
            ("benchmark", "CPUs", "mode", "of what", f"ratio to {against}"),
            ratios,
            numbers_from=4,
            title=f"Compared with {against}",
        )
    for note in notes(found, compared):
        say(note)
    return 1 if any(c.wrong or c.different or c.failed for c in compared) else 0


def show_copies(found: Sequence[Copies]) -> None:
    """Print what sharers cost, if there is anything of it."""
    if not found:
        return
    print_table(
        ("benchmark", "CPUs", "mode", "fills", *COSTS),
        [[c.benchmark, str(c.cpus), c.mode, f"{c.fills:.5f}", *costs_text(c)] for c in found],
        numbers_from=3,
        title="What each CPU's own tables cost: fills and faults for each operation",
    )


def costs_text(c: Copies) -> list[str]:
    """Return page faults and page tables, off and in the mode, under the heads COSTS."""
    faults = [f"{value:.4f}" for value in c.faults] if c.faults is not None else ["-", "-"]
    tables = [f"{value:,}" for value in c.tables] if c.tables is not None else ["-", "-"]
    return [*faults, *tables]


def _received(c: Comparison) -> list[str]:
    shot = c.shootdowns
    share = shot.share if shot is not None else None
    return [
        c.benchmark,
        str(c.cpus),
        c.mode,
        "-" if shot is None else f"{shot.base:.5f}",
        "-" if shot is None else f"{shot.own:.5f}",
        "-" if share is None else f"{100 * share:.2f} %",
    ]


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
        said.append("No ratios where the guest has more CPUs than the host.")
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
