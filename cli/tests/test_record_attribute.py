# SPDX-License-Identifier: GPL-2.0-only
"""Shootdowns are attributed to their cause, and judged, from made-up events."""

from pathlib import Path

import pytest

from ceasefire.record import attribute, causes, parse, syscalls
from ceasefire.record.attribute import Attributor
from ceasefire.record.mappings import Region

AT = 0x7F0000000000
SIZE = 0x4000
SEND = "pages:4 reason:remote ipi send (4)"
RECEIVE = "pages:4 reason:remote shootdown (1)"
KERNEL = ("native_flush_tlb_multi", "flush_tlb_mm_range", "tlb_finish_mmu")


class Trace:
    """Feeds events, a microsecond apart."""

    def __init__(self) -> None:
        self.state = Attributor()
        self.now = 1.0

    def event(self, name: str, rest: str, tid: int = 10, cpu: int = 0) -> None:
        self.now += 1e-6
        self.state.feed(parse.Event(self.now, tid, "prog", cpu, name, rest))

    def enter(self, number: int, *args: int, tid: int = 10) -> None:
        words = ", ".join(f"{a:x}" for a in (*args, *[0] * (6 - len(args))))
        self.event("sys_enter", f"NR {number} ({words})", tid)

    def leave(self, number: int, result: int = 0, tid: int = 10) -> None:
        self.event("sys_exit", f"NR {number} = {result}", tid)

    def execute(self, comm: str, tid: int = 10) -> None:
        self.now += 1e-6
        rest = f"NR {syscalls.EXECVE} = 0"
        self.state.feed(parse.Event(self.now, tid, comm, 0, "sys_exit", rest))

    def send(self, *kernel: str, tid: int = 10, user: tuple[int, ...] = ()) -> None:
        self.now += 1e-6
        stack = parse.Stack(self.now, tid, (*KERNEL, *kernel), user)
        self.state.feed(parse.Event(self.now, tid, "prog", 0, "tlb_flush", SEND), stack)

    def queue(self, cpu: int, tid: int = 10) -> None:
        self.event("csd_queue_cpu", f"cpu={cpu} callsite=x func=flush_tlb_func csd=0", tid)

    def receive(self, cpu: int) -> None:
        self.event("tlb_flush", RECEIVE, tid=99, cpu=cpu)

    def map(self, flags: int = 2, prot: int = 1, at: int = AT, tid: int = 10) -> None:
        self.enter(syscalls.MMAP, 0, SIZE, prot, flags, 3, tid=tid)
        self.leave(syscalls.MMAP, at, tid=tid)

    def unmap(self, at: int = AT, tid: int = 10, send: bool = True) -> None:
        self.enter(syscalls.MUNMAP, at, SIZE, tid=tid)
        if send:
            self.send("__x64_sys_munmap", tid=tid)
        self.leave(syscalls.MUNMAP, tid=tid)

    def end(self) -> Attributor:
        self.state.end()
        return self.state


@pytest.fixture
def trace() -> Trace:
    return Trace()


def test_munmap_of_a_file_is_saved(trace: Trace) -> None:
    trace.map()
    trace.unmap()
    state = trace.end()
    assert (state.causes["munmap"].sent, state.causes["munmap"].saved) == (1, 1.0)
    assert not state.why_not
    assert state.calls["munmap"].flushing == 1
    assert state.calls["mmap"].quiet == 1


def test_munmap_without_shootdown_counts_nothing(trace: Trace) -> None:
    trace.map()
    trace.unmap(send=False)
    assert not trace.end().causes
    assert trace.state.calls["munmap"].quiet == 1


def test_why_munmap_flushes(trace: Trace) -> None:
    trace.unmap()
    trace.map(flags=2 | syscalls.MAP_ANONYMOUS)
    trace.unmap()
    trace.map(flags=1, prot=3)
    trace.event("page_fault_user", f"address={AT + 5:#x} ip=0x1 error_code=0x7")
    trace.unmap()
    state = trace.end()
    assert state.why_not == {"unknown": 1, "anonymous": 1, "dirty": 1}
    assert state.by_source == 1
    assert state.lazy == 0
    assert state.causes["munmap"].saved == 0


