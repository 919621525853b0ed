# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench list`, `run` and `compare`."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from ceasefire.bench import plan as numbers
from ceasefire.bench.suite import plan, results, runner, spec
from ceasefire.bench.suite.compare import Comparison, Interval, comparisons
from ceasefire.bench.suite.spec import BASELINE, STOCK
from ceasefire.errors import Failure, UsageError
from ceasefire.output import print_table, progress, say
from ceasefire.vm.spec import ACCELERATORS


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench list`."""
    parser.add_argument("--json", action="store_true", help="print JSON, an object a benchmark")


def list_main(args: argparse.Namespace) -> int:
    """Print all benchmarks and suites."""
    benchmarks, suites = spec.load_all()
    inside = {
        name: [s.name for s in suites.values() if name in {b.name for b in s.benchmarks}]
        for name in benchmarks
    }
    if args.json:
        for bench in benchmarks.values():
            record = {"name": bench.name, "group": bench.group, "title": bench.title}
            modes = {"modes": list(bench.modes), "cpus": list(bench.cpus)}
            print(json.dumps({**record, **modes, "suites": inside[bench.name]}))
        return 0
    rows = [
        [b.name, b.group, ", ".join(map(str, b.cpus)), ", ".join(b.modes), b.title]
        for b in benchmarks.values()
    ]
    print_table(("benchmark", "group", "CPUs", "modes", "what"), rows, numbers_from=9)
    rows = [[s.name, str(len(s.benchmarks)), _minutes(s), s.title] for s in suites.values()]
    print_table(("suite", "benchmarks", "minutes", "what"), rows, title="Suites", numbers_from=9)
    return 0


def _minutes(suite: spec.Suite) -> str:
    seconds = sum(boot.seconds(suite.seconds) for boot in plan.boots(suite))
    return f"about {max(1, round(seconds / 60))}"


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench run`."""
    add = parser.add_argument
    add("name", nargs="*", metavar="NAME", help="a suite, or benchmarks (default: default)")
    add("--quick", action="store_true", help="the suite `quick`: under five minutes")
    add("--out", metavar="DIR", help="where results go; results that are there are continued")
    add("--rounds", type=int, metavar="N", help="samples of each mode (default: the suite's)")
    add("--seconds", type=float, metavar="S", help="length of a sample (default: the suite's)")
    add("--cpus", metavar="LIST", help="only guests with so many CPUs")
    add("--kernel", default="run", metavar="KIND", help="run, debug, stock or a bzImage")
    add("--stock", action="store_true", help="measure `off` on the stock kernel, too")
    add("--accel", choices=ACCELERATORS, default="auto", help="default: auto")
    add("--in-place", action="store_true", help="measure this machine and its kernel, no guest")
    add("--dir", default="", metavar="DIR", help="with --in-place: folder for files ($TMPDIR)")


def run_main(args: argparse.Namespace) -> int:
    """Measure, then show what came of it."""
    if args.quick and args.name:
        raise UsageError("--quick is a suite of its own: leave the names out")
    if args.dir and not args.in_place:
        raise UsageError("--dir is for --in-place; guests have disks of their own")
    if args.stock and (args.in_place or args.kernel == STOCK):
        raise UsageError("--stock compares two kernels in guests: leave out --in-place, --kernel")
    suite = _changed(spec.choose(args.name or ["quick" if args.quick else "default"]), args)
    cpus = numbers.parse_numbers("--cpus", args.cpus, 1, numbers.MAX_NUMBER) if args.cpus else []
    if not plan.boots(suite, cpus=cpus):
        raise UsageError(f"--cpus {args.cpus}: no benchmark of the suite wants such a guest")
    folder = results.Folder(args.out, suite.name)
    done = results.read(folder.path).done() if folder.exists() else set()
    boots = plan.boots(suite, done, cpus, stock=args.stock)
    if lost := plan.missing(bench for boot in boots for bench in boot.benchmarks):
        raise Failure(f"{', '.join(lost)} missing: run `make deps-bench` first")
    if done:
        progress(f"{len(done)} samples are there already")
    where = runner.Where(args.kernel, args.accel, args.in_place, args.dir)
    try:
        status = runner.measure(suite, boots, folder, where) if boots else 0
    except KeyboardInterrupt:
        progress(f"interrupted; to go on: the same command with --out {folder.path}")
        raise
    return max(status, show(folder.path))


def _changed(suite: spec.Suite, args: argparse.Namespace) -> spec.Suite:
    rounds = suite.rounds if args.rounds is None else args.rounds
    seconds = suite.seconds if args.seconds is None else args.seconds
    if not 1 <= rounds <= 1000:
        raise UsageError("--rounds is from 1 to 1000")
    if not 0.05 <= seconds <= 3600:
        raise UsageError("--seconds is from 0.05 to 3600")
    return spec.Suite(suite.name, suite.title, suite.benchmarks, rounds, seconds)


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench compare`."""
    parser.add_argument("folder", nargs="+", metavar="DIR", help="--out of a `bench run`")
    parser.add_argument("--json", action="store_true", help="print JSON, an object a comparison")
    parser.add_argument(
        "--against", default=BASELINE, metavar="MODE", help="compare with this mode (off)"
    )


