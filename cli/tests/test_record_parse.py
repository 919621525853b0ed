# SPDX-License-Identifier: GPL-2.0-only
"""The text of trace buffers is read: lines, stacks, what is damaged."""

import pytest

from ceasefire.record import parse, tracefs

LINES = """\
            prog-1234    [001] d..1.   12.345678: sys_enter: NR 11 (7f00, 4000, 0, 0, 0, 0)
  kworker/u8:1-x-77    [000] .....   12.345679: tlb_flush: pages:-1 reason:remote ipi send (4)
     odd na-me-5 ( 1234) [003] ..... 13.000000: sys_exit: NR 9 = -12
CPU:1 [LOST 42 EVENTS]
CPU:1 [LOST EVENTS]
this is no line of a trace
"""


def test_lines_are_read() -> None:
    damage = parse.Damage()
    found = list(parse.events(LINES.splitlines(), damage))
    assert [(e.comm, e.tid, e.cpu, e.time, e.name) for e in found] == [
        ("prog", 1234, 1, 12.345678, "sys_enter"),
        ("kworker/u8:1-x", 77, 0, 12.345679, "tlb_flush"),
        ("odd na-me", 5, 3, 13.0, "sys_exit"),
    ]
    assert (damage.lost, damage.unread) == (43, 1)


def test_fields_are_read() -> None:
    assert parse.entered("NR 11 (7f00, 4000, 0, 0, 0, ffffffff)") == (
        11,
        (0x7F00, 0x4000, 0, 0, 0, 0xFFFFFFFF),
    )
    assert parse.left("NR 9 = -12") == (9, -12)
    assert parse.flushed("pages:33 reason:remote ipi send (4)") == 4
    assert parse.fault_address("address=0x7f12 ip=0x40 error_code=0x7") == 0x7F12
    assert parse.fault_address("address=clear_user ip=0x40 error_code=0x7") is None
    flush = "cpu=3 callsite=on_each_cpu_cond_mask+0x5 func=flush_tlb_func csd=0000"
    assert parse.queued(flush) == 3
    assert parse.queued(flush.replace("flush_tlb_func", "do_sync_core")) is None
    assert parse.new_task("pid=8 comm=a pid=9 b clone_flags=50f00 oom_score_adj=0") == (8, 0x50F00)


@pytest.mark.parametrize(
    "read",
    [
        parse.entered,
        parse.left,
        parse.flushed,
        parse.fault_address,
        parse.queued,
        parse.new_task,
    ],
)
def test_other_fields_are_no_error(read: object) -> None:
    assert callable(read)
    assert read("something new") is None


STACKS = """\
 a-1 [000] ..... 1.000000: tlb_flush: pages:1 reason:remote ipi send (4)
 a-1 [000] ..... 1.000001: <stack trace>
 => native_flush_tlb_multi
 => wp_page_copy.isra.0
 => __x64_sys_munmap+0x12/0x20
 b-2 [001] ..... 1.000002: tlb_flush: pages:1 reason:remote ipi send (4)
 a-1 [000] ..... 1.000003: <user stack trace>
 =>  <00007f0000001000>
 =>  <0000000000401000>
 b-2 [001] ..... 1.000004: <user stack trace>
 a-1 [000] ..... 1.000005: tlb_flush: pages:1 reason:remote ipi send (4)
"""


def test_stacks_belong_to_the_event_of_their_cpu() -> None:
    reader = parse.StackReader(parse.Damage())
    found = list(reader.feed(STACKS.splitlines()))
    kernel = ("native_flush_tlb_multi", "wp_page_copy", "__x64_sys_munmap")
    assert found == [parse.Stack(1.0, 1, kernel, (0x7F0000001000, 0x401000))]
    assert reader.oldest() == 1.000002
    assert [(s.tid, s.user) for s in reader.end()] == [(2, ()), (1, ())]
    assert reader.oldest() is None


def test_frame_without_event_is_left_out() -> None:
    reader = parse.StackReader(parse.Damage())
    assert not list(reader.feed([" => native_flush_tlb_multi"]))
    assert not list(reader.end())


def test_statistics_and_sizes_of_buffers() -> None:
    text = "entries: 10\noverrun: 2\nbytes: 480\noldest event ts:  5.1\ndropped events: 3\n"
    assert tracefs.parse_stats(text)["dropped events"] == 3
    assert "oldest event ts" not in tracefs.parse_stats(text)
    meminfo = "MemTotal: 1 kB\nMemAvailable:  {} kB\n"
    assert tracefs.default_buffer_kib(meminfo.format(1 << 20), 2) == 16384
    assert tracefs.default_buffer_kib(meminfo.format(1 << 19), 4) == 4096
    assert tracefs.default_buffer_kib("", 2) == 1024
