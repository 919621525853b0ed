# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's trace buffers, through the files of tracefs.

A recording has two instances of its own, so that nobody else's tracing is disturbed: `calls` has
system calls, shootdowns and what tells tasks apart, `stacks` has only the shootdowns, each with
the stacks of kernel and program. (An instance records stacks with all its events or with none.)
Both are removed when the recording ends, however it ends: by a guard if this process is killed.
What is left behind all the same is removed by the next recording.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from ceasefire.errors import Failure, Unsupported, UsageError
from ceasefire.output import progress
from ceasefire.record import syscalls
from ceasefire.record.guard import Guard
from ceasefire.record.processes import alive
from ceasefire.text import decoded

PLACES = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
PREFIX = "ceasefire-"
# Reasons of tlb_flush: a CPU was interrupted, a CPU interrupts others.
RECEIVED, SENT = 1, 4
_CALLS = " || ".join(f"id == {number}" for number in syscalls.NAMES)
_ENDS = " || ".join(f"id == {number}" for number in (*syscalls.NAMES, *syscalls.EXECS))
_WRITE_FAULT = "error_code & 2"
# group/event: its filter, and whether nothing works without it
_EVENTS = {
    "tlb/tlb_flush": (f"reason == {RECEIVED} || reason == {SENT}", True),
    "raw_syscalls/sys_enter": (_CALLS, True),
    "raw_syscalls/sys_exit": (_ENDS, True),
    "task/task_newtask": ("", True),
    "sched/sched_process_exit": ("", False),
    "csd/csd_queue_cpu": ("", False),
    "exceptions/page_fault_user": (_WRITE_FAULT, False),
    "exceptions/page_fault_kernel": (_WRITE_FAULT, False),
}
_STACK_OPTIONS = ("stacktrace", "userstacktrace")
# What a new instance takes over from the whole tracing may be set to anything. The names of files,
# which sym-userobj prints, are the program's choice.
_PLAIN = {
    **dict.fromkeys(("raw", "hex", "bin", "fields", "latency-format", "verbose"), "0"),
    **dict.fromkeys(("sym-userobj", "sym-offset", "sym-addr", "print-parent", "block"), "0"),
    **dict.fromkeys(("context-info", "irq-info"), "1"),
}
_NUMBER = re.compile(r" *[0-9]{1,20}")
# The inode of the first PID namespace; set_event_pid takes the numbers of that one.
_FIRST_PID_NAMESPACE = 0xEFFFFFFC
_CHUNK = 1 << 16
_LONGEST = 1 << 20
_MIN_KIB, _MAX_KIB = 1 << 10, 16 << 10


def find() -> Path:
    """Return where tracefs is, or say what keeps us from using it."""
    there = next((place for place in PLACES if _exists(place / "instances")), None)
    if there is None:
        if os.geteuid() != 0:
            raise Failure("recording takes the rights of root: use sudo")
        if "tracefs" not in Path("/proc/filesystems").read_text(encoding="ascii"):
            raise Unsupported("this kernel has no tracing: build it with CONFIG_FTRACE=y")
        raise Failure(f"tracefs is not mounted: mount -t tracefs nodev {PLACES[0]}")
    if not os.access(there / "instances", os.W_OK):
        raise Failure("recording takes the rights of root: use sudo")
    with contextlib.suppress(OSError):
        if Path("/proc/self/ns/pid").stat().st_ino != _FIRST_PID_NAMESPACE:
            raise Failure("a container has process numbers of its own: record outside of it")
    return there


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False


