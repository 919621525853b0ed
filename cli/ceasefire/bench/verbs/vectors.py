# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench morsel-shootdowns`: who is interrupted when a vector of pages is taken."""

import argparse
from collections.abc import Iterable

from ceasefire.bench.measure import vectors
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Sample
from ceasefire.bench.verbs import options
from ceasefire.output import progress
from ceasefire.tables import print_table

_MAX_ROUNDS = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--cpus", default="2,8", metavar="LIST", help="CPUs of the guests (default: 2,8)"
    )
    parser.add_argument(
        "--rounds", default="20", metavar="N", help="rounds of each way (default: 20)"
    )
    parser.add_argument("--out", metavar="DIR", help="where results go (default: the build folder)")


def main(args: argparse.Namespace) -> int:
    """Measure; 1 when a vector interrupts a CPU more than once."""
    cpus = options.numbers("--cpus", args.cpus, 2, options.MAX_CPUS)
    rounds = options.number("--rounds", args.rounds, _MAX_ROUNDS)
    folder = store.Folder(args.out, "morsel-shootdowns", fresh=True)
    folder.add({"type": "suite", "name": "morsel-shootdowns", "rounds": rounds})
    vectors.measure(folder, cpus, rounds)
    progress(f"raw lines: {folder.lines}")
    over = print_samples(store.read(folder.path).samples)
    if over:
        progress(f"a vector interrupts a CPU more than once: {', '.join(over)}")
    return int(bool(over))


def print_samples(samples: Iterable[Sample]) -> list[str]:
    """Print all; return where a vector interrupts more than once."""
    cells = []
    over = []
    for sample in samples:
        count = sample.metrics[vectors.RECEIVED]
        others = sample.cpus - 1
        if sample.mode == vectors.VECTOR and count > others:
            over.append(f"{sample.benchmark} with {sample.cpus} CPUs")
        processes, _, mappings = sample.benchmark.partition("x")
        cells.append(
            [
                str(sample.cpus),
                processes,
                mappings,
                sample.mode,
                f"{count:,.1f}",
                f"{count / others:,.2f}",
            ]
        )
    columns = ("CPUs", "processes", "mappings", "way", "received", "per CPU")
    print_table(columns, cells, title="shootdowns received when 64 pages are taken")
    return over
