# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench beside-cost`: what FPR costs the programs beside one that uses it.

A guest with three CPUs runs under QEMU's -icount. On one CPU a program faults, allocates or talks
over TCP; on the other two a process maps and unmaps files, without MAP_FPR first and with it then
(bench/instructions/beside-bench.c). A plugin of the emulator counts the instructions of the first
CPU alone, ticks and interrupts included; nothing else would do, for the CPUs share one clock.
"""

import argparse
import json
import struct
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ceasefire import paths
from ceasefire.bench import plan, records, steps
from ceasefire.bench.munmap import judge
from ceasefire.bench.store import ResultFolder
from ceasefire.errors import Failure, UsageError
from ceasefire.output import print_table, progress
from ceasefire.vm import GuestSpec, run_guest
from ceasefire.vm.command import DISK_DIR

LIMIT_PERCENT = 0.5
OFF = "off"
ON = "on"
_CPUS = 3
_KERNEL = "run"
_GUEST_LIMIT = 1800.0
_COUNT = struct.Struct("<Q")
_MAX = 100


@dataclass(frozen=True)
class Sample:
    """Instructions of one operation of a loop."""

    case: str
    mode: str
    per_operation: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--boots", default="2", metavar="N", help="boots (default: 2)")
    parser.add_argument(
        "--repeats", default="9", metavar="N", help="repeats of each loop in a boot (default: 9)"
    )
    parser.add_argument("--out", metavar="DIR", help="where results go (default: the build folder)")


def main(args: argparse.Namespace) -> int:
    """Measure; 1 when a program beside pays more than it may."""
    boots, repeats = _number("--boots", args.boots), _number("--repeats", args.repeats)
    folder = ResultFolder("beside-cost", args.out)
    samples: list[Sample] = []
    for boot in range(boots):
        progress(f"boot {boot + 1} of {boots} under -icount, about 3 minutes")
        lines = _measure(repeats)
        folder.add_record(
            records.host_record(
                "bench beside-cost",
                where=f"in a guest with {_CPUS} emulated CPUs, -icount shift=0",
                accel="tcg",
                kernel_kind=_KERNEL,
                boot=boot,
                cpus=_CPUS,
                comparable=False,
            )
        )
        for line in lines:
            folder.add_record(line)
        samples += samples_of(lines)
    progress(f"raw lines: {folder.lines}")
    worst = print_samples(samples)
    if worst > LIMIT_PERCENT:
        progress(f"beside a process with FPR {worst:+.2f} %: more than {LIMIT_PERCENT} %")
        return 1
    return 0


def _measure(repeats: int) -> list[dict[str, Any]]:
    """Boot a guest and return the lines of beside-bench, with the instructions of each loop."""
    program = plan.find_tool("beside-bench", "instructions")
    words = [str(program), "--repeats", str(repeats), "--dir", f"{DISK_DIR}/0"]
    return count(words, "beside", _CPUS)


def count(words: Sequence[str], kind: str, cpus: int) -> list[dict[str, Any]]:
    """Run a program with marks in a guest; return its lines, with the instructions between marks.

    kind: the type of the lines that have marks. Only the CPU that runs a mark is counted.
    """
    plugin = plan.find_tool("steps-plugin.so", "instructions")
    with tempfile.TemporaryDirectory(dir=paths.runs_dir()) as run:
        out = Path(run) / "totals"
        spec = GuestSpec(
            kernel=_KERNEL,
            cpus=cpus,
            icount=True,
            accel="tcg",
            timeout=_GUEST_LIMIT,
            disks=steps.DISKS,
            qemu_args=("-icount", "shift=0,sleep=on", "-plugin", f"{plugin},total={out}"),
        )
        result = run_guest(spec, list(words), name="bench-beside", cwd=Path("/"))
        judge(result.check(), result.stderr.decode(errors="replace"))
        text = result.stdout.decode("utf-8", errors="replace")
        return with_counts(text, kind, out.read_bytes())


def with_counts(text: str, kind: str, totals: bytes) -> list[dict[str, Any]]:
    """Return the lines of a program; those of a kind get their count of instructions.

    totals: 8 bytes for each, in the order of the lines.
    """
    try:
        lines = [json.loads(line) for line in text.splitlines()]
        loops = [line for line in lines if line["type"] == kind]
    except (ValueError, TypeError, KeyError) as error:
        raise Failure(f"the program printed something else: {error}") from None
    if len(totals) != _COUNT.size * len(loops) or not loops:
        raise Failure(f"{len(loops)} samples have {len(totals) // _COUNT.size} counts")
    for line, (count,) in zip(loops, _COUNT.iter_unpack(totals), strict=True):
        line["instructions"] = count
    return lines


def samples_of(lines: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """Return the samples among the lines."""
    try:
        return [
            Sample(str(line["case"]), str(line["mode"]), line["instructions"] / line["ops"])
            for line in lines
            if line["type"] == "beside"
        ]
    except (TypeError, KeyError, ZeroDivisionError) as error:
        raise Failure(f"the results of beside-bench are damaged: {error}") from None


def print_samples(samples: Iterable[Sample]) -> float:
    """Print medians and spread of each loop; return the worst, in percent."""
    groups: dict[str, dict[str, list[float]]] = {}
    for sample in samples:
        group = groups.setdefault(sample.case, {OFF: [], ON: []})
        group[sample.mode].append(sample.per_operation)
    rows = []
    worst = float("-inf")
    for case, modes in groups.items():
        off, on = median(modes[OFF]), median(modes[ON])
        more = 100 * on / off - 100
        worst = max(worst, more)
        spread = max(100 * (max(v) - min(v)) / median(v) for v in modes.values())
        verdict = "pass" if more <= LIMIT_PERCENT else "fail"
        rows.append(
            [case, f"{off:,.0f}", f"{on:,.0f}", f"{more:+.2f} %", f"{spread:.2f} %", verdict]
        )
    columns = (
        "case",
        "beside, without FPR",
        "with FPR",
        "more",
        "spread",
        f"limit {LIMIT_PERCENT} %",
    )
    print_table(columns, rows, title="guest instructions of one operation, medians")
    return worst


def _number(option: str, text: str) -> int:
    numbers = plan.parse_numbers(option, text, 1, _MAX)
    if len(numbers) != 1:
        raise UsageError(f"{option} {text}: give one number")
    return numbers[0]
