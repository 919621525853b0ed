# SPDX-License-Identifier: GPL-2.0-only
"""Runs a program, or looks at one, while the kernel records; returns what came of it.

The buffers are read only when they fill up, and after the end: reading takes a CPU, and a
program that shares its CPUs with a reader sends fewer shootdowns. /proc/PID/maps is read a few
times, for the names of files and functions. No file of the program is opened while it is recorded.

From the first change to the kernel's tracing until the recording is kept, signals that would end us
are noted: they end the recording, not us.
"""

import contextlib
import math
import os
import platform
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from ceasefire import counters, modes
from ceasefire.errors import Unsupported, UsageError
from ceasefire.record import parse, stacks, symbols
from ceasefire.record.attribute import Attributor, Image
from ceasefire.record.look import Looker
from ceasefire.record.mappings import Region
from ceasefire.record.model import Environment, Recording, Run, Site, Sum, merged, merged_sites
from ceasefire.record.processes import (
    Child,
    NotStarted,
    alive,
    descendants,
    kernel_threads,
    name_of,
    threads,
    tree,
)
from ceasefire.record.tracefs import SENT, Tracing, default_buffer_kib, find

_FULL = 0.25
# When to look at the mappings of the program, seconds: soon, as many end soon, and then rarely.
# What it has started is looked for later only, as that takes longer.
_LOOKS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5)
_LOOK_LATER = 1.0
_LOOK_WIDER = 0.08
_LOOK_FULL = 0.2
# A look waits for so many times what the last one took: we are not to be in the program's way.
_REST = 30
_MAX_FILES = 100
_MAX_FAMILY = 4096
# The longest that events are read without looking up. A program may send them faster than we read.
_DRAIN = 1.0
# The stack is recorded after its event, by the same CPU without interruption. An emulated CPU
# may stand still in between.
_BEFORE, _AFTER = 0.0005, 0.05
# The status of a program is above that when a signal has ended it.
_BY_SIGNAL = 128


@dataclass(frozen=True)
class Result:
    """The recording, the exit status of the program, and the places that have no names yet.

    stopped: by a signal, the program or we.
    """

    recording: Recording
    status: int
    places: list["PlacedSite"]
    stopped: bool = False

    def name_places(self, found: symbols.Found) -> None:
        """Put names into the recording."""
        self.recording.sites = named_sites(self.places, found.names)
        self.recording.nameless = found.problems


def joined(results: Sequence[Result]) -> Result:
    """Return the results of all runs as one, with the first status that is not 0."""
    return Result(
        merged([result.recording for result in results]),
        next((result.status for result in results if result.status), 0),
        [place for result in results for place in result.places],
        any(result.stopped for result in results),
    )


Keep = Callable[[Recording], None]


@dataclass(frozen=True)
class PlacedSite:
    """As model.Site, with places in files instead of names."""

    program: str
    cause: str
    places: tuple[stacks.Place, ...]
    sum: Sum


class Reader:
    """Brings events, stacks and mappings together, in the order of time."""

    def __init__(self, tracing: Tracing) -> None:
        """tracing: what to read from."""
        self.state = Attributor()
        self.damage = parse.Damage()
        self._tracing = tracing
        self._stack_reader = parse.StackReader(self.damage)
        self._newest = 0.0
        self._stacks: dict[int, deque[parse.Stack]] = {}
        self._maps: deque[tuple[float, int, list[Region]]] = deque()

    def saw_maps(self, tid: int, regions: list[Region]) -> None:
        """Keep what was read from /proc/PID/maps until its time has come."""
        self._maps.append((time.clock_gettime(time.CLOCK_MONOTONIC), tid, regions))

    def drain(self, enough: Callable[[], bool]) -> bool:
        """Take what is in the buffers; say whether that was all. enough: to stop before."""
        for text in self._tracing.calls():
            events = list(parse.events(text.split("\n"), self.damage))
            if any(map(_is_sent, events)):
                self._read_stacks(events[-1].time)
            for event in events:
                self._feed(event)
            if enough():
                return False
        return True

    def _read_stacks(self, until: float) -> None:
        """Read stacks up to a time, so that not all are in memory at once."""
        if self._newest > until and (self._stack_reader.oldest() or self._newest) > until:
            return
        for text in self._tracing.stacks():
            self._keep(self._stack_reader.feed(text.split("\n")))
            if self._newest > until and (self._stack_reader.oldest() or self._newest) > until:
                return
        self._keep(self._stack_reader.end())

    def _keep(self, some: Iterator[parse.Stack]) -> None:
        for stack in some:
            self._newest = max(self._newest, stack.time)
            self._stacks.setdefault(stack.tid, deque()).append(stack)

    def _feed(self, event: parse.Event) -> None:
        while self._maps and self._maps[0][0] <= event.time:
            _, tid, regions = self._maps.popleft()
            self.state.learn(tid, regions)
        stack = None
        if _is_sent(event):
            waiting = self._stacks.get(event.tid)
            while waiting and waiting[0].time < event.time - _BEFORE:
                waiting.popleft()
            if waiting and waiting[0].time < event.time + _AFTER:
                stack = waiting.popleft()
        self.state.feed(event, stack)

    def end(self, enough: Callable[[], bool]) -> bool:
        """Read the rest; say whether that was all."""
        whole = self.drain(enough)
        while self._maps:
            _, tid, regions = self._maps.popleft()
            self.state.learn(tid, regions)
        self.state.end()
        return whole


