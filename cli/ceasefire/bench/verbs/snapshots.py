# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench morsel-snapshots`: a table that is written to, its copies, and fork()."""

import argparse
from collections.abc import Iterable
from statistics import median

from ceasefire.bench.measure import snapshots
from ceasefire.bench.measure.snapshots import (
    FAULTS,
    FORK,
    LONGEST,
    METRICS,
    MORSEL,
    NONE,
    RATE,
    RECEIVED,
    TOOK,
    WAYS,
)
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Sample
from ceasefire.bench.verbs import options
from ceasefire.errors import Failure
from ceasefire.output import progress
from ceasefire.tables import print_table

_MAX_ROUNDS = 1000
_MAX_SECONDS = 600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--cpus", default="2", metavar="LIST", help="CPUs of the guests (default: 2)"
    )
    parser.add_argument(
        "--rounds", default="5", metavar="N", help="rounds of all ways (default: 5)"
    )
    parser.add_argument(
        "--seconds", default="4", metavar="N", help="length of a sample (default: 4)"
    )
    parser.add_argument("--out", metavar="DIR", help="where results go (default: the build folder)")


def main(args: argparse.Namespace) -> int:
    """Measure; 1 when a copy takes longer to make than fork()."""
    cpus = options.numbers("--cpus", args.cpus, 2, options.MAX_CPUS)
    rounds = options.number("--rounds", args.rounds, _MAX_ROUNDS)
    seconds = options.number("--seconds", args.seconds, _MAX_SECONDS)
    folder = store.Folder(args.out, "morsel-snapshots", fresh=True)
    folder.add({"type": "suite", "name": "morsel-snapshots", "rounds": rounds})
    snapshots.measure(folder, cpus, rounds, seconds)
    progress(f"raw lines: {folder.lines}")
    missed = print_samples(store.read(folder.path).samples)
    for line in missed:
        progress(line)
    return int(bool(missed))


def print_samples(samples: Iterable[Sample]) -> list[str]:
    """Print the medians of all ways; return what is not as it has to be."""
    found: dict[int, dict[str, dict[str, list[float]]]] = {}
    for sample in samples:
        for name in METRICS:
            of_way = found.setdefault(sample.cpus, {}).setdefault(sample.mode, {})
            of_way.setdefault(name, []).append(float(sample.metrics[name]))
    cells, missed = [], []
    for cpus, ways in found.items():
        if missing := [way for way in WAYS if way not in ways]:
            raise Failure(f"there are no samples of: {', '.join(missing)}")
        for way in WAYS:
            middle = {name: median(values) for name, values in ways[way].items()}
            rates = sorted(
                this / other for this, other in zip(ways[way][RATE], ways[NONE][RATE], strict=True)
            )
            rate = f"{median(rates):.2f} ({rates[0]:.2f}..{rates[-1]:.2f})"
            share = f"{middle[TOOK] / median(ways[FORK][TOOK]):.1%}" if way == MORSEL else ""
            longest = f"{middle[LONGEST] / median(ways[NONE][LONGEST]):.1f}"
            counts = [f"{middle[FAULTS]:,.0f}", f"{middle[RECEIVED]:,.1f}"]
            if way == NONE:
                rate, longest, counts = "1", "1", ["", ""]
            cells.append([str(cpus), way, share, rate, longest, *counts])
        if median(ways[MORSEL][TOOK]) > median(ways[FORK][TOOK]):
            missed.append(f"{cpus} CPUs: a copy takes longer to make than fork()")
    columns = ("CPUs", "way", "of fork()", "writes", "longest", "faults", "received")
    print_table(columns, cells, title="snapshots of a table of 256 MiB that is written to")
    return missed