class Instance:
    """One trace buffer with its own events."""

    def __init__(self, path: Path) -> None:
        """Create it. Raises Failure."""
        self.path = path
        self._pipe = -1
        self._rest = b""
        try:
            path.mkdir()
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None

    def write(self, name: str, text: str) -> None:
        """Write to one of its files."""
        (self.path / name).write_text(text, encoding="ascii")

    def enable(self, event: str, condition: str) -> bool:
        """Record an event where a condition holds; say whether the kernel has it."""
        folder = self.path / "events" / event
        if not folder.is_dir():
            return False
        if condition:
            (folder / "filter").write_text(condition, encoding="ascii")
        (folder / "enable").write_text("1", encoding="ascii")
        return True

    def text(self) -> Iterator[str]:
        """Take what is in the buffer, as text, in pieces that end with a line, until it is empty.

        A program may fill it as fast as we read: who asks for pieces decides when it is enough.
        """
        if self._pipe < 0:
            self._pipe = os.open(self.path / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        while True:
            try:
                chunk = os.read(self._pipe, _CHUNK)
            except BlockingIOError:
                return
            except InterruptedError:
                continue
            if not chunk:
                return
            lines, newline, self._rest = (self._rest + chunk).rpartition(b"\n")
            if newline:
                yield decoded(lines)
            elif len(self._rest) > _LONGEST:
                self._rest = b""

    def used(self, size_kib: int) -> float:
        """Return how full the fullest of its per-CPU buffers is, 0 to 1."""
        most = max((stats.get("bytes", 0) for stats in self._stats()), default=0)
        return most / (size_kib << 10)

    def lost(self) -> int:
        """Return how many events did not fit."""
        return sum(
            stats.get("overrun", 0) + stats.get("dropped events", 0) for stats in self._stats()
        )

    def _stats(self) -> Iterator[dict[str, int]]:
        for path in (self.path / "per_cpu").glob("cpu*/stats"):
            with contextlib.suppress(OSError):
                yield parse_stats(path.read_text(encoding="ascii"))

    def remove(self) -> bool:
        """Remove it, and say whether that worked."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        return remove(self.path)


def remove(path: Path) -> bool:
    """Stop an instance and remove it, if it is there; say whether it has gone."""
    with contextlib.suppress(OSError):
        (path / "tracing_on").write_text("0", encoding="ascii")
    with contextlib.suppress(OSError):
        (path / "events" / "enable").write_text("0", encoding="ascii")
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def parse_stats(text: str) -> dict[str, int]:
    """Return the numbers of a per-CPU `stats` file."""
    pairs = (line.partition(":") for line in text.split("\n"))
    return {name: int(value) for name, _, value in pairs if _NUMBER.fullmatch(value)}


def remove_left_over(root: Path) -> None:
    """Remove the instances of recordings whose process has gone."""
    for path in (root / "instances").glob(f"{PREFIX}*"):
        match = re.fullmatch(rf"{PREFIX}(\d+)-\w+", path.name)
        if match and not alive(int(match[1])):
            remove(path)


class Tracing:
    """Both instances. A context manager: they exist inside the `with`."""

    def __init__(self, root: Path, buffer_kib: int) -> None:
        """root: of tracefs. buffer_kib: size of each buffer of each CPU."""
        self.buffer_kib = buffer_kib
        self.missing: list[str] = []
        self._root = root
        self._instances: dict[str, Instance] = {}
        self._guard: Guard | None = None

    def __enter__(self) -> Self:
        """Create and set up both."""
        remove_left_over(self._root)
        self.missing = []
        where = self._root / "instances"
        paths = {name: where / f"{PREFIX}{os.getpid()}-{name}" for name in ("calls", "stacks")}
        self._guard = Guard(lambda: False not in [remove(path) for path in paths.values()])
        try:
            for name, path in paths.items():
                self._instances[name] = Instance(path)
                self._set_up(name)
        except OSError as error:
            self._remove()
            raise Failure(f"tracefs: {error.strerror}: {error.filename}") from None
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove both."""
        self._remove()

    def _remove(self) -> None:
        left = [i.path for i in self._instances.values() if not i.remove()]
        if self._guard is not None:
            self._guard.release()
        for path in left:
            progress(f"{path} cannot be removed, somebody uses it: rmdir it later")

    def _set_up(self, name: str) -> None:
        instance = self._instances[name]
        instance.write("tracing_on", "0")
        instance.write("trace_clock", "mono")
        instance.write("buffer_size_kb", str(self.buffer_kib))
        # What came first says what is mapped; what does not fit is counted.
        instance.write("options/overwrite", "0")
        instance.write("options/event-fork", "1")
        for option, value in _PLAIN.items():
            # Not every kernel has all of them.
            with contextlib.suppress(OSError):
                instance.write(f"options/{option}", value)
        if name == "stacks":
            instance.enable("tlb/tlb_flush", f"reason == {SENT}")
            for option in _STACK_OPTIONS:
                try:
                    instance.write(f"options/{option}", "1")
                except OSError:
                    self.missing.append(option)
            return
        for event, (condition, needed) in _EVENTS.items():
            if instance.enable(event, condition):
                continue
            if needed:
                what = event.replace("/", ":")
                raise Unsupported(f"this kernel has no tracepoint {what}: it takes one for x86-64")
            self.missing.append(event.replace("/", ":"))

    def follow(self, tasks: Iterable[int]) -> None:
        """Record these tasks and what they start; before start()."""
        text = " ".join(str(task) for task in tasks)
        for instance in self._instances.values():
            try:
                instance.write("set_event_pid", text)
            except ProcessLookupError:
                raise UsageError("the process has just ended") from None

    def start(self) -> None:
        """Start to record."""
        for instance in self._instances.values():
            instance.write("tracing_on", "1")

    def stop(self) -> None:
        """Stop; what was recorded can still be read."""
        for instance in self._instances.values():
            instance.write("tracing_on", "0")

    def calls(self) -> Iterator[str]:
        """Take the recorded text without stacks."""
        return self._instances["calls"].text()

    def stacks(self) -> Iterator[str]:
        """Take the recorded text with stacks."""
        return self._instances["stacks"].text()

    def used(self) -> float:
        """Return how full the fullest buffer is, 0 to 1."""
        return max(i.used(self.buffer_kib) for i in self._instances.values())

    def lost(self) -> int:
        """Return how many events did not fit into the buffers."""
        return sum(instance.lost() for instance in self._instances.values())


def default_buffer_kib(meminfo: str, cpus: int) -> int:
    """Return a size for each buffer: all together at most a sixteenth of what is free."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, re.MULTILINE)
    available = int(match[1]) if match else 0
    return max(_MIN_KIB, min(_MAX_KIB, available // 16 // 2 // max(cpus, 1)))
