# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench munmap`: runs munmap-bench in guests of several sizes, or on this machine."""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ceasefire import counters
from ceasefire.bench import plan, records, report
from ceasefire.bench.store import ResultFolder
from ceasefire.errors import EXIT_UNSUPPORTED, EXIT_USAGE, Failure, Unsupported, UsageError
from ceasefire.output import progress
from ceasefire.vm import GuestSpec, run_guest
from ceasefire.vm.command import DISK_DIR
from ceasefire.vm.guest import accelerator
from ceasefire.vm.spec import ACCELERATORS, DiskSpec

_MEMORY_BASE_MIB = 768
_MEMORY_PER_CPU_MIB = 32
_DISKS = {
    "null_blk": (DiskSpec("null_blk"), ["--file", f"{DISK_DIR}/0", "--fill"]),
    "brd-ext4": (DiskSpec("brd-ext4"), ["--dir", f"{DISK_DIR}/0"]),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench munmap`."""
    parser.add_argument(
        "--cases", default="1-5", metavar="LIST", help="thread mixes, 1 to 5 (default: 1-5)"
    )
    parser.add_argument(
        "--cpus", default="2", metavar="LIST", help="guests with so many CPUs (default: 2)"
    )
    parser.add_argument(
        "--processes",
        default="1",
        metavar="LIST",
        help="processes that map the same files (default: 1)",
    )
    parser.add_argument("--pages", default="1", metavar="N", help="pages of a mapping (default: 1)")
    parser.add_argument(
        "--rounds", default="5", metavar="N", help="alternating rounds of all modes (default: 5)"
    )
    parser.add_argument(
        "--seconds", type=float, default=2.0, metavar="S", help="length of a sample (default: 2)"
    )
    parser.add_argument("--out", metavar="DIR", help="where results go (default: the build folder)")
    parser.add_argument(
        "--disk",
        choices=sorted(_DISKS),
        default="null_blk",
        help="what the guest maps: the device itself, or a file on ext4 (default: null_blk)",
    )
    parser.add_argument(
        "--kernel", default="run", metavar="KIND", help="run, debug, stock or a bzImage"
    )
    parser.add_argument("--accel", choices=ACCELERATORS, default="auto", help="default: auto")
    parser.add_argument(
        "--in-place", action="store_true", help="measure this machine and its kernel, no guest"
    )
    parser.add_argument(
        "--dir", metavar="DIR", help="with --in-place: make the mapped file here (default: $TMPDIR)"
    )


def main(args: argparse.Namespace) -> int:
    """Run everything and show it."""
    cases = plan.parse_numbers("--cases", args.cases, 1, 5)
    cpu_counts = plan.parse_numbers("--cpus", args.cpus, 2, plan.MAX_NUMBER)
    processes = plan.parse_numbers("--processes", args.processes, 1, plan.MAX_NUMBER)
    settings = plan.Settings(
        pages=_number("--pages", args.pages, 4096),
        offsets=256,
        rounds=_number("--rounds", args.rounds, 10000),
        seconds=args.seconds,
    )
    if not 0.05 <= settings.seconds <= 3600:
        raise UsageError("--seconds is from 0.05 to 3600")
    if args.dir and not args.in_place:
        raise UsageError("--dir is for --in-place; guests map their own disk (--disk)")
    program = plan.find_tool("munmap-bench", "munmap")
    if args.in_place:
        check_in_place(cpu_counts)
    session = Session(args, program, settings, ResultFolder("munmap", args.out))
    for number, cpus in enumerate(cpu_counts, 1):
        title = f"{cpus} CPUs ({number} of {len(cpu_counts)})"
        fpr = args.kernel != "stock" or args.in_place
        ideal = args.in_place or cpus <= records.host_cpus()
        runs = plan.runs_of(cases, cpus, processes, fpr=fpr, ideal=ideal)
        if args.in_place:
            session.in_place(cpus, runs, title)
        else:
            session.in_guest(cpus, runs, title)
    return report.show(session.folder.path)


def check_in_place(cpu_counts: Sequence[int]) -> None:
    """Refuse what this machine cannot show."""
    if not counters.enabled():
        raise Unsupported("this kernel has no FPR, or it is off: leave --in-place out for a guest")
    if max(cpu_counts) > records.host_cpus():
        raise UsageError(f"--cpus: this machine has only {records.host_cpus()} CPUs")


class LineSink:
    """Takes the output of munmap-bench as it comes; keeps it, and counts the samples."""

    def __init__(self, folder: ResultFolder, title: str, samples: int) -> None:
        self.folder = folder
        self.title = title
        self.samples = samples
        self.seen = 0
        self.rest = b""
        self.last_case = ""

    def __call__(self, chunk: bytes) -> None:
        """Take a piece of output, which may end anywhere."""
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", errors="replace")
            try:
                found = records.munmap_samples(records.parse_lines(text))
            except Failure:
                continue  # what something in the guest printed
            self.folder.add_text(text + "\n")
            for sample in found:
                self.seen += 1
                case = f"case {sample.case}, {sample.processes} process"
                case += "es" if sample.processes > 1 else ""
                if case != self.last_case:
                    progress(f"{self.title}: {case}, sample {self.seen} of {self.samples}")
                self.last_case = case


@dataclass(frozen=True)
class Session:
    """What all runs of one call of the verb have in common."""

    args: argparse.Namespace
    program: Path
    settings: plan.Settings
    folder: ResultFolder

    def in_guest(self, cpus: int, runs: Sequence[plan.Run], title: str) -> None:
        """Do all runs in one boot."""
        disk, place = _DISKS[self.args.disk]
        spec = GuestSpec(
            kernel=self.args.kernel,
            cpus=cpus,
            memory=f"{_MEMORY_BASE_MIB + cpus * _MEMORY_PER_CPU_MIB}M",
            disks=(disk,),
            accel=self.args.accel,
            timeout=plan.time_limit(runs, self.settings),
        )
        accel = accelerator(spec)
        self.folder.add_record(
            records.host_record(
                "bench munmap",
                where="in a guest with " + ("emulated CPUs (TCG)" if accel == "tcg" else "KVM"),
                accel=accel,
                kernel_kind=spec.kernel,
                cpus=cpus,
                memory=spec.memory,
                disk=self.args.disk,
                comparable=cpus <= records.host_cpus(),
            )
        )
        result = run_guest(
            spec,
            plan.guest_command(runs, self.program, place, self.settings),
            name="bench-munmap",
            cwd=Path("/"),
            stdout=self._sink(runs, title),
        )
        judge(result.check(), result.stderr.decode(errors="replace"))

    def in_place(self, cpus: int, runs: Sequence[plan.Run], title: str) -> None:
        """Do all runs on this machine, on its first CPUs."""
        self.folder.add_record(
            records.host_record("bench munmap", where="in place", cpus=cpus, comparable=True)
        )
        sink = self._sink(runs, title)
        chosen = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:cpus])
        place = ["--dir", self.args.dir or tempfile.gettempdir()]
        for run in runs:
            done = subprocess.run(
                ["taskset", "-c", chosen, *run.command(self.program, place, self.settings)],
                capture_output=True,
                timeout=plan.time_limit([run], self.settings),
                check=False,
            )
            sink(done.stdout)
            judge(done.returncode, done.stderr.decode(errors="replace"))

    def _sink(self, runs: Sequence[plan.Run], title: str) -> LineSink:
        minutes = plan.duration(runs, self.settings) / 60
        progress(f"{title}: {len(runs)} runs of munmap-bench, about {minutes:.0f} min")
        return LineSink(self.folder, title, sum(run.samples(self.settings) for run in runs))


def judge(status: int, stderr: str) -> None:
    """Raise what a failed munmap-bench means; its own line says why."""
    if status == 0:
        return
    line = next((text for text in reversed(stderr.split("\n")) if text.strip()), "")
    why = line or f"the benchmark failed with status {status}"
    if status == EXIT_UNSUPPORTED:
        raise Unsupported(why)
    if status == EXIT_USAGE:
        raise UsageError(why)
    raise Failure(why)


def _number(option: str, text: str, high: int) -> int:
    numbers = plan.parse_numbers(option, text, 1, high)
    if len(numbers) != 1:
        raise UsageError(f"{option} {text}: give one number")
    return numbers[0]
