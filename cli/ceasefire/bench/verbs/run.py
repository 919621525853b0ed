# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench run`, and what it shares with `bench munmap`: measure, then show."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from ceasefire import modes, remedies
from ceasefire.bench.catalog import spec
from ceasefire.bench.measure import programs, runner, schedule
from ceasefire.bench.results import store
from ceasefire.bench.verbs import options, show
from ceasefire.errors import Failure, UsageError
from ceasefire.output import progress
from ceasefire.vm.spec import ACCELERATORS, EMULATOR_HELP, STOCK_EMULATOR

# Less, and some programs under test count whole seconds.
_QUICK_SECONDS = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench run`."""
    add = parser.add_argument
    add("name", nargs="*", metavar="NAME", help="a suite, or benchmarks (default: default)")
    add("--quick", action="store_true", help="one round, small guests; without NAME: suite `quick`")
    add("--rounds", type=int, metavar="N", help="samples of each mode (default: the suite's)")
    add("--seconds", type=float, metavar="S", help="length of a sample (default: the suite's)")
    add("--cpus", metavar="LIST", help="only guests with so many CPUs")
    add("--modes", metavar="LIST", help="only these modes (`bench list` has all), and off")
    add("--stock", action="store_true", help="measure `off` on the stock kernel, too")
    add_where(parser)


def add_where(parser: argparse.ArgumentParser) -> None:
    """Declare where to measure and where results go."""
    add = parser.add_argument
    add("--out", metavar="DIR", help="where results go; results that are there are continued")
    add("--kernel", default="run", metavar="KIND", help="run, debug, stock or a bzImage")
    add("--accel", choices=ACCELERATORS, default="auto", help="default: auto")
    add("--in-place", action="store_true", help="measure this machine and its kernel, no guest")
    add(
        "--one-clock",
        action="store_true",
        help="emulated CPUs take turns: none is late because the host is busy; for counts only",
    )
    add("--emulator", default=STOCK_EMULATOR, metavar="NAME", help=EMULATOR_HELP)
    add(
        "--sources",
        default="",
        metavar="LIST",
        help="what mode abis believes: uncached,inserted (the latter needs --emulator built)",
    )
    add("--dir", default="", metavar="DIR", help="with --in-place: folder for files ($TMPDIR)")


def main(args: argparse.Namespace) -> int:
    """Measure, then show what came of it."""
    suite = spec.choose(args.name or ["quick" if args.quick else "default"])
    if args.quick and args.name:
        suite = _once(suite, chosen=bool(args.cpus))
    suite = _changed(suite, args)
    cpus = options.numbers("--cpus", args.cpus, 1, options.MAX_CPUS) if args.cpus else []
    if not schedule.boots(suite, cpus=cpus):
        raise UsageError(f"--cpus {args.cpus}: no benchmark of the suite wants such a guest")
    folder, status = measure(suite, args, cpus, chosen_modes(suite, args))
    return max(status, show.table(folder.path))


def chosen_modes(suite: spec.Suite, args: argparse.Namespace) -> list[str]:
    """Return the modes that the options choose, else the suite; none for all that are usual."""
    stock = modes.STOCK.name
    there = list(dict.fromkeys(mode for b in suite.benchmarks for mode in b.modes()))
    usual = list(suite.modes) or there
    words = args.modes.split(",") if args.modes is not None else list(suite.modes)
    for word in words:
        if word not in there and not spec.is_of_kernel(word):
            known = ", ".join([*there, stock])
            raise UsageError(f"--modes: '{word}' is none of {known}, or mechanisms joined by +")
    if (args.stock or stock in words) and (args.in_place or args.kernel == modes.STOCK.kernel):
        raise UsageError("two kernels are compared in guests: leave out --in-place, --kernel")
    # A kernel without ceasefire has what needs none of its mechanisms.
    if args.kernel == modes.STOCK.kernel and args.modes is None:
        words = [mode for mode in usual if not store.works(mode)]
    if not words and not args.stock:
        return []
    return [*(words or there), *([stock] if args.stock and stock not in words else [])]


def measure(
    suite: spec.Suite,
    args: argparse.Namespace,
    cpus: Sequence[int] = (),
    chosen: Sequence[str] = (),
) -> tuple[store.Folder, int]:
    """Take the samples that are not there yet; return where they are and the status."""
    if args.dir and not args.in_place:
        raise UsageError("--dir is for --in-place; guests have disks of their own")
    if args.one_clock and (args.in_place or args.accel == "kvm"):
        raise UsageError("--one-clock emulates the CPUs: leave out --in-place and --accel kvm")
    folder = store.Folder(args.out, suite.name)
    done = store.read(folder.path).done() if folder.exists() else set()
    boots = schedule.boots(suite, done, cpus, chosen)
    needed = [name for boot in boots for bench in boot.benchmarks for name in bench.needs]
    if lost := programs.missing(needed):
        raise Failure(f"{', '.join(lost)} missing: {remedies.applications()}")
    if done:
        progress(f"{len(done)} samples are there already")
    if args.in_place and (args.sources or args.emulator != STOCK_EMULATOR):
        raise UsageError("--emulator and --sources are for guests: leave out --in-place")
    where = runner.Where(
        args.kernel,
        args.accel,
        args.in_place,
        args.dir,
        args.one_clock,
        args.emulator,
        args.sources.replace(",", " "),
    )
    try:
        return folder, runner.measure(suite, boots, folder, where) if boots else 0
    except KeyboardInterrupt:
        progress(f"interrupted; to go on: the same command with --out {folder.path}")
        raise


def _once(suite: spec.Suite, *, chosen: bool) -> spec.Suite:
    """Return a suite that shows whether all of it runs, and nothing else.

    chosen: the user has said with how many CPUs, else with as few as there are.
    """
    small = tuple(
        bench if chosen else replace(bench, cpus=(min(bench.cpus),)) for bench in suite.benchmarks
    )
    return replace(suite, benchmarks=small, rounds=1, seconds=_QUICK_SECONDS)


def _changed(suite: spec.Suite, args: argparse.Namespace) -> spec.Suite:
    rounds = suite.rounds if args.rounds is None else args.rounds
    if not 1 <= rounds <= 1000:
        raise UsageError("--rounds is from 1 to 1000")
    seconds = options.seconds(suite.seconds if args.seconds is None else args.seconds)
    return replace(suite, rounds=rounds, seconds=seconds)
