# SPDX-License-Identifier: GPL-2.0-only
"""Measure: suites of benchmarks and applications, munmap, the length of the kernel's paths.

list, run and compare are about suites: benchmarks without FPR, with it, and with what one would
use instead, interleaved in the same boot. munmap runs the five thread mixes of the FPR paper with
MAP_FPR and without it. instructions counts what one mmap-read-munmap cycle costs the kernel.
idle-cost checks that a kernel that has FPR compiled in, but unused, is as fast as one without it,
beside-cost that a program is as fast beside one that uses FPR as beside one that does not.
sharers-cost counts what page tables of each CPU's own cost that CPU, morsels what morsels take
beside other shared memory. morsel-shootdowns counts who is interrupted when scattered pages of a
morsel are taken, morsel-pool compares a buffer pool that evicts lazily with others,
morsel-snapshots copies of a morsel with fork(), postgres says what one set of page tables for
shared buffers is worth.
bound checks for how long what a lazy process unmaps can be used, and how much memory waits.
report shows results again; keep makes them small enough for the repository.

In an emulated guest only counts, ratios and instructions mean something; no time is shown but
those of bound, which are compared with the guest's own ticks.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

from ceasefire.bench.verbs import (
    beside,
    bound,
    catalog,
    instructions,
    keep,
    morsels,
    munmap,
    pool,
    postgres,
    run,
    sharers,
    show,
    snapshots,
    vectors,
)


class Kind(NamedTuple):
    """A kind of measurement: how its options are declared, and what does it."""

    add: Callable[[argparse.ArgumentParser], None]
    main: Callable[[argparse.Namespace], int]
    help: str


KINDS = {
    "list": Kind(catalog.add_arguments, catalog.main, "the benchmarks and suites there are"),
    "run": Kind(run.add_arguments, run.main, "measure a suite, or benchmarks by name"),
    "compare": Kind(
        show.add_compare_arguments, show.compare_main, "the table of a run, or of several"
    ),
    "munmap": Kind(
        munmap.add_arguments,
        munmap.main,
        "the five munmap cases: shootdowns and throughput, on against off",
    ),
    "instructions": Kind(
        instructions.add_arguments,
        instructions.main,
        "instructions of one operation, against a stock kernel",
    ),
    "report": Kind(
        show.add_report_arguments,
        show.report_main,
        "tables, the page, or a text of earlier results",
    ),
    "keep": Kind(
        keep.add_arguments, keep.main, "keep results in the repository, for docs/results.md"
    ),
    "idle-cost": Kind(
        instructions.add_idle_arguments,
        instructions.idle_main,
        "the cost of FPR while nobody uses it: at most half a percent",
    ),
    "beside-cost": Kind(
        beside.add_arguments, beside.main, "the cost of FPR for programs beside one that uses it"
    ),
    "sharers-cost": Kind(
        sharers.add_arguments,
        sharers.main,
        "what page tables of each CPU's own cost that CPU",
    ),
    "morsels": Kind(
        morsels.add_arguments,
        morsels.main,
        "morsels beside other shared memory, in instructions",
    ),
    "morsel-shootdowns": Kind(
        vectors.add_arguments,
        vectors.main,
        "who is interrupted when scattered pages of a morsel are taken",
    ),
    "morsel-pool": Kind(
        pool.add_arguments,
        pool.main,
        "a buffer pool that evicts, lazily and otherwise",
    ),
    "morsel-snapshots": Kind(
        snapshots.add_arguments,
        snapshots.main,
        "snapshots of a table that is written to: copies of a morsel, and fork()",
    ),
    "postgres": Kind(
        postgres.add_arguments,
        postgres.main,
        "PostgreSQL with one set of page tables for its shared buffers",
    ),
    "bound": Kind(
        bound.add_arguments,
        bound.main,
        "for how long what a lazy munmap leaves can be used, and how much memory waits",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the kinds of measurement and their options."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for name, kind in KINDS.items():
        kind.add(kinds.add_parser(name, help=kind.help, description=kind.help))


def main(args: argparse.Namespace) -> int:
    """Run the chosen kind and return the exit status."""
    return KINDS[args.kind].main(args)
