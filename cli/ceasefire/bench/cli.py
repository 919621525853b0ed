# SPDX-License-Identifier: GPL-2.0-only
"""Measure: suites of benchmarks and applications, munmap, the length of the kernel's paths.

list, run and compare are about suites: benchmarks without FPR, with it, and with what one would
use instead, interleaved in the same boot. munmap runs the five thread mixes of the FPR paper with
MAP_FPR and without it. instructions counts what one mmap-read-munmap cycle costs the kernel.
idle-cost checks that a kernel that has FPR compiled in, but unused, is as fast as one without it,
beside-cost that a program is as fast beside one that uses FPR as beside one that does not.
report shows results again; keep makes them small enough for the repository.

In an emulated guest only counts, ratios and instructions mean something; no time is shown.
"""

import argparse

from ceasefire.bench import beside, instructions, munmap, report
from ceasefire.bench.suite import keep, verbs

_SUITES = {"list": verbs.list_main, "run": verbs.run_main, "compare": verbs.compare_main}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the kinds of measurement and their options."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for name, add, text in (
        ("list", verbs.add_list_arguments, "the benchmarks and suites there are"),
        ("run", verbs.add_run_arguments, "measure a suite, or benchmarks by name"),
        ("compare", verbs.add_compare_arguments, "the table of a run, or of several"),
    ):
        add(kinds.add_parser(name, help=text, description=text))
    for name, module, text in (
        ("munmap", munmap, "the five munmap cases: shootdowns and throughput, on against off"),
        ("instructions", instructions, "instructions of one operation, against a stock kernel"),
        ("beside-cost", beside, "the cost of FPR for programs beside one that uses it"),
        ("report", report, "tables, plots, the page, or a text of earlier results"),
        ("keep", keep, "keep results in the repository, for docs/results.md"),
    ):
        module.add_arguments(kinds.add_parser(name, help=text, description=text))
    idle = "the cost of FPR while nobody uses it: at most half a percent"
    instructions.add_idle_arguments(kinds.add_parser("idle-cost", help=idle, description=idle))


def main(args: argparse.Namespace) -> int:
    """Run the chosen kind and return the exit status."""
    if args.kind in _SUITES:
        return _SUITES[args.kind](args)
    if args.kind == "munmap":
        return munmap.main(args)
    if args.kind == "instructions":
        return instructions.main(args)
    if args.kind == "idle-cost":
        return instructions.idle_main(args)
    if args.kind == "beside-cost":
        return beside.main(args)
    if args.kind == "keep":
        return keep.main(args)
    return report.main(args)