def _is_sent(event: parse.Event) -> bool:
    return event.name == "tlb_flush" and parse.flushed(event.rest) == SENT


class Recorder:
    """Records one program."""

    def __init__(self, buffer_kib: int | None) -> None:
        """buffer_kib: for each CPU; None chooses."""
        root = find()
        if platform.machine() != "x86_64":
            raise Unsupported("only x86-64 tells its shootdowns")
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
        size = buffer_kib or default_buffer_kib(meminfo, os.cpu_count() or 1)
        self._tracing = Tracing(root, size)
        self._looker = Looker()
        self._before: dict[str, int] = {}
        self._start = 0.0
        self._environment = Environment([], "", 0, False, False)

    def command(self, words: Sequence[str], keep: Keep) -> Result:
        """Run a command to its end. Ctrl-C is for the command, as under a shell.

        keep: gets the recording, without names, as soon as there is one.
        """
        self._environment = environment(words)
        with _signals() as (seen, told, noted):
            with self._tracing as tracing:
                reader = Reader(tracing)
                child = Child(words)
                try:
                    reader.state.expect(child.pid)
                    tracing.follow([child.pid, *kernel_threads()])
                    self._begin()
                    problem = child.release(noted)
                    if problem:
                        raise NotStarted(words[0], problem)
                    with _process_file(child.pid) as gone:
                        wakes = [noted, *gone]
                        self._watch(reader, [child.pid], wakes, lambda: child.ended(seen))
                except BaseException:
                    child.kill()
                    raise
                recording = self._finish(reader, seen)
            whole = recording.total()
            recording.runs = [Run(whole.sent, whole.received, whole.saved_received)]
            result = _kept(recording, child.status, reader, keep)
            return replace(result, stopped=bool(told) or child.status > _BY_SIGNAL)

    def process(self, pid: int, seconds: float | None, keep: Keep) -> Result:
        """Look at a process that runs, with what it has started, until it ends or time is up.

        keep: as in command().
        """
        self._environment = environment(["-p", str(pid)])
        with _signals() as (seen, _, noted):
            with self._tracing as tracing:
                reader = Reader(tracing)
                family = descendants(pid, _MAX_FAMILY)
                tasks: list[int] = []
                for one in family:
                    tids = threads(one)
                    regions = next((found for _, found in self._looker.look([one])), [])
                    reader.state.process(name_of(one), tids, regions)
                    tasks += tids
                if not tasks:
                    raise UsageError(f"-p {pid}: there is no such process")
                tracing.follow([*tasks, *kernel_threads()])
                self._begin()
                end = math.inf if seconds is None else time.monotonic() + seconds

                def over() -> bool:
                    return time.monotonic() >= end or bool(seen) or not alive(pid)

                with _process_file(pid) as gone:
                    self._watch(reader, family, [noted, *gone], over, end)
                seen.clear()
                recording = self._finish(reader, seen)
            return _kept(recording, 0, reader, keep)

    def _begin(self) -> None:
        self._before = tlb_counters()
        self._start = time.monotonic()
        self._tracing.start()

    def _watch(
        self,
        reader: Reader,
        family: Sequence[int],
        wakes: Sequence[int],
        over: Callable[[], bool],
        end: float = math.inf,
    ) -> None:
        """Wait for the end; meanwhile look at mappings, and empty buffers before they are full.

        family: the processes to look at, with what they start. wakes: files that can be read when
        over() may have changed; at the time `end` it does, too.
        """
        looks = iter(_LOOKS)
        next_look = self._start + next(looks)
        next_fill = self._start + _LOOK_FULL
        while not over():
            _sleep(wakes, min(next_look, next_fill, end) - time.monotonic())
            now = time.monotonic()
            if now >= next_look:
                wider = now > self._start + _LOOK_WIDER
                for pid, regions in self._looker.look(tree(family) if wider else family):
                    reader.saw_maps(pid, regions)
                next_look = _next(now, self._start, next(looks, None), _LOOK_LATER)
            elif now >= next_fill:
                if self._tracing.used() > _FULL:
                    reader.drain(_after(_DRAIN))
                next_fill = _next(now, now, None, _LOOK_FULL)

    def _finish(self, reader: Reader, seen: list[int]) -> Recording:
        """Stop, and return the recording without sites. seen: signals; one ends the reading."""
        seconds = time.monotonic() - self._start
        self._tracing.stop()
        after = tlb_counters()
        # Before reading, which takes events away from the buffers but not from these numbers.
        whole = reader.end(lambda: bool(seen))
        state = reader.state
        recording = Recording(
            environment=self._environment,
            causes=state.causes,
            programs=state.programs,
            why_not=dict(state.why_not),
            by_source=state.by_source,
            lazy=state.lazy,
            files=dict(state.files.most_common(_MAX_FILES)),
            calls=state.calls,
            lost=self._tracing.lost() or reader.damage.lost,
            unread=reader.damage.unread,
            missing=list(self._tracing.missing),
        )
        if not whole:
            recording.remarks.append("Reading was interrupted: the last events are missing.")
        if self._looker.stuck:
            recording.remarks.append(
                "The mappings of the program could not be read any more: it has its memory locked."
            )
        recording.environment.seconds = round(seconds, 6)
        if counters.SENT in after:
            delta = counters.difference(self._before, after)
            recording.machine_sent = delta[counters.SENT]
            recording.machine_received = delta[counters.RECEIVED]
        return recording


