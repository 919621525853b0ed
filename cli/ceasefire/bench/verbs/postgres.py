# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench postgres`: PostgreSQL with one set of page tables for its shared buffers."""

import argparse
from collections.abc import Iterable
from statistics import median

from ceasefire.bench.apps.postgres import NONE, PLAIN, SHARED
from ceasefire.bench.measure import postgres
from ceasefire.bench.measure.postgres import FAULTS, RATE, TABLES
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Sample
from ceasefire.bench.verbs import options
from ceasefire.errors import Failure
from ceasefire.output import progress
from ceasefire.tables import print_table

_MAX_ROUNDS = 100
_MAX_SECONDS = 600
# Of what the buffers take without them.
MOST_TABLES = 0.25
LEAST_RATE = 0.98


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", default="3", metavar="N", help="rounds of both (default: 3)")
    parser.add_argument(
        "--seconds", default="20", metavar="N", help="length of a sample (default: 20)"
    )
    parser.add_argument("--out", metavar="DIR", help="where results go (default: the build folder)")


def main(args: argparse.Namespace) -> int:
    """Measure; 1 when page tables or transactions are not what they have to be."""
    rounds = options.number("--rounds", args.rounds, _MAX_ROUNDS)
    seconds = options.number("--seconds", args.seconds, _MAX_SECONDS)
    folder = store.Folder(args.out, "postgres", fresh=True)
    folder.add({"type": "suite", "name": "postgres", "rounds": rounds})
    postgres.measure(folder, rounds, seconds)
    progress(f"raw lines: {folder.lines}")
    missed = print_samples(store.read(folder.path).samples)
    for line in missed:
        progress(line)
    return int(bool(missed))


def print_samples(samples: Iterable[Sample]) -> list[str]:
    """Print the medians of all ways; return what is not as it has to be."""
    found: dict[str, dict[str, list[float]]] = {}
    for sample in samples:
        for name in (TABLES, FAULTS, RATE):
            values = found.setdefault(sample.mode, {}).setdefault(name, [])
            values.append(float(sample.metrics[name]))
    if missing := [way for way in (PLAIN, SHARED, NONE) if way not in found]:
        raise Failure(f"there are no samples of: {', '.join(missing)}")
    middle = {way: {n: median(v) for n, v in names.items()} for way, names in found.items()}
    rates = found[SHARED][RATE], found[PLAIN][RATE]
    ratios = sorted(shared / plain for shared, plain in zip(*rates, strict=True))
    base = middle[NONE][TABLES]
    tables = {way: middle[way][TABLES] - base for way in (PLAIN, SHARED)}
    cells = []
    for way in (PLAIN, SHARED, NONE):
        of_buffers = "" if way == NONE else f"{tables[way]:,.0f}"
        rate = f"{median(ratios):.2f} ({ratios[0]:.2f}..{ratios[-1]:.2f})" if way == SHARED else ""
        of_way = middle[way]
        cells.append([way, f"{of_way[TABLES]:,.0f}", of_buffers, f"{of_way[FAULTS]:,.0f}", rate])
    columns = ("way", "tables, kB", "of buffers", "faults", "transactions")
    print_table(
        columns,
        cells,
        title="page tables and minor faults of 16 connections, transactions to plain",
    )
    missed = []
    if tables[SHARED] > MOST_TABLES * tables[PLAIN]:
        missed.append(f"page tables of the buffers are more than {MOST_TABLES:.0%}")
    if middle[SHARED][FAULTS] >= middle[PLAIN][FAULTS]:
        missed.append("page faults are no fewer")
    if median(ratios) < LEAST_RATE:
        missed.append(f"transactions are less than {LEAST_RATE:.2f}")
    return missed
