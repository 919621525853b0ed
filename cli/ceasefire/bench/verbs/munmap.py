# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench munmap`: the mixes of threads of the FPR paper, as a suite made of options.

The benchmarks are `munmap-1` to `munmap-5` of the suites, with other sizes and devices, and beside
them what is possible without shootdowns (figures/ideal.py).
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from ceasefire import modes
from ceasefire.bench.catalog import spec
from ceasefire.bench.figures import ideal
from ceasefire.bench.measure import machine
from ceasefire.bench.verbs import options, run, show
from ceasefire.errors import Unsupported, UsageError

PAGE = "page.html"
_MEMORY_BASE_MIB = 768
_MEMORY_PER_CPU_MIB = 32
_ON_FILE_SYSTEM = "--dir {work}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench munmap`."""
    add = parser.add_argument
    add("--cases", default="1-5", metavar="LIST", help="thread mixes, 1 to 5 (default: 1-5)")
    add("--cpus", default="2", metavar="LIST", help="guests with so many CPUs (default: 2)")
    add(
        "--processes",
        default="1",
        metavar="LIST",
        help="processes that map the same files (default: 1)",
    )
    add("--pages", default="1", metavar="N", help="pages of a mapping (default: 1)")
    add("--rounds", default="5", metavar="N", help="rounds of all modes (default: 5)")
    add("--seconds", type=float, default=2.0, metavar="S", help="length of a sample (default: 2)")
    add(
        "--disk",
        choices=("brd-ext4", "null_blk"),
        default="null_blk",
        help="what the guest maps: the device itself, or a file on ext4 (default: null_blk)",
    )
    add("--modes", metavar="LIST", help="only these modes, and off (default: off, fpr, ideals)")
    run.add_where(parser)
    parser.set_defaults(stock=False)


def main(args: argparse.Namespace) -> int:
    """Measure, show what came of it, write the page of it."""
    suite = suite_of(args)
    if args.in_place:
        check_in_place([cpus for bench in suite.benchmarks for cpus in bench.cpus])
    folder, status = run.measure(suite, args, chosen=run.chosen_modes(suite, args))
    status = max(status, show.table(folder.path))
    show.write_page([folder.path], folder.path / PAGE)
    return status


def suite_of(args: argparse.Namespace) -> spec.Suite:
    """Return what the options ask for."""
    cases = options.numbers("--cases", args.cases, 1, 5)
    cpu_counts = options.numbers("--cpus", args.cpus, 2, options.MAX_CPUS)
    processes = options.numbers("--processes", args.processes, 1, options.MAX_CPUS)
    pages = options.number("--pages", args.pages, 4096)
    rounds = options.number("--rounds", args.rounds, 10000)
    seconds = options.seconds(args.seconds)
    known, _ = spec.load_all()
    benchmarks = []
    for cpus in cpu_counts:
        for count in processes:
            for case in cases:
                bench = variant(known[f"munmap-{case}"], case, cpus, count, pages)
                if args.in_place or cpus <= machine.host_cpus():
                    bench = replace(bench, instead=ideals_of(case))
                if args.in_place or args.disk == "brd-ext4":
                    bench = on_file_system(bench, guest=not args.in_place)
                benchmarks.append(bench)
    return spec.Suite("munmap", "the thread mixes of the paper", tuple(benchmarks), rounds, seconds)


def variant(
    bench: spec.Benchmark, case: int, cpus: int, processes: int, pages: int
) -> spec.Benchmark:
    """Return a benchmark in the size that is asked for, with a name and a title that say so."""
    sizes = [("processes", processes), ("pages", pages)]
    told = [(word, number) for word, number in sizes if number > 1]
    return replace(
        bench,
        name=bench.name + "".join(f"-{word}-{number}" for word, number in told),
        title=bench.title + "".join(f", {number} {word}" for word, number in told),
        cpus=(cpus,),
        memory=f"{_MEMORY_BASE_MIB + cpus * _MEMORY_PER_CPU_MIB}M",
        parameters={
            **(bench.parameters or {}),
            "threads": str(threads(case, cpus, processes)),
            "processes": str(processes),
            "pages": str(pages),
        },
    )


def threads(case: int, cpus: int, processes: int) -> int:
    """Return those of one process: all CPUs between the processes, but never a lonely thread."""
    share = max(2, cpus // processes)
    return share - share % 2 if case == 4 else share


def ideals_of(case: int) -> dict[str, str]:
    """Return what is measured beside, where throughput means something: the ideals of a case."""
    names = [ideal.COMPUTE, ideal.IO] if case in (2, 3, 4) else [ideal.IO]
    return dict.fromkeys(names, "{command}")


def on_file_system(bench: spec.Benchmark, *, guest: bool) -> spec.Benchmark:
    """Return a benchmark that maps a file of a file system instead of a device."""
    parameters = {**(bench.parameters or {}), "place": _ON_FILE_SYSTEM}
    return replace(bench, disks=("brd-ext4",) if guest else (), parameters=parameters)


def check_in_place(cpu_counts: Sequence[int]) -> None:
    """Refuse what this machine cannot show."""
    if not modes.FPR.enabled():
        raise Unsupported("this kernel has no FPR, or it is off: leave --in-place out for a guest")
    if max(cpu_counts) > machine.host_cpus():
        raise UsageError(f"--cpus: this machine has only {machine.host_cpus()} CPUs")
