# SPDX-License-Identifier: GPL-2.0-only
"""Measures a suite: boots the guests it wants, or works in place, and keeps what comes.

Each sample is on disk as soon as it is taken. Ctrl-C ends the guest and keeps what there is; the
same command with the same --out goes on with the rest. A boot that fails is told and the next one
goes on; the exit status is 1 then. Only a guest that the emulator itself has lost is booted again.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ceasefire import modes
from ceasefire.bench.apps import balancing
from ceasefire.bench.catalog.spec import Suite
from ceasefire.bench.measure import data, machine, programs, schedule
from ceasefire.bench.measure.agent import Plan
from ceasefire.bench.results.store import Folder, read, well_formed
from ceasefire.errors import Failure, Interrupted, Unsupported, said
from ceasefire.output import progress
from ceasefire.vm import GuestSpec, klog, run_guest
from ceasefire.vm.command import DISK_DIR
from ceasefire.vm.guest import accelerator
from ceasefire.vm.spec import STOCK_EMULATOR

_BOOT_ATTEMPTS = 3
_LONGEST = 4 << 20
# A second of one clock is a thousand million instructions of one thread of the emulator.
_ONE_CLOCK_SLOWER = 20


class LostGuest(Failure):
    """A guest that ended by a mistake of the emulator that is known, see klog.lost_patch()."""


@dataclass
class Progress:
    """Tells how far a run is, and how much time is left by the pace until now."""

    total: int
    estimate: float
    done: int = 0
    failed: int = 0
    begin: float = field(default_factory=time.monotonic)
    told: float = 0.0

    def sample(self, name: str, failed: str) -> None:
        """One more sample; a line now and then, and for each that failed."""
        self.done += 1
        self.failed += bool(failed)
        now = time.monotonic()
        if failed:
            progress(f"{name}: failed: {failed}")
        if failed or now - self.told >= 10 or self.done == self.total:
            self.told = now
            progress(f"{self.done} of {self.total} samples, {self.left()} left: {name}")

    def left(self) -> str:
        """Return the time that is left, in words."""
        spent = time.monotonic() - self.begin
        pace = spent / self.done if self.done >= 3 else self.estimate / max(self.total, 1)
        minutes = pace * (self.total - self.done) / 60
        return f"about {minutes:.0f} min" if minutes >= 1.5 else f"about {minutes * 60:.0f} s"


class Lines:
    """Takes the output of an agent as it comes, keeps its records, counts its samples."""

    def __init__(self, folder: Folder, cpus: int, told: Progress) -> None:
        self._folder = folder
        self._cpus = cpus
        self._progress = told
        self._rest = b""

    def __call__(self, chunk: bytes) -> None:
        """Take a piece of output, which may end anywhere."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[:_LONGEST]
        for line in lines:
            # What else the guest prints is not ours.
            if len(line) < _LONGEST and (sample := well_formed(line)) is not None:
                self._folder.add(sample)
                if sample["type"] == "sample":
                    name = f"{sample['benchmark']}, {self._cpus} CPUs, {sample['mode']}"
                    self._progress.sample(name, str(sample.get("failed", "")))


@dataclass(frozen=True)
class Where:
    """Where to measure. in_place: on this machine. work: the folder for files then.

    one_clock: emulated CPUs take turns, and time passes with their instructions. So the host makes
    none of them late, and counts are those of a machine with that many CPUs; times mean nothing.
    emulator: that of guests. sources: what mode abis believes, see abis/sources in sysfs; "": as
    the kernel begins.
    """

    kernel: str = "run"
    accel: str = "auto"
    in_place: bool = False
    work: str = ""
    one_clock: bool = False
    emulator: str = STOCK_EMULATOR
    sources: str = ""


def measure(suite: Suite, boots: Sequence[schedule.Boot], folder: Folder, where: Where) -> int:
    """Take all samples; return 0, or 1 if some failed."""
    total = sum(len(boot.samples) for boot in boots)
    told = Progress(total, sum(boot.seconds(suite.seconds) for boot in boots))
    folder.add(suite_record(suite))
    progress(f"{total} samples in {len(boots)} boots, {told.left()}; results: {folder.path}")
    trouble = 0
    for number, boot in enumerate(boots, 1):
        names = ", ".join(bench.name for bench in boot.benchmarks)
        kernel = f", {boot.guest.kernel} kernel" if boot.guest.kernel else ""
        progress(f"boot {number} of {len(boots)}, {boot.guest.cpus} CPUs{kernel}: {names}")
        try:
            if where.in_place:
                _in_place(suite, boot, folder, where, told)
            else:
                _in_guests(suite, boot, folder, where, told)
        except (Unsupported, Interrupted):
            raise
        except Failure as failure:
            trouble += 1
            for line in said(failure).split("\n"):
                progress(f"boot {number}: {line}")
    return 1 if trouble or told.failed else 0


def suite_record(suite: Suite) -> dict[str, object]:
    """Return the line that says what is to be measured."""
    return {
        "type": "suite",
        "name": suite.name,
        "title": suite.title,
        "rounds": suite.rounds,
        "seconds": suite.seconds,
        "benchmarks": {
            bench.name: {
                "group": bench.group,
                "title": bench.title,
                "modes": bench.modes(),
                "metrics": [vars(metric) for metric in bench.metrics],
                "verify": bench.verify,
                "paper": dict(bench.paper or {}),
                "paper_latr": dict(bench.paper_latr or {}),
            }
            for bench in suite.benchmarks
        },
    }