def compare_main(args: argparse.Namespace) -> int:
    """Show the tables of some folders again."""
    folders = [Path(name) for name in args.folder]
    if not args.json:
        return max(show(folder, args.against) for folder in folders)
    for folder in folders:
        for c in comparisons(results.read(folder), args.against):
            print(json.dumps({"folder": str(folder), **_record(c, args.against)}))
    return 0


def _record(c: Comparison, against: str) -> dict[str, object]:
    shot = c.shootdowns
    return {
        "benchmark": c.benchmark,
        "mode": c.mode,
        "against": against,
        "cpus": c.cpus,
        "rounds": c.rounds,
        "ratios": {m: [i.middle, i.low, i.high] for m, i in c.ratios.items()},
        "latency": {q: [i.middle, i.low, i.high] for q, i in c.latency.items()},
        "received_per_operation": None if shot is None else [shot.off, shot.on],
        "received_share": None if shot is None else shot.share,
        "wrong": c.wrong,
        "different": c.different,
        "failed": list(c.failed),
        "outliers": list(c.outliers),
    }


def show(folder: Path, against: str = BASELINE) -> int:
    """Print the table of a folder; return 1 when something was wrong or failed."""
    found = results.read(folder)
    compared = comparisons(found, against)
    if not compared:
        raise Failure(f"{folder} has nothing to compare with mode {against} yet")
    per_operation, ratio = f"received/op {against}", f"ratio to {against}"
    print_table(
        ("benchmark", "CPUs", "mode", per_operation, "with", "left", ratio, "of what"),
        [_row(c) for c in compared],
        numbers_from=3,
    )
    for note in notes(found, compared):
        say(note)
    return 1 if any(c.wrong or c.different or c.failed for c in compared) else 0


def _row(c: Comparison) -> list[str]:
    shot = c.shootdowns
    name, ratio = next(iter(c.ratios.items()), ("", None))
    share = shot.share if shot is not None else None
    return [
        c.benchmark,
        str(c.cpus),
        c.mode,
        "-" if shot is None else f"{shot.off:.5f}",
        "-" if shot is None else f"{shot.on:.5f}",
        "-" if share is None else f"{100 * share:.2f} %",
        "-" if ratio is None else ratio_text(ratio),
        name,
    ]


def ratio_text(ratio: Interval) -> str:
    """Return a ratio with its interval."""
    return f"{ratio.middle:.2f} ({ratio.low:.2f}..{ratio.high:.2f})"


def notes(found: results.Results, compared: Sequence[Comparison]) -> list[str]:
    """Return what must be said beside the table."""
    said = [
        "Ratios are medians over the rounds with a 95 % bootstrap interval; received is the sum."
    ]
    if found.hosts:
        host = found.hosts[-1]
        said.append(f"Measured {host['where']}, {host['host_cpus']} CPUs in the host.")
        if "emulated" in str(host["where"]):
            said.append("Emulated CPUs: counts are exact, ratios an indication, times nothing.")
    if not all(c.comparable for c in compared):
        said.append("No ratios (-) where the guest has more CPUs than the host.")
    if any(c.mode == STOCK for c in compared):
        said.append(
            "stock: the command of off on a kernel without FPR, in boots of its own between the "
            "others; boots differ, so its ratios say less."
        )
    for c in compared:
        name = f"{c.benchmark}, {c.cpus} CPUs"
        said += [f"FAILED: {name}, {text}" for text in c.failed]
        if c.wrong:
            said.append(f"WRONG DATA: {name}, {c.mode}: {c.wrong}")
        if c.different:
            said.append(f"DIFFERENT OUTPUT: {name}, {c.mode}: in {c.different} samples")
        said += [f"outlier: {name}, {text}" for text in c.outliers]
    return list(dict.fromkeys(said))