@contextlib.contextmanager
def _signals() -> Iterator[tuple[list[int], list[int], int]]:
    """Collect signals to end instead of ending: what is recorded so far is worth a page.

    Yields a list to take them from, one that stays, and a file that can be read when they grow.
    """
    seen: list[int] = []
    told: list[int] = []
    noted, note = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def take(number: int, _frame: FrameType | None) -> None:
        seen.append(number)
        told.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [(number, signal.signal(number, take)) for number in numbers]
    wakeup = signal.set_wakeup_fd(note, warn_on_full_buffer=False)
    try:
        yield seen, told, noted
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, action in before:
            signal.signal(number, action)
        os.close(noted)
        os.close(note)


@contextlib.contextmanager
def _process_file(pid: int) -> Iterator[list[int]]:
    """Yield a file that can be read when a process has ended, or nothing if it has already."""
    try:
        number = os.pidfd_open(pid)
    except OSError:
        yield []
        return
    try:
        yield [number]
    finally:
        os.close(number)


def _sleep(wakes: Sequence[int], seconds: float) -> None:
    """Sleep until a file can be read."""
    # Not for ever: a signal may come just before.
    seconds = min(seconds, _LOOK_LATER)
    poll = select.poll()
    for number in wakes:
        poll.register(number, select.POLLIN)
    for number, _ in poll.poll(max(0.0, seconds) * 1000):
        with contextlib.suppress(OSError):
            # Only the pipe of the signals has something to take away.
            os.read(number, 64)


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _next(began: float, start: float, planned: float | None, later: float) -> float:
    """Return when to look again, after a look that began at a time."""
    now = time.monotonic()
    rest = now + _REST * (now - began)
    return max(rest, start + planned if planned else now + later)


def _kept(recording: Recording, status: int, reader: Reader, keep: Keep) -> Result:
    placed = placed_sites(reader.state)
    recording.sites = named_sites(placed, {})
    keep(recording)
    return Result(recording, status, placed)


def placed_sites(state: Attributor) -> list[PlacedSite]:
    """Return the call sites by places."""
    layouts: dict[Image, stacks.Layout] = {}
    found = []
    for (image, (program, cause, user)), part in state.sites.items():
        if image not in layouts:
            layouts[image] = stacks.Layout(image.regions.values())
        found.append(PlacedSite(program, cause, layouts[image].places(user), part))
    return found


def named_sites(placed: Iterable[PlacedSite], names: Mapping[stacks.Place, str]) -> list[Site]:
    """Return the call sites by names, the most frequent first."""
    return merged_sites(
        Site(one.program, one.cause, [place.text(names) for place in one.places], one.sum)
        for one in placed
    )


def environment(words: Sequence[str]) -> Environment:
    """Say what is recorded and where."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    return Environment(
        command=list(words),
        release=platform.release(),
        cpus=len(os.sched_getaffinity(0)),
        emulated="QEMU TCG CPU" in cpuinfo,
        fpr=modes.FPR.present(),
        load=round(os.getloadavg()[0], 2),
    )


def tlb_counters() -> dict[str, int]:
    """Return what the kernel counts of shootdowns, nothing if it does not."""
    return counters.parse_vmstat(counters.VMSTAT.read_text(encoding="ascii"))
