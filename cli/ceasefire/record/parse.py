# SPDX-License-Identifier: GPL-2.0-only
"""From the text of a trace buffer to events.

A line of `trace_pipe` is `COMM-TID [CPU] FLAGS SECONDS: EVENT: FIELDS`. COMM may hold anything, a
line feed too, in up to 15 bytes. That is too short for a line that somebody believes, and no
event is recorded whose fields have more of the program's choice. A stack follows its event as a
line of its own kind and one line a frame. A line that cannot be read is counted, not fatal: newer
kernels may print something new.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_LINE = re.compile(
    r" *(?P<comm>.{0,64})-(?P<tid>[0-9]{1,10}) +(?:\([ 0-9-]{1,16}\) +)?\[(?P<cpu>[0-9]{1,6})\] +"
    r"(?:[^ ]{1,16} +)?(?P<time>[0-9]{1,12}\.[0-9]{1,9}): "
    r"(?:(?P<name>[A-Za-z0-9_]+): ?(?P<rest>.*)|<(?P<stack>(?:user )?stack trace)>)",
    re.DOTALL,
)
_LOST = re.compile(r"CPU:[0-9]+ \[LOST(?: ([0-9]{1,18}))? EVENTS\]")
_FRAME = re.compile(r" => +(.*)", re.DOTALL)
_USER_FRAME = re.compile(r"<([0-9a-f]{1,16})>")


# The kernel has no deeper stacks.
_DEPTH = 128


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
        match = _LINE.fullmatch(line)
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
            match = _LINE.fullmatch(line)
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
            if len(target.kernel) < _DEPTH:
                target.kernel.append(function_of(text))
            return
        match = _USER_FRAME.search(text)
        if match and len(target.user) < _DEPTH:
            target.user.append(int(match[1], 16))


def _stack(done: _Open) -> Stack:
    return Stack(done.event.time, done.event.tid, tuple(done.kernel), tuple(done.user))


def function_of(text: str) -> str:
    """Return the name of a kernel function without offset, module and compiler suffixes."""
    return re.split(r"[ +.]", text.strip(), maxsplit=1)[0]


_WORD = "[0-9a-f]{1,16}"
_ENTER = re.compile(rf"NR (-?[0-9]{{1,10}}) \(({_WORD}(?:, {_WORD}){{5}})\)")
_EXIT = re.compile(r"NR (-?[0-9]{1,10}) = (-?[0-9]{1,20})")
_FLUSH = re.compile(r"pages:-?[0-9]{1,20} .*\(([0-9]{1,3})\)")
_FAULT = re.compile(rf"address=0x({_WORD})(?: .*)?")
_QUEUED = re.compile(r"cpu=([0-9]{1,6}) .*func=([^ ]+)(?: .*)?")
_NEW_TASK = re.compile(
    rf"pid=([0-9]{{1,10}}) comm=.{{0,64}} clone_flags=({_WORD})(?: .*)?", re.DOTALL
)


def entered(rest: str) -> tuple[int, tuple[int, ...]] | None:
    """Return the number and the arguments of a system call."""
    match = _ENTER.fullmatch(rest)
    return (int(match[1]), tuple(int(a, 16) for a in match[2].split(", "))) if match else None


def left(rest: str) -> tuple[int, int] | None:
    """Return the number and the result of a system call."""
    match = _EXIT.fullmatch(rest)
    return (int(match[1]), int(match[2])) if match else None


def flushed(rest: str) -> int | None:
    """Return the reason of a tlb_flush."""
    match = _FLUSH.fullmatch(rest)
    return int(match[1]) if match else None


def fault_address(rest: str) -> int | None:
    """Return where a page fault was."""
    match = _FAULT.fullmatch(rest)
    return int(match[1], 16) if match else None


def queued(rest: str) -> int | None:
    """Return the CPU that a flush was sent to; None for other calls of functions on CPUs."""
    match = _QUEUED.fullmatch(rest)
    return int(match[1]) if match and match[2].startswith("flush_tlb_func") else None


def new_task(rest: str) -> tuple[int, int] | None:
    """Return the number of a new task and the flags of its clone()."""
    match = _NEW_TASK.fullmatch(rest)
    return (int(match[1]), int(match[2], 16)) if match else None
