# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench sharers-cost`: what tables of a CPU's own cost it."""

import argparse
from collections.abc import Sequence

from ceasefire.bench.cost import own_tables
from ceasefire.bench.cost.own_tables import LIMITS, Row
from ceasefire.bench.results import store
from ceasefire.bench.verbs import options
from ceasefire.output import progress
from ceasefire.tables import print_table

_MAX = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--boots", default="2", metavar="N", help="boots (default: 2)")
    parser.add_argument(
        "--repeats", default="11", metavar="N", help="repeats of each case in a boot (default: 11)"
    )
    parser.add_argument("--out", metavar="DIR", help="where results go (default: the build folder)")


def main(args: argparse.Namespace) -> int:
    """Measure; 1 when something takes more than it may."""
    boots = options.number("--boots", args.boots, _MAX)
    repeats = options.number("--repeats", args.repeats, _MAX)
    folder = store.Folder(args.out, "sharers-cost", fresh=True)
    folder.add({"type": "suite", "name": "sharers-cost", "rounds": boots * repeats})
    own_tables.measure(folder, boots, repeats)
    progress(f"raw lines: {folder.lines}")
    over = print_rows(own_tables.rows_of(store.read(folder.path).samples))
    if over:
        progress(f"more than it may be: {', '.join(over)}")
        return 1
    return 0


def print_rows(rows: Sequence[Row]) -> list[str]:
    """Print all cases; return those that take more than they may."""
    cells = []
    over = []
    for row in rows:
        limit = LIMITS.get(row.case)
        if limit and not limit.is_kept(row.off, row.on):
            over.append(row.case)
        # A case of a few instructions has no percentage that means something.
        percent = f"{100 * row.on / row.off - 100:+.2f} %" if limit else "-"
        cells.append(
            [
                row.case,
                f"{row.off:,.0f}",
                f"{row.on:,.0f}",
                f"{row.on - row.off:+,.0f}",
                percent,
                f"{row.spread:.2f} %",
                limit.words() if limit else "-",
            ]
        )
    columns = ("case", "off", "sharers", "more", "in percent", "spread", "limit")
    print_table(columns, cells, title="guest instructions of one operation, lowest of all")
    return over
