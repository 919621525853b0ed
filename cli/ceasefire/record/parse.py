# SPDX-License-Identifier: GPL-2.0-only
"""From the text of a trace buffer to events.

A line of `trace_pipe` is `COMM-TID [CPU] FLAGS SECONDS: EVENT: FIELDS`. COMM may hold spaces and
dashes. A stack follows its event as a line of its own kind and one line a frame. A line that
cannot be read is counted, not fatal: newer kernels may print something new.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_LINE = re.compile(
    r"\s*(?P<comm>.*)-(?P<tid>\d+)\s+(?:\([\s\d-]+\)\s+)?\[(?P<cpu>\d+)\]\s+(?:\S+\s+)?"
    r"(?P<time>\d+\.\d+): (?:(?P<name>\w+): ?(?P<rest>.*)|<(?P<stack>(?:user )?stack trace)>)$"
)
_LOST = re.compile(r"CPU:\d+ \[LOST(?: (\d+))? EVENTS\]")
_FRAME = re.compile(r" => +(.*)$")
_USER_FRAME = re.compile(r"<([0-9a-f]+)>")


@dataclass(frozen=True, slots=True)
class Event:
    """One line: when (seconds), which task on which CPU, what, and its fields as text."""

    time: float
    tid: int
    comm: str
    cpu: int
    name: str
    rest: str


@dataclass(frozen=True, slots=True)
class Stack:
    """A shootdown with its stacks, innermost frame first."""

    time: float
    tid: int
    kernel: tuple[str, ...]
    user: tuple[int, ...]


@dataclass
class Damage:
    """What could not be used: events that the kernel lost, lines that we cannot read."""

    lost: int = 0
    unread: int = 0


@dataclass
class _Open:
    event: Event
    kernel: list[str] = field(default_factory=list)
    user: list[int] = field(default_factory=list)


def events(lines: Iterable[str], damage: Damage) -> Iterator[Event]:
    """Read lines without stacks."""
    for line in lines:
        match = _LINE.match(line)
        if match and match["name"]:
            yield _event(match)
        else:
            _other(line, damage)


def _event(match: re.Match[str]) -> Event:
    comm, tid, cpu, time, name, rest, _ = match.groups()
    return Event(float(time), int(tid), comm, int(cpu), name, rest)


def _other(line: str, damage: Damage) -> None:
    lost = _LOST.match(line)
    if lost:
        damage.lost += int(lost[1] or 1)
    elif line and not line.startswith("#"):
        damage.unread += 1


class StackReader:
    """Reads lines with stacks; a shootdown is complete when its CPU goes on to the next one."""

    def __init__(self, damage: Damage) -> None:
        """damage: where to count what cannot be used."""
        self._damage = damage
        # The CPUs' buffers are merged, so several may be under way.
        self._open: dict[int, _Open] = {}
        self._cpu = 0
        self._user = False

    def feed(self, lines: Iterable[str]) -> Iterator[Stack]:
        """Take more lines, yield what is complete."""
        for line in lines:
            frame = _FRAME.match(line)
            if frame:
                self._frame(frame[1])
                continue
            match = _LINE.match(line)
            if match is None:
                _other(line, self._damage)
                continue
            self._cpu = int(match["cpu"])
            if match["stack"]:
                self._user = match["stack"].startswith("user")
                continue
            done = self._open.pop(self._cpu, None)
            if done:
                yield _stack(done)
            self._open[self._cpu] = _Open(_event(match))

    def oldest(self) -> float | None:
        """Return since when the oldest shootdown is not complete; None if all are."""
        return min((one.event.time for one in self._open.values()), default=None)

    def end(self) -> Iterator[Stack]:
        """Yield what is left when no more comes for now."""
        for done in self._open.values():
            yield _stack(done)
        self._open.clear()

    def _frame(self, text: str) -> None:
        target = self._open.get(self._cpu)
        if target is None:
            return
        if not self._user:
            target.kernel.append(function_of(text))
            return
        match = _USER_FRAME.search(text)
        if match:
            target.user.append(int(match[1], 16))


def _stack(done: _Open) -> Stack:
    return Stack(done.event.time, done.event.tid, tuple(done.kernel), tuple(done.user))


def function_of(text: str) -> str:
    """Return the name of a kernel function without offset, module and compiler suffixes."""
    return re.split(r"[ +.]", text.strip(), maxsplit=1)[0]


_ENTER = re.compile(r"NR (-?\d+) \((.*)\)")
_EXIT = re.compile(r"NR (-?\d+) = (-?\d+)")
_FLUSH = re.compile(r"pages:(-?\d+) .*\((\d+)\)$")
_FAULT = re.compile(r"address=0x([0-9a-f]+)")
_QUEUED = re.compile(r"cpu=(\d+) .*func=(\S+)")
_NEW_TASK = re.compile(r"pid=(\d+) comm=.* clone_flags=([0-9a-f]+)")
_EXEC = re.compile(r"filename=(.*) pid=(\d+) old_pid=(\d+)")


def entered(rest: str) -> tuple[int, tuple[int, ...]] | None:
    """Return the number and the arguments of a system call."""
    match = _ENTER.match(rest)
    return (int(match[1]), tuple(int(a, 16) for a in match[2].split(", "))) if match else None


def left(rest: str) -> tuple[int, int] | None:
    """Return the number and the result of a system call."""
    match = _EXIT.match(rest)
    return (int(match[1]), int(match[2])) if match else None


def flushed(rest: str) -> int | None:
    """Return the reason of a tlb_flush."""
    match = _FLUSH.match(rest)
    return int(match[2]) if match else None


def fault_address(rest: str) -> int | None:
    """Return where a page fault was."""
    match = _FAULT.match(rest)
    return int(match[1], 16) if match else None


def queued(rest: str) -> int | None:
    """Return the CPU that a flush was sent to; None for other calls of functions on CPUs."""
    match = _QUEUED.match(rest)
    return int(match[1]) if match and match[2].startswith("flush_tlb_func") else None


def new_task(rest: str) -> tuple[int, int] | None:
    """Return the number of a new task and the flags of its clone()."""
    match = _NEW_TASK.match(rest)
    return (int(match[1]), int(match[2], 16)) if match else None


def executed(rest: str) -> tuple[str, int] | None:
    """Return the program of an exec and the task that has executed it until now."""
    match = _EXEC.match(rest)
    return (match[1], int(match[3])) if match else None