def test_what_latr_spares(trace: Trace) -> None:
    for flags in (2, 2 | syscalls.MAP_ANONYMOUS, 1):
        trace.map(flags=flags, prot=3)
        if flags == 1:
            trace.event("page_fault_user", f"address={AT + 5:#x} ip=0x1 error_code=0x7")
        trace.enter(syscalls.MUNMAP, AT, SIZE)
        trace.send("__x64_sys_munmap")
        trace.queue(1)
        trace.queue(2)
        trace.leave(syscalls.MUNMAP)
    trace.send("task_numa_work")
    trace.queue(1)
    state = trace.end()
    assert state.why_not == {"anonymous": 1, "dirty": 1}
    # Not for the file that was written.
    assert state.lazy == 2 + 2 + 1


def test_failed_mmap_maps_nothing(trace: Trace) -> None:
    trace.enter(syscalls.MMAP, 0, SIZE, 1, 2, 3)
    trace.leave(syscalls.MMAP, -12)
    trace.unmap()
    assert trace.end().why_not == {"unknown": 1}


def test_threads_share_mappings_and_children_do_not(trace: Trace) -> None:
    trace.map()
    trace.event("task_newtask", "pid=11 comm=prog clone_flags=3d0f00 oom_score_adj=0")
    trace.event("task_newtask", "pid=12 comm=prog clone_flags=1200000 oom_score_adj=0")
    trace.unmap(tid=11)
    trace.unmap(tid=12)
    state = trace.end()
    assert state.causes["munmap"].saved == 1
    assert state.why_not == {"moved": 1}


def test_address_may_come_back_before_the_call_has(trace: Trace) -> None:
    trace.event("task_newtask", "pid=11 comm=prog clone_flags=100 oom_score_adj=0")
    trace.map()
    trace.enter(syscalls.MUNMAP, AT, SIZE)
    trace.send("__x64_sys_munmap")
    trace.map(tid=11)
    trace.leave(syscalls.MUNMAP)
    trace.unmap(tid=11)
    assert trace.end().causes["munmap"].saved == 2


def test_exec_starts_afresh(trace: Trace) -> None:
    trace.map()
    trace.execute("other")
    trace.unmap()
    state = trace.end()
    assert state.why_not == {"unknown": 1}
    assert list(state.programs) == ["other"]


def test_what_comes_before_the_program_is_left_out(trace: Trace) -> None:
    trace.state.expect(10)
    trace.send("wp_page_copy")
    trace.leave(syscalls.EXECVE, -2)
    trace.send("wp_page_copy")
    trace.execute("prog")
    trace.send("wp_page_copy")
    assert trace.end().causes["cow"].sent == 1


def test_receivers_are_those_that_the_kernel_named(trace: Trace) -> None:
    trace.map()
    trace.enter(syscalls.MUNMAP, AT, SIZE)
    trace.send("__x64_sys_munmap")
    start = trace.now
    trace.queue(1)
    trace.queue(2)
    trace.receive(2)
    trace.receive(1)
    last = trace.now
    trace.leave(syscalls.MUNMAP)
    part = trace.end().causes["munmap"]
    assert (part.received, part.saved_received, part.waits) == (2, 2.0, 1)
    assert part.wait_usec == pytest.approx((last - start) * 1e6)


def test_receivers_of_kernels_that_name_none(trace: Trace) -> None:
    trace.map()
    trace.enter(syscalls.MUNMAP, AT, SIZE)
    trace.send("__x64_sys_munmap")
    trace.receive(0)
    trace.receive(1)
    trace.receive(1)
    trace.leave(syscalls.MUNMAP)
    assert trace.end().causes["munmap"].received == 1


