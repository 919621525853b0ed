# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench morsels`: what morsels take beside other shared memory."""

import argparse
from collections.abc import Sequence

from ceasefire.bench.cost import morsels
from ceasefire.bench.cost.morsels import Row
from ceasefire.bench.results import store
from ceasefire.bench.verbs import options
from ceasefire.errors import UsageError
from ceasefire.output import progress
from ceasefire.sizes import parse_size
from ceasefire.tables import print_table

_MAX = 100
_PAGE = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--repeats", default="5", metavar="N", help="repeats of each case (default: 5)"
    )
    parser.add_argument(
        "--largest",
        default="1G",
        metavar="SIZE",
        help="largest piece of memory that is taken at once, 4K to 1G (default: 1G)",
    )
    parser.add_argument("--out", metavar="DIR", help="where results go (default: the build folder)")


def main(args: argparse.Namespace) -> int:
    """Measure; 1 when something takes more than it may."""
    repeats = options.number("--repeats", args.repeats, _MAX)
    largest = parse_size(args.largest)
    if not _PAGE <= largest <= morsels.GIB:
        raise UsageError(f"--largest {args.largest}: give a size from 4K to 1G")
    folder = store.Folder(args.out, "morsels", fresh=True)
    folder.add({"type": "suite", "name": "morsels", "rounds": repeats})
    morsels.measure(folder, repeats, largest)
    progress(f"raw lines: {folder.lines}")
    rows = morsels.rows_of(store.read(folder.path).samples)
    print_rows(rows)
    missed = morsels.missed(rows)
    for line in missed:
        progress(f"more than it may be: {line}")
    return 1 if missed else 0


def print_rows(rows: Sequence[Row]) -> None:
    """Print all cases."""
    cells = [
        [row.case, f"{row.size:,}", row.mode, f"{row.cost:,.0f}", f"{row.spread:.1f} %"]
        if row.cost
        else [row.case, f"{row.size:,}", row.mode, "less than a wait", ""]
        for row in rows
    ]
    columns = ("case", "bytes", "memory", "instructions", "spread")
    print_table(columns, cells, title="guest instructions of one call, median of all")
