# SPDX-License-Identifier: GPL-2.0-only
"""Which runs of munmap-bench a `bench munmap` is made of, and how long they may take."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ceasefire import paths
from ceasefire.errors import Failure, UsageError

CASES = {
    1: "I/O threads only",
    2: "one I/O thread, N compute threads",
    3: "N I/O threads, one compute thread",
    4: "N I/O and N compute threads",
    5: "N mixed threads",
}
MAX_NUMBER = 64
_INSTALLED = (Path("/usr/libexec/ceasefire"), Path("/usr/local/libexec/ceasefire"))
# Start, run-in and end of a sample, on top of its window.
_SAMPLE_OVERHEAD = 1.0
_BOOT = 15.0
_PATIENCE = 10.0


@dataclass(frozen=True)
class Settings:
    """What the user chose for every run."""

    pages: int
    offsets: int
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Run:
    """One call of munmap-bench."""

    case: int
    cpus: int
    processes: int
    modes: tuple[str, ...]

    @property
    def threads(self) -> int:
        """Threads of one process: all CPUs between the processes, but never a lonely thread."""
        share = max(2, self.cpus // self.processes)
        return share - share % 2 if self.case == 4 else share

    def command(self, program: Path, place: Sequence[str], settings: Settings) -> list[str]:
        """Return the argument vector. `place` says which files are mapped."""
        words = [str(program), "--json", "--pin", "--case", str(self.case)]
        words += ["--threads", str(self.threads), "--processes", str(self.processes)]
        words += ["--pages", str(settings.pages), "--offsets", str(settings.offsets)]
        words += ["--rounds", str(settings.rounds), "--seconds", f"{settings.seconds:g}"]
        return [*words, "--mode", ",".join(self.modes), *place]

    def samples(self, settings: Settings) -> int:
        """Return how many samples the run has."""
        return len(self.modes) * settings.rounds


def parse_numbers(option: str, text: str, low: int, high: int) -> list[int]:
    """Return the numbers of '1-3,5' in the order given, each once."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UsageError(f"{option} {text}: write numbers like 1,2,5 or 1-5")
        start, end = int(first), int(last) if dash else int(first)
        if not low <= start <= end <= high:
            raise UsageError(f"{option} {text}: the numbers are from {low} to {high}")
        numbers += [n for n in range(start, end + 1) if n not in numbers]
    return numbers


def runs_of(
    cases: Sequence[int], cpus: int, processes: Sequence[int], *, fpr: bool, ideal: bool
) -> list[Run]:
    """Return the runs of one boot.

    fpr: the kernel has it. ideal: throughput means something here, so measure its ideal lines.
    """
    runs = []
    for count in processes:
        for case in cases:
            modes = ["off", "on"] if fpr else ["off"]
            if ideal and case in (2, 3, 4):
                modes.append("ideal-compute")
            if ideal:
                modes.append("ideal-io")
            runs.append(Run(case, cpus, count, tuple(modes)))
    return runs


def duration(runs: Sequence[Run], settings: Settings) -> float:
    """Return about how many seconds the runs of one boot take."""
    samples = sum(run.samples(settings) for run in runs)
    return _BOOT + samples * (settings.seconds * 1.1 + _SAMPLE_OVERHEAD)


def time_limit(runs: Sequence[Run], settings: Settings) -> float:
    """Return after how many seconds something must have gone wrong."""
    return duration(runs, settings) * _PATIENCE


def guest_command(
    runs: Sequence[Run], program: Path, place: Sequence[str], settings: Settings
) -> list[str]:
    """Return the one command that does all runs of a boot and stops at the first failure."""
    script = " && ".join(shlex.join(run.command(program, place, settings)) for run in runs)
    return ["sh", "-c", script]


def find_tool(name: str, folder: str) -> Path:
    """Return a benchmark program: the one built here, else an installed one."""
    built = paths.built(f"tools/bench/{folder}/{name}")
    for candidate in (built, *(directory / name for directory in _INSTALLED)):
        if candidate.is_file():
            return candidate
    raise Failure(f"{name} is not built: run `make tools` first")