def _host_record(
    where: str, guest: schedule.Guest, *, one_clock: bool = False, **facts: object
) -> dict[str, object]:
    comparable = guest.cpus <= machine.host_cpus() and not one_clock
    return machine.host_record(
        "bench run", where=where, cpus=guest.cpus, comparable=comparable, **facts
    )


def _in_guests(
    suite: Suite, boot: schedule.Boot, folder: Folder, where: Where, told: Progress
) -> None:
    """Take the samples of a boot in a guest, and in another one if the emulator lost it."""
    for _ in range(_BOOT_ATTEMPTS - 1):
        try:
            return _in_guest(suite, boot, folder, where, told)
        except LostGuest as lost:
            folder.add({"type": "lost", "why": str(lost)})
            progress(f"{lost}, once more")
            boot = schedule.again(boot, read(folder.path).done())
            if not boot.samples:
                return None
    return _in_guest(suite, boot, folder, where, told)


def _in_guest(
    suite: Suite, boot: schedule.Boot, folder: Folder, where: Where, told: Progress
) -> None:
    guest = boot.guest
    kernel = guest.kernel or where.kernel
    slower = _ONE_CLOCK_SLOWER if where.one_clock else 1
    disks = tuple(data.disk(text) for text in guest.disks)
    disk = (disks[0].mount or f"{DISK_DIR}/0") if disks else ""
    work = disk if disks and disks[0].kind == "brd-ext4" else ""
    spec = GuestSpec(
        kernel=kernel,
        cpus=guest.cpus,
        memory=guest.memory,
        numa=guest.numa,
        disks=disks,
        accel="tcg" if where.one_clock else where.accel,
        append=tuple(guest.append.split()),
        timeout=schedule.PATIENCE * boot.seconds(suite.seconds) * slower + 600,
        icount=where.one_clock,
        emulator=where.emulator,
    )
    accel = accelerator(spec)
    words = "in a guest with " + ("emulated CPUs (TCG)" if accel == "tcg" else "KVM")
    if where.one_clock:
        words += " that share one clock (-icount)"
    folder.add(
        _host_record(
            words,
            guest,
            one_clock=where.one_clock,
            accel=accel,
            kernel_kind=kernel,
            memory=guest.memory,
            disks=list(guest.disks),
            append=guest.append,
            numa=guest.numa,
            emulator=where.emulator,
            sources=where.sources,
        )
    )
    with tempfile.TemporaryDirectory(dir=folder.path) as place:
        command = _with_sources(where.sources, _agent(boot, suite, Path(place), disk, work))
        result = run_guest(
            spec,
            command,
            name="bench",
            cwd=Path(place),
            stdout=Lines(folder, guest.cpus, told),
        )
    if accel == "tcg" and klog.lost_patch(result.verdict):
        raise LostGuest(f"the emulator lost a code patch of the guest (log: {result.log})")
    machine.judge(result.check(), result.stderr.decode(errors="replace"))


def _with_sources(sources: str, words: list[str]) -> list[str]:
    """Return a command that chooses the sources first, where some are wanted."""
    if not sources:
        return words
    script = 'echo "$1" >"$0" && shift && exec "$@"'
    return ["sh", "-c", script, str(modes.ABIS.folder / "sources"), sources, *words]


def _in_place(
    suite: Suite, boot: schedule.Boot, folder: Folder, where: Where, told: Progress
) -> None:
    guest = boot.guest
    if guest.cpus > machine.host_cpus():
        raise Failure(f"this machine has only {machine.host_cpus()} CPUs, {guest.cpus} are wanted")
    if guest.numa > (nodes := balancing.nodes()):
        raise Failure(f"this machine has {nodes} NUMA nodes, {guest.numa} are wanted")
    odd = [text for text in guest.disks if not data.has_files(text)]
    if odd:
        raise Failure(f"in place there is no disk {odd[0]}: measure this in a guest")
    folder.add(_host_record("in place", guest, memory=guest.memory, disks=[]))
    chosen = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[: guest.cpus])
    with tempfile.TemporaryDirectory(dir=where.work or None) as place:
        disk = data.folder(guest.disks[0]) if guest.disks else None
        words = _agent(boot, suite, Path(place), str(disk or place), place)
        lines = Lines(folder, guest.cpus, told)
        process = subprocess.Popen(
            ["taskset", "-c", chosen, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place,
        )
        assert process.stdout is not None and process.stderr is not None
        try:
            _pump(process.stdout.read1, lines)  # type: ignore[attr-defined]
            error = process.stderr.read().decode(errors="replace")
            status = process.wait()
        finally:
            process.kill()
            process.wait()
    machine.judge(status, error)


def _pump(read: Callable[[int], bytes], lines: Lines) -> None:
    while chunk := read(65536):
        lines(chunk)


def _agent(boot: schedule.Boot, suite: Suite, place: Path, disk: str, work: str) -> list[str]:
    """Write the plan of a boot to a file; return the words that carry it out."""
    base = Path(work) if work else Path("/tmp")
    values = schedule.values_of(boot.guest, suite.seconds, disk, str(base / "ceasefire-bench"))
    todo = Plan(
        prepare=schedule.prepares(boot, values),
        tasks=schedule.tasks(boot, suite.seconds, values),
        work=str(base),
        path=programs.search_path(),
    )
    path = place / "plan.json"
    path.write_text(todo.text(), encoding="utf-8")
    return [*todo.words(), str(path)]
