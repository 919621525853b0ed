# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench instructions` and `idle-cost`: guest instructions of short operations."""

import argparse
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from ceasefire import remedies
from ceasefire.bench.cost import beside, count, profile
from ceasefire.bench.cost.count import Cost
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Folder
from ceasefire.bench.verbs import options
from ceasefire.errors import UsageError
from ceasefire.output import progress
from ceasefire.tables import print_table
from ceasefire.vm.command import DISK_DIR

IDLE_CASES = ("page-fault", "mmap-munmap", "mmap-read-munmap-1", "write-null", "write-file")
IDLE_LIMIT_PERCENT = 0.5
# Programs that map nothing, one run each; TEXT is a file in memory.
PROGRAMS = {
    "pbzip2": "pbzip2 -c -p1 {text}",
    "sort": "LC_ALL=C sort --parallel=1 -r {text}",
    "xz": "xz -1 -T1 -c {text}",
    "openssl": "openssl dgst -sha512 {text}",
}
_TEXT = "/tmp/ceasefire-text"
_LINES = 40000
_BASE = "stock"
_KERNELS = (_BASE, "run", "debug")
_MAX = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench instructions`."""
    parser.add_argument(
        "--kernels",
        default="run,stock",
        metavar="LIST",
        help="run, debug or stock; the ratios are against stock (default: run,stock)",
    )
    parser.add_argument(
        "--profile",
        metavar="CASE[:MAPPING]",
        help="instead: instructions by function of the kernel, for one case; MAPPING is plain,"
        " fpr or latr (default: plain)",
    )
    _add_common(parser, boots=1)


def add_idle_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench idle-cost`."""
    _add_common(parser, boots=3)


def _add_common(parser: argparse.ArgumentParser, boots: int) -> None:
    parser.add_argument(
        "--boots", default=str(boots), metavar="N", help=f"boots of each kernel (default: {boots})"
    )
    parser.add_argument(
        "--repeats", default="5", metavar="N", help="repeats of each case in a boot (default: 5)"
    )
    parser.add_argument(
        "--ms", default="100", metavar="N", help="virtual milliseconds of a repeat (default: 100)"
    )
    parser.add_argument("--out", metavar="DIR", help="where results go (default: the build folder)")


def main(args: argparse.Namespace) -> int:
    """Measure all cases on the chosen kernels."""
    kernels = args.kernels.split(",")
    for kernel in kernels:
        if kernel not in _KERNELS or kernels.count(kernel) > 1:
            raise UsageError(f"--kernels {args.kernels}: name run, debug and stock once each")
    if args.profile:
        return _profile(args.profile, kernels)
    place = ["--dir", f"{DISK_DIR}/0"]
    plan = _plan(args, "instructions", kernels, words=place, disks=profile.DISKS)
    folder = Folder(args.out, plan.name, fresh=True)
    count.measure(plan, folder)
    if "run" in kernels:
        beside.measure_skips(folder, plan.repeats)
    print_costs(_costs(folder))
    return 0


def _costs(folder: Folder) -> dict[tuple[str, str, str], Cost]:
    """Say where the lines are; return the costs of all that was measured."""
    progress(f"raw lines: {folder.lines}")
    return count.costs_of(store.read(folder.path).samples)


def parse_profile(wanted: str) -> tuple[str, str]:
    """Return the case and the mapping that --profile names."""
    case, _, variant = wanted.partition(":")
    variant = variant or "plain"
    if not case or variant not in ("plain", "fpr", "latr"):
        raise UsageError(f"--profile {wanted}: it is CASE, or CASE:MAPPING with plain, fpr or latr")
    return case, variant


def _profile(wanted: str, kernels: Sequence[str]) -> int:
    """Print where the instructions of a case go, for each kernel that knows the mapping."""
    case, variant = parse_profile(wanted)
    if variant != "plain":
        kernels = [kernel for kernel in kernels if kernel != _BASE]
    if not kernels:
        raise UsageError(f"--profile {wanted}: the stock kernel has no {variant}, add run")
    found = {}
    for kernel in kernels:
        progress(f"{kernel} kernel, {case}, {variant}: under a minute")
        found[kernel] = profile.measure(kernel, case, variant)
        profile.print_profile(found[kernel], f"{case}, {variant}, {kernel} kernel: instructions")
    if _BASE in found:
        for kernel in kernels:
            if kernel != _BASE:
                title = f"{case}, {variant}: instructions of {kernel} beyond {_BASE}"
                profile.print_differences(found[_BASE], found[kernel], title)
    return 0


def idle_main(args: argparse.Namespace) -> int:
    """Measure what has nothing to do with any mechanism; 1 when it costs too much."""
    words = [word for case in IDLE_CASES for word in ("--case", case)]
    for name, command in PROGRAMS.items():
        if shutil.which(name):
            words += ["--program", f"{name}={command.format(text=_TEXT)}"]
        else:
            progress(f"{name} is not installed and left out: {remedies.applications()}")
    before = f"seq 1 {_LINES} >{_TEXT}"
    folder = Folder(args.out, "idle-cost", fresh=True)
    # In guests of its own: a process that was lazy is not one that has never asked.
    for variant, kernels in (("plain", ["run", _BASE]), ("latr", ["run"])):
        more = ["--variant", variant, *words]
        count.measure(_plan(args, "idle-cost", kernels, words=more, before=before), folder)
    worst = print_idle(_costs(folder))
    if worst > IDLE_LIMIT_PERCENT:
        progress(f"idle cost {worst:+.2f} %: more than the {IDLE_LIMIT_PERCENT} % allowed")
        return 1
    return 0


def _plan(args: argparse.Namespace, name: str, kernels: Sequence[str], **more: Any) -> count.Plan:
    boots, repeats, ms = (
        options.number(option, text, _MAX)
        for option, text in (
            ("--boots", args.boots),
            ("--repeats", args.repeats),
            ("--ms", args.ms),
        )
    )
    return count.Plan(name, kernels, boots, repeats, ms, **more)


def print_costs(costs: Mapping[tuple[str, str, str], Cost]) -> None:
    """Print every case, with the stock kernel as the base where it was measured."""
    rows = []
    cases = list(dict.fromkeys(case for case, _, _ in costs))
    order = sorted(costs, key=lambda key: (cases.index(key[0]), _KERNELS.index(key[1]), key[2]))
    for key in order:
        (case, kernel, variant), cost = key, costs[key]
        base, plain = costs.get((case, _BASE, "plain")), costs.get((case, kernel, "plain"))
        rows.append(
            [
                case,
                kernel,
                variant,
                f"{cost.lowest:,.0f}",
                f"{cost.median:,.0f}",
                "-" if plain is None else f"{cost.percent_of(plain):.2f} %",
                "-" if base is None else f"{cost.percent_of(base):.2f} %",
            ]
        )
    columns = ("case", "kernel", "mapping", "lowest", "median", "of plain", "of stock")
    print_table(columns, rows, numbers_from=3, title="guest instructions of one operation")


def print_idle(costs: Mapping[tuple[str, str, str], Cost]) -> float:
    """Print what mechanisms cost where they have nothing to do; return the worst, in percent.

    Without one, against the stock kernel; and of a lazy process, against one that is not.
    """
    rows = []
    worst = float("-inf")
    for case in dict.fromkeys(case for case, _, _ in costs):
        stock, run, lazy = (
            costs[case, kernel, variant]
            for kernel, variant in ((_BASE, "plain"), ("run", "plain"), ("run", "latr"))
        )
        more = run.percent_of(stock) - 100, lazy.percent_of(run) - 100
        worst = max(worst, *more)
        verdict = "pass" if max(more) <= IDLE_LIMIT_PERCENT else "fail"
        medians = [f"{cost.median:,.0f}" for cost in (stock, run, lazy)]
        rows.append([case, *medians, *(f"{percent:+.2f} %" for percent in more), verdict])
    columns = ("case", "stock", "unused", "lazy", "unused, more", "lazy, more")
    limit = f"limit {IDLE_LIMIT_PERCENT} %"
    print_table((*columns, limit), rows, title="guest instructions of one operation, medians")
    return worst
