# SPDX-License-Identifier: GPL-2.0-only
"""Follows the tasks of a recording through its events and sums up their shootdowns by cause.

Events come in the order of time, each shootdown together with its stacks. Kept per task: its
address space and the call under way; per address space: the mappings. A shootdown is summed up
when its task goes on, as by then all CPUs have answered. Nothing of an event is kept after that.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ceasefire.record import causes, parse, syscalls
from ceasefire.record.mappings import (
    ANONYMOUS,
    LAZY,
    SAVED,
    UNKNOWN,
    AddressSpace,
    Mapping,
    Region,
)
from ceasefire.record.model import Calls, Sum
from ceasefire.record.tracefs import RECEIVED, SENT

# A program has as many names, call sites and files as it likes; we keep so many apart.
_MAX_PROGRAMS = 1000
_MAX_SITES = 20000
_MAX_FILES = 20000
_MAX_REGIONS = 10000
OTHERS = "(others)"
# So many tasks that have ended are known by name. After Linux 6.12 a process says that it ends
# before it gives its memory back, and sends the last shootdowns after that.
_MAX_ENDED = 10000
# Seconds. The kernel takes a CPU that answers later for dead.
_LONGEST_WAIT = 5.0
# Seconds for which the mappings are not looked at again, to estimate what reclaim takes.
_SHARE_AGE = 0.01


@dataclass(eq=False)
class Image:
    """The code of a program since its last exec: where addresses of stacks are looked up."""

    regions: dict[int, Region] = field(default_factory=dict)

    def learn(self, regions: Iterable[Region]) -> None:
        """Take the executable parts of /proc/PID/maps."""
        for region in regions:
            if "x" in region.rights and len(self.regions) < _MAX_REGIONS:
                self.regions[region.start] = region


_NO_IMAGE = Image()


@dataclass(eq=False)
class Space:
    """An address space, of one process as a rule. None of its mappings are known at first."""

    name: str
    mappings: AddressSpace = field(default_factory=AddressSpace)
    image: Image = field(default_factory=Image)


@dataclass
class Call:
    """A recorded system call under way."""

    number: int
    args: tuple[int, ...]
    start: float
    sent: int = 0
    verdict: str = UNKNOWN
    path: str = ""


@dataclass(eq=False)
class Send:
    """A shootdown under way. targets: CPUs that have not answered; None: nobody told us.

    timed: whether its task is seen when it goes on.
    """

    space: Space
    time: float
    cpu: int
    cause: str
    why_not: str
    share: float
    path: str
    user: tuple[int, ...]
    timed: bool
    targets: set[int] | None = None
    received: int = 0
    answered: set[int] = field(default_factory=set)
    last: float | None = None


@dataclass(eq=False)
class Task:
    """A thread. ended: it has said so, and says no more when it goes on."""

    space: Space
    ended: bool = False
    call: Call | None = None
    send: Send | None = None
    fault: bool = False


SiteKey = tuple[str, str, tuple[int, ...]]


class Attributor:
    """The state of all tasks, and the sums."""

    def __init__(self) -> None:
        """Nothing has happened."""
        self.causes: dict[str, Sum] = {}
        self.programs: dict[str, Sum] = {}
        self.why_not: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.calls: dict[str, Calls] = {}
        self.by_source = 0
        self.lazy = 0
        # One image may be that of several processes, so it is part of the key.
        self.sites: dict[tuple[Image, SiteKey], Sum] = {}
        self._tasks: dict[int, Task] = {}
        self._expected: set[int] = set()
        self._ended: dict[int, None] = {}
        # Tasks whose shootdown is under way.
        self._pending: list[Task] = []
        self._has_targets = False
        self._share, self._share_time = 0.0, 0.0
        self._handlers = {
            "sys_enter": self._enter,
            "sys_exit": self._exit,
            "csd_queue_cpu": self._queue,
            "task_newtask": self._new_task,
            "sched_process_exit": self._task_exit,
            "page_fault_user": self._fault,
            "page_fault_kernel": self._fault,
        }

    def process(self, name: str, tids: Iterable[int], regions: Sequence[Region]) -> None:
        """Make a process known that runs already."""
        space = Space(name)
        space.image.learn(regions)
        for region in regions:
            # How it was mapped nobody knows any more.
            shared = "s" in region.rights
            space.mappings.put(Mapping(region.start, region.end, shared, UNKNOWN, path=region.path))
        for tid in tids:
            self._tasks[tid] = Task(space)

    def expect(self, tid: int) -> None:
        """Leave out what a task does before it executes the program: until then it is ours."""
        self._expected.add(tid)

    def learn(self, tid: int, regions: Sequence[Region]) -> None:
        """Take /proc/PID/maps of a process as it is now in the order of events."""
        task = self._tasks.get(tid)
        if task:
            task.space.image.learn(regions)
            task.space.mappings.learn(regions)

    def feed(self, event: parse.Event, stack: parse.Stack | None = None) -> None:
        """Take the next event; a shootdown with its stacks."""
        if event.tid in self._expected:
            if not _is_exec(event):
                return
            self._expected.discard(event.tid)
        self._pass(event)
        if event.name == "tlb_flush":
            reason = parse.flushed(event.rest)
            if reason == SENT:
                self._send(event, stack)
            elif reason == RECEIVED:
                self._receive(event)
            return
        handler = self._handlers.get(event.name)
        if handler:
            handler(self._task(event), event)

    def end(self) -> None:
        """No more events come."""
        for task in self._pending[:]:
            self._finish(task)

    def _task(self, event: parse.Event) -> Task:
        task = self._tasks.get(event.tid)
        if task is None:
            task = self._tasks[event.tid] = Task(Space(event.comm))
        return task

    def _enter(self, task: Task, event: parse.Event) -> None:
        self._finish(task)
        found = parse.entered(event.rest)
        if found is None:
            return
        call = task.call = Call(*found, event.time)
        task.fault = False
        args, mappings = call.args, task.space.mappings
        if call.number == syscalls.MUNMAP:
            start, end = args[0], args[0] + args[1]
            call.verdict = mappings.verdict(start, end)
            call.path = next((m.path for m in mappings.within(start, end) if m.path), "")
            # Now: another thread may get the addresses before this call has returned.
            mappings.remove(start, end)
        elif call.number in (syscalls.MPROTECT, syscalls.PKEY_MPROTECT):
            mappings.protect(args[0], args[0] + args[1], args[2])

    def _exit(self, task: Task, event: parse.Event) -> None:
        self._finish(task)
        found = parse.left(event.rest)
        call, task.call = task.call, None
        if found is not None and found[0] in syscalls.EXECS and found[1] == 0:
            # Also of a thread that has become the first one of its process meanwhile: that one has
            # ended, and this one has its number now.
            self._ended.pop(event.tid, None)
            self._tasks[event.tid] = Task(Space(event.comm))
            return
        if found is None or call is None or call.number != found[0]:
            return
        result, args, mappings = found[1], call.args, task.space.mappings
        self._account(call, _usec(call.start, event.time))
        if syscalls.failed(result):
            return
        if call.number == syscalls.MMAP:
            mappings.map(result, args)
        elif call.number == syscalls.MREMAP:
            mappings.move(args[0], args[1], result, args[2])

    def _account(self, call: Call, usec: float) -> None:
        calls = self.calls.setdefault(syscalls.NAMES.get(call.number, str(call.number)), Calls())
        if call.sent:
            calls.flushing += 1
            calls.flushing_usec += usec
        else:
            calls.quiet += 1
            calls.quiet_usec += usec

    def _fault(self, task: Task, event: parse.Event) -> None:
        self._finish(task)
        address = parse.fault_address(event.rest)
        if address is None:
            return
        task.fault = True
        mapping = task.space.mappings.at(address)
        if mapping:
            mapping.written = True

    def _new_task(self, task: Task, event: parse.Event) -> None:
        self._finish(task)
        found = parse.new_task(event.rest)
        if found is None:
            return
        tid, flags = found
        space = task.space
        if not flags & syscalls.CLONE_VM:
            space = Space(space.name, space.mappings.copy(), space.image)
        if tid in self._tasks:
            self._finish(self._tasks[tid])
        self._tasks[tid] = Task(space)

    def _task_exit(self, task: Task, event: parse.Event) -> None:
        self._finish(task)
        # What it has mapped is nobody's any more, but what it still sends has its name.
        self._tasks[event.tid] = Task(Space(task.space.name, image=task.space.image), ended=True)
        # The last one of the dictionary, where it was before or not.
        self._ended.pop(event.tid, None)
        self._ended[event.tid] = None
        if len(self._ended) > _MAX_ENDED:
            oldest = next(iter(self._ended))
            del self._ended[oldest]
            # Its number may be that of another one by now.
            if oldest in self._tasks and self._tasks[oldest].ended:
                self._finish(self._tasks.pop(oldest))

    def _pass(self, event: parse.Event) -> None:
        """Sum up the shootdowns that are over, though their senders did not say so.

        A CPU that is idle answers unseen. The shootdown would wait for its next answer, to another
        one, if the sender does nothing any more: it has ended, or goes on without a system call.
        """
        for task in self._pending[:]:
            send = task.send
            assert send is not None
            other = event.cpu == send.cpu and self._tasks.get(event.tid) is not task
            if (task.ended and other) or event.time > send.time + _LONGEST_WAIT:
                self._finish(task)

    def _send(self, event: parse.Event, stack: parse.Stack | None) -> None:
        task = self._task(event)
        self._finish(task)
        call = task.call
        kernel = stack.kernel if stack else ()
        advice = 0
        if call:
            call.sent += 1
            advice = call.args[3 if call.number == syscalls.PROCESS_MADVISE else 2]
        cause = causes.cause_of(kernel, call.number if call else None, advice, fault=task.fault)
        why_not, share, path = "", 0.0, ""
        if cause == causes.MUNMAP:
            why_not = call.verdict if call and call.number == syscalls.MUNMAP else UNKNOWN
            share = float(why_not == SAVED)
            path = call.path if call else ""
        elif cause == causes.RECLAIM:
            share = self._share_of_reclaim(event.time)
        task.send = Send(
            task.space,
            event.time,
            event.cpu,
            cause,
            why_not,
            share,
            path,
            stack.user if stack else (),
            timed=not task.ended,
        )
        self._pending.append(task)

    def _share_of_reclaim(self, time: float) -> float:
        """Return how much of the memory that reclaim takes is such that FPR spares a flush."""
        if time - self._share_time > _SHARE_AGE:
            spaces = {task.space for task in self._tasks.values() if not task.ended}
            sizes = [s.mappings.sizes() for s in spaces]
            good, every = sum(s[0] for s in sizes), sum(s[1] for s in sizes)
            self._share = good / every if every else 0.0
            self._share_time = time
        return self._share

    def _queue(self, task: Task, event: parse.Event) -> None:
        self._has_targets = True
        cpu = parse.queued(event.rest)
        if cpu is None or task.send is None:
            return
        if task.send.targets is None:
            task.send.targets = set()
        task.send.targets.add(cpu)
        task.send.received += 1

    def _receive(self, event: parse.Event) -> None:
        for task in self._pending:
            send = task.send
            assert send is not None
            if send.targets is not None:
                if event.cpu in send.targets:
                    send.targets.discard(event.cpu)
                    send.last = event.time
                    return
            elif not self._has_targets and event.cpu != send.cpu and event.cpu not in send.answered:
                send.answered.add(event.cpu)
                send.received += 1
                send.last = event.time
                return

    def _finish(self, task: Task) -> None:
        """Sum up what a task has sent: it goes on, so it was answered."""
        send, task.send = task.send, None
        if send is None:
            return
        self._pending.remove(task)
        name = send.space.name
        if name not in self.programs and len(self.programs) >= _MAX_PROGRAMS:
            name = OTHERS
        wait = _usec(send.time, send.last) if send.timed and send.last is not None else None
        key = (send.space.image, (name, send.cause, send.user))
        if key not in self.sites and len(self.sites) >= _MAX_SITES:
            key = (_NO_IMAGE, (OTHERS, send.cause, ()))
        for sums in (
            self.causes.setdefault(send.cause, Sum()),
            self.programs.setdefault(name, Sum()),
            self.sites.setdefault(key, Sum()),
        ):
            sums.add(send.received, send.share, wait)
        if send.cause == causes.NUMA:
            self.lazy += send.received
        if send.cause == causes.MUNMAP:
            if send.why_not in LAZY:
                self.lazy += send.received
            if send.why_not:
                self.why_not[send.why_not] += 1
                self.by_source += send.why_not == ANONYMOUS
            else:
                known = send.path in self.files or len(self.files) < _MAX_FILES
                self.files[send.path if known else ""] += 1


def _usec(begin: float, end: float) -> float:
    # The lines of different CPUs, or damaged ones, may come in another order.
    return max(0.0, end - begin) * 1e6


def _is_exec(event: parse.Event) -> bool:
    found = parse.left(event.rest) if event.name == "sys_exit" else None
    return found is not None and found[0] in syscalls.EXECS and found[1] == 0
