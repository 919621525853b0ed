# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench instructions` and `idle-cost`: guest instructions of short operations.

Both boot one-CPU guests under QEMU's -icount, where virtual time advances by one nanosecond an
instruction. Kernels take turns, so that what drifts on the host hits all of them; virtual time
does not depend on the host anyway.
"""

import argparse
import shlex
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ceasefire.bench import beside, plan, records, steps
from ceasefire.bench.munmap import judge
from ceasefire.bench.records import CycleSample
from ceasefire.bench.store import ResultFolder
from ceasefire.errors import Failure, UsageError
from ceasefire.output import print_table, progress
from ceasefire.vm import GuestSpec, run_guest
from ceasefire.vm.command import DISK_DIR
from ceasefire.vm.spec import DiskSpec

IDLE_CASES = ("page-fault", "mmap-munmap", "mmap-read-munmap-1", "write-null", "write-file")
# Those that are counted with another CPU, too.
SKIP_CASES = ("mmap-read-munmap-1", "mmap-read-munmap-4", "mmap-read-munmap-16", "mmap-munmap")
# Limits flush now and then.
_FLUSHED = 0.05
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
_GUEST_LIMIT = 1800.0
# An idle guest waits in real time: with sleep=off its clock leaps while the host serves a file,
# and the limits of its own start-up pass before the work is done.
_IDLE_IN_REAL_TIME = ("-icount", "shift=0,sleep=on")
_MAX = 1000


@dataclass(frozen=True)
class Cost:
    """Instructions of one operation over all repeats of all boots."""

    lowest: float
    median: float

    def percent_of(self, base: "Cost") -> float:
        """Return the median as percent of another one."""
        return 100.0 * self.median / base.median


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
        help="instead: instructions by function of the kernel, for one case; MAPPING is plain"
        " or fpr (default: plain)",
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
    samples = _measure(args, "instructions", kernels, place, disks=steps.DISKS)
    if "run" in kernels:
        samples += _skips(args.repeats)
    print_costs(costs_of(samples))
    return 0


def _skips(repeats: str) -> list[CycleSample]:
    """Count cycles that skip: another CPU runs the process, too.

    With one CPU there is nobody to interrupt, and munmap() flushes that CPU instead.
    """
    progress("run kernel under -icount, two CPUs, about a minute")
    program = plan.find_tool("cycle-bench", "instructions")
    words = [str(program), "--json", "--peer", "--variant", "fpr", "--ms", "20"]
    words += ["--repeats", str(_number("--repeats", repeats) + 1), "--dir", f"{DISK_DIR}/0"]
    for case in SKIP_CASES:
        words += ["--case", case]
    samples = []
    for line in beside.count(words, "cycle", cpus=2):
        # The first ones ask for the memory of tags.
        if line["type"] != "cycle" or line["repeat"] == 0:
            continue
        if line["counters"]["nr_tlb_remote_flush"] > line["ops"] * _FLUSHED:
            raise Failure(f"{line['case']}: flushes were sent, not skipped")
        cost = line["instructions"] / line["ops"]
        samples.append(CycleSample("run", 0, line["case"], "fpr, skip", cost))
    return samples


def parse_profile(wanted: str) -> tuple[str, str]:
    """Return the case and the mapping that --profile names."""
    case, _, variant = wanted.partition(":")
    variant = variant or "plain"
    if not case or variant not in ("plain", "fpr"):
        raise UsageError(f"--profile {wanted}: it is CASE, or CASE:MAPPING with plain or fpr")
    return case, variant


def _profile(wanted: str, kernels: Sequence[str]) -> int:
    """Print where the instructions of a case go, for each kernel that knows the mapping."""
    case, variant = parse_profile(wanted)
    if variant != "plain":
        kernels = [kernel for kernel in kernels if kernel != _BASE]
    if not kernels:
        raise UsageError(f"--profile {wanted}: the stock kernel has no MAP_FPR, add run")
    for kernel in kernels:
        progress(f"{kernel} kernel, {case}, {variant}: under a minute")
        profile = steps.measure(kernel, case, variant)
        steps.print_profile(profile, f"{case}, {variant}, {kernel} kernel: instructions")
    return 0


def idle_main(args: argparse.Namespace) -> int:
    """Measure what has nothing to do with MAP_FPR; 1 when it costs too much."""
    words = ["--variant", "plain"]
    for case in IDLE_CASES:
        words += ["--case", case]
    for name, command in PROGRAMS.items():
        if shutil.which(name):
            words += ["--program", f"{name}={command.format(text=_TEXT)}"]
        else:
            progress(f"{name} is not installed and left out: `make deps-bench` installs it")
    before = f"seq 1 {_LINES} >{_TEXT}"
    samples = _measure(args, "idle-cost", ["run", _BASE], words, before)
    costs = costs_of(samples)
    worst = print_idle(costs)
    if worst > IDLE_LIMIT_PERCENT:
        progress(f"idle cost {worst:+.2f} %: more than the {IDLE_LIMIT_PERCENT} % allowed")
        return 1
    return 0


def _measure(
    args: argparse.Namespace,
    verb: str,
    kernels: Sequence[str],
    words: Sequence[str],
    before: str = "true",
    *,
    disks: tuple[DiskSpec, ...] = (),
) -> list[CycleSample]:
    """Boot every kernel as often as asked, in turn; return all samples.

    words: options of cycle-bench. before: a shell command that is run in each guest first.
    """
    boots, repeats, ms = (
        _number(option, text)
        for option, text in (
            ("--boots", args.boots),
            ("--repeats", args.repeats),
            ("--ms", args.ms),
        )
    )
    program = plan.find_tool("cycle-bench", "instructions")
    words = [str(program), "--json", "--repeats", str(repeats), "--ms", str(ms), *words]
    command = ["sh", "-c", f"{before} && exec {shlex.join(words)}"]
    folder = ResultFolder(verb, args.out)
    total = boots * len(kernels)
    for number in range(total):
        boot, kernel = divmod(number, len(kernels))
        # Every other boot in the other order.
        name = kernels[kernel if boot % 2 == 0 else len(kernels) - 1 - kernel]
        progress(f"{name} kernel under -icount, boot {number + 1} of {total}, about a minute")
        folder.add_record(
            records.host_record(
                f"bench {verb}",
                where="in a guest with one emulated CPU, -icount shift=0",
                accel="tcg",
                kernel_kind=name,
                boot=boot,
                cpus=1,
                comparable=False,
            )
        )
        spec = GuestSpec(
            kernel=name,
            cpus=1,
            icount=True,
            accel="tcg",
            timeout=_GUEST_LIMIT,
            qemu_args=_IDLE_IN_REAL_TIME,
            disks=disks,
        )
        result = run_guest(spec, command, name=f"bench-{verb}", cwd=Path("/"))
        folder.add_text(result.stdout.decode("utf-8", errors="replace"))
        judge(result.check(), result.stderr.decode(errors="replace"))
    samples = records.cycle_samples(records.read_file(folder.lines))
    missing = set(kernels) - {sample.kernel for sample in samples}
    if missing:
        raise Failure(f"no samples came from the {', '.join(sorted(missing))} kernel")
    progress(f"raw lines: {folder.lines}")
    return samples


def costs_of(samples: Iterable[CycleSample]) -> dict[tuple[str, str, str], Cost]:
    """Return the cost of each (case, kernel, variant), in the order of the samples."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for sample in samples:
        key = (sample.case, sample.kernel, sample.variant)
        groups.setdefault(key, []).append(sample.ns_per_op)
    return {key: Cost(min(values), median(values)) for key, values in groups.items()}


def print_costs(costs: dict[tuple[str, str, str], Cost]) -> None:
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


def print_idle(costs: dict[tuple[str, str, str], Cost]) -> float:
    """Print what FPR costs those who do not use it; return the worst, in percent."""
    rows = []
    worst = float("-inf")
    for case in dict.fromkeys(case for case, _, _ in costs):
        stock, run = costs[case, _BASE, "plain"], costs[case, "run", "plain"]
        more = run.percent_of(stock) - 100
        worst = max(worst, more)
        verdict = "pass" if more <= IDLE_LIMIT_PERCENT else "fail"
        rows.append([case, f"{stock.median:,.0f}", f"{run.median:,.0f}", f"{more:+.2f} %", verdict])
    columns = ("case", "stock", "with FPR, unused", "more", f"limit {IDLE_LIMIT_PERCENT} %")
    print_table(columns, rows, title="guest instructions of one operation, medians")
    return worst


def _number(option: str, text: str) -> int:
    numbers = plan.parse_numbers(option, text, 1, _MAX)
    if len(numbers) != 1:
        raise UsageError(f"{option} {text}: give one number")
    return numbers[0]