def test_other_function_calls_are_no_shootdowns(trace: Trace) -> None:
    trace.enter(syscalls.MUNMAP, AT, SIZE)
    trace.send("__x64_sys_munmap")
    trace.event("csd_queue_cpu", "cpu=1 callsite=x func=ipi_mb csd=0")
    trace.receive(1)
    trace.leave(syscalls.MUNMAP)
    assert trace.end().causes["munmap"].received == 0


def test_reclaim_is_saved_by_the_share_of_files(trace: Trace) -> None:
    trace.map()
    trace.map(flags=2 | syscalls.MAP_ANONYMOUS, at=AT + 0x10000)
    trace.send("try_to_unmap_flush", "shrink_folio_list", "shrink_node", "kswapd", tid=50)
    part = trace.end().causes["reclaim"]
    assert (part.sent, part.saved) == (1, 0.5)


def test_process_that_ran_before(trace: Trace) -> None:
    region = Region(AT, AT + SIZE, "r-xp", 0, "/usr/lib/libx.so")
    trace.state.process("server", [10, 11], [region])
    trace.unmap(tid=11)
    trace.map(tid=10)
    trace.unmap(tid=11)
    state = trace.end()
    assert list(state.programs) == ["server"]
    assert (state.causes["munmap"].sent, state.causes["munmap"].saved) == (2, 1.0)


def test_sites_and_files(trace: Trace) -> None:
    trace.map()
    trace.state.learn(10, [Region(AT, AT + SIZE, "r--p", 0, "/srv/file")])
    trace.enter(syscalls.MUNMAP, AT, SIZE)
    trace.send("__x64_sys_munmap", user=(1, 2))
    trace.leave(syscalls.MUNMAP)
    state = trace.end()
    assert [key for _, key in state.sites] == [("prog", "munmap", (1, 2))]
    assert state.files == {"/srv/file": 1}


def test_damaged_events_are_survived(trace: Trace) -> None:
    for name in ("sys_enter", "sys_exit", "csd_queue_cpu", "task_newtask", "page_fault_user"):
        trace.event(name, "something new")
    trace.event("sched_process_exit", "comm=a pid=10 prio=120")
    trace.event("tlb_flush", "something new")
    trace.event("unheard_of", "")
    assert not trace.end().causes


def test_process_that_sends_after_its_end(data: Path) -> None:
    """Idle CPUs answer the last shootdowns unseen: the next answer is one to another process."""
    damage = parse.Damage()
    lines = (data / "exit-7.3.trace").read_text().splitlines()
    state, ended = Attributor(), set()
    for event in parse.events(lines, damage):
        if event.name == "sched_process_exit":
            ended.add(event.tid)
        kernel = "exit_mmap" if event.tid in ended else "__x64_sys_munmap"
        state.feed(event, parse.Stack(event.time, event.tid, (*KERNEL, kernel), ()))
    state.end()
    assert damage.unread == 0
    last = state.causes["exit"]
    assert (last.sent, last.received, last.waits, last.wait_usec) == (3, 3, 0, 0.0)
    # All answers are those to munmap.
    other = state.causes["munmap"]
    assert (other.sent, other.received, other.waits) == (6, 5, 5)
    assert other.wait_usec < 30e3
    assert list(state.programs) == ["exits"]


def test_thread_that_executes_takes_the_number_of_the_first(trace: Trace) -> None:
    trace.event("task_newtask", "pid=11 comm=prog clone_flags=3d0f00 oom_score_adj=0")
    trace.event("sched_process_exit", "comm=prog pid=10 prio=120")
    trace.execute("other", tid=10)
    trace.map()
    trace.enter(syscalls.MUNMAP, AT, SIZE)
    trace.send("__x64_sys_munmap")
    trace.queue(1)
    # Another task where it was: the sender waits for the CPU.
    trace.event("page_fault_user", "address=0x1 ip=0x1 error_code=0x7", tid=12)
    trace.receive(1)
    trace.leave(syscalls.MUNMAP)
    part = trace.end().causes["munmap"]
    assert (part.sent, part.saved, part.received, part.waits) == (1, 1.0, 1, 1)
    assert list(trace.state.programs) == ["other"]


