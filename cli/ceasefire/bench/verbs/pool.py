# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench morsel-pool`: a buffer pool that evicts, lazily and otherwise."""

import argparse
from collections.abc import Iterable
from statistics import median

from ceasefire.bench.measure import pool
from ceasefire.bench.measure.pool import (
    DONTNEED,
    LAZY,
    POOL,
    PROCESSES,
    RATE,
    RECEIVED,
    TREE,
    VECTOR,
    WAYS,
)
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Sample
from ceasefire.bench.verbs import options
from ceasefire.errors import Failure, UsageError
from ceasefire.output import progress
from ceasefire.sizes import parse_size
from ceasefire.tables import print_table

_MAX_ROUNDS = 1000
_MAX_SECONDS = 600
# Shootdowns of lazy to those of the vector; uses of lazy to those of the others, with two CPUs.
MOST_RECEIVED = 0.01
LEAST_RATE = {VECTOR: 1.0, DONTNEED: 1.2}
_TITLES = {POOL: "a pool", PROCESSES: "a pool of several processes", TREE: "a B+ tree in a pool"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--cpus", default="2,8", metavar="LIST", help="CPUs of the guests (default: 2,8)"
    )
    parser.add_argument(
        "--rounds", default="5", metavar="N", help="rounds of all ways (default: 5)"
    )
    parser.add_argument(
        "--seconds", default="4", metavar="N", help="length of a sample (default: 4)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--tree",
        action="store_true",
        help="of a B+ tree whose records are read (ycsb-bench), not of pages alone",
    )
    which.add_argument(
        "--processes", action="store_true", help="a process on each CPU, not a thread"
    )
    parser.add_argument(
        "--one-clock",
        action="store_true",
        help="emulated CPUs take turns: none is late because the host is busy; for counts only",
    )
    parser.add_argument(
        "--table",
        default="1G",
        metavar="SIZE",
        help="of which 64 MiB are in memory, not with --tree (default: %(default)s)",
    )
    parser.add_argument("--out", metavar="DIR", help="where results go (default: the build folder)")


def main(args: argparse.Namespace) -> int:
    """Measure; 1 when lazy eviction interrupts too often, or is slower than it has to be."""
    cpus = options.numbers("--cpus", args.cpus, 2, options.MAX_CPUS)
    rounds = options.number("--rounds", args.rounds, _MAX_ROUNDS)
    seconds = options.number("--seconds", args.seconds, _MAX_SECONDS)
    table = parse_size(args.table) >> 20
    if not pool.TABLE_LEAST <= table <= pool.TABLE_MOST:
        raise UsageError(f"--table {args.table}: give a size from 128M to 1T")
    folder = store.Folder(args.out, "morsel-pool", fresh=True)
    folder.add({"type": "suite", "name": "morsel-pool", "rounds": rounds})
    what = TREE if args.tree else PROCESSES if args.processes else POOL
    pool.measure(folder, cpus, rounds, seconds, what, one_clock=args.one_clock, table=table)
    progress(f"raw lines: {folder.lines}")
    missed = print_samples(store.read(folder.path).samples, rates=not args.one_clock)
    for line in missed:
        progress(line)
    return int(bool(missed))


def print_samples(samples: Iterable[Sample], *, rates: bool = True) -> list[str]:
    """Print the medians of all ways; return what is not as it has to be.

    rates: of them, too.
    """
    found: dict[int, dict[str, dict[str, list[float]]]] = {}
    what = POOL
    for sample in samples:
        what = sample.benchmark
        for name in (RATE, RECEIVED):
            of_way = found.setdefault(sample.cpus, {}).setdefault(sample.mode, {})
            of_way.setdefault(name, []).append(float(sample.metrics[name]))
    cells, missed = [], []
    for cpus, ways in found.items():
        if missing := [way for way in WAYS[what] if way not in ways]:
            raise Failure(f"there are no samples of: {', '.join(missing)}")
        base = median(ways[VECTOR][RECEIVED])
        for way in WAYS[what]:
            count = median(ways[way][RECEIVED])
            share = f"{count / base:.2%}" if base else ""
            ratios = _ratios(ways[LAZY][RATE], ways[way][RATE])
            rate = f"{median(ratios):.2f} ({ratios[0]:.2f}..{ratios[-1]:.2f})"
            cells.append([str(cpus), way, f"{count:.5f}", share, "" if way == LAZY else rate])
            if way == LAZY and count > MOST_RECEIVED * base:
                missed.append(
                    f"{cpus} CPUs: lazy has more than {MOST_RECEIVED:.0%} of the shootdowns"
                )
            least = LEAST_RATE.get(way, 0) if what == POOL else 0
            if rates and cpus == 2 and median(ratios) < least:
                missed.append(f"{cpus} CPUs: lazy has less than {least} of the uses of {way}")
    columns = ("CPUs", "way", "received a page", "of the vector", "uses of lazy to it")
    title = f"{_TITLES[what]} whose pages are evicted 64 at a time"
    print_table(columns, cells, title=title)
    return missed


def _ratios(these: list[float], others: list[float]) -> list[float]:
    """Return the ratios of samples of the same round, sorted."""
    return sorted(this / other for this, other in zip(these, others, strict=True))