def test_answers_come_soon_or_never(trace: Trace) -> None:
    trace.send("wp_page_copy", "do_wp_page")
    trace.queue(1)
    # The task goes on without a system call; CPU 1 answers to others.
    trace.now += 60
    trace.receive(1)
    part = trace.end().causes["cow"]
    assert (part.sent, part.received, part.waits) == (1, 1, 0)


def test_tasks_that_have_ended_are_forgotten(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribute, "_MAX_ENDED", 3)
    for tid in (*range(10, 20), 10):
        trace.event("task_newtask", f"pid={tid} comm=prog clone_flags=100 oom_score_adj=0", tid=5)
        trace.event("sched_process_exit", f"comm=prog pid={tid} prio=120", tid)
        trace.send("exit_mmap", tid=tid)
    assert len(trace.state._tasks) <= 3 + 1
    # None of their shootdowns is lost, though nobody goes on.
    assert trace.end().causes["exit"].sent == 11


@pytest.mark.parametrize(
    ("kernel", "call", "advice", "cause"),
    [
        (("__x64_sys_munmap",), syscalls.MUNMAP, 0, "munmap"),
        (("__vm_munmap",), None, 0, "munmap"),
        (("do_madvise",), syscalls.MADVISE, 4, "madvise:DONTNEED"),
        (("do_madvise",), syscalls.MADVISE, 77, "madvise:77"),
        (("do_mprotect_pkey",), syscalls.PKEY_MPROTECT, 0, "mprotect"),
        (("wp_page_copy", "handle_mm_fault", "exc_page_fault"), None, 0, "cow"),
        (("handle_mm_fault", "asm_exc_page_fault"), None, 0, "fault"),
        # Reclaim inside of a fault, migration inside of compaction for a fault.
        (("shrink_node", "handle_mm_fault"), None, 0, "reclaim"),
        (("migrate_pages_batch", "compact_zone", "handle_mm_fault"), None, 0, "migration"),
        (("migrate_pages", "migrate_misplaced_folio", "do_numa_page"), None, 0, "numa"),
        (("dup_mmap", "copy_process", "__x64_sys_clone"), None, 0, "fork"),
        (("exit_mmap", "__x64_sys_exit_group"), None, 0, "exit"),
        (("exit_mmap", "begin_new_exec", "__x64_sys_execve"), None, 0, "exit"),
        (("folio_mkclean", "__x64_sys_msync"), None, 0, "writeback"),
        (("unmap_mapping_range", "__x64_sys_ftruncate"), None, 0, "truncate"),
        (("fpr_settle", "fpr_drain_work"), None, 0, "fpr"),
        (("collapse_huge_page", "khugepaged"), None, 0, "hugepage"),
        (("something", "__x64_sys_move_pages"), None, 0, "move_pages"),
        ((), syscalls.MREMAP, 0, "mremap"),
        (("do_madvise",), syscalls.PROCESS_MADVISE, 21, "process_madvise:PAGEOUT"),
        # The events between were lost.
        (("__x64_sys_munmap",), syscalls.MADVISE, 4, "munmap"),
        (("do_madvise",), syscalls.MUNMAP, 0, "madvise"),
        ((), None, 0, "other"),
    ],
)
def test_causes(kernel: tuple[str, ...], call: int | None, advice: int, cause: str) -> None:
    assert causes.cause_of(kernel, call, advice, fault=False) == cause
    assert causes.label(cause)


def test_fault_counts_only_without_stacks() -> None:
    assert causes.cause_of((), None, 0, fault=True) == "cow"
    assert causes.cause_of(("something",), None, 0, fault=True) == "other"
