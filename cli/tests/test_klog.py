# SPDX-License-Identifier: GPL-2.0-only
"""The judge of kernel logs: it must see every kind of complaint, and no other line."""

import re
import subprocess
from pathlib import Path

import pytest

from ceasefire.vm import klog

BAD = (
    "WARNING: CPU: 1 PID: 99 at mm/memory.c:100 unmap_page_range+0x1/0x2",
    "WARNING: possible circular locking dependency detected",
    "WARNING: suspicious RCU usage",
    "WARNING: inconsistent lock state",
    "BUG: non-zero pgtables_bytes on freeing mm: 4096",
    "BUG: Bad page state in process a  pfn:1234",
    "BUG: Bad rss-counter state mm:0 type:MM_FILEPAGES val:1",
    "BUG: sleeping function called from invalid context at mm/x.c:1",
    "BUG: unable to handle page fault for address: 0000000000000010",
    "BUG: KASAN: use-after-free in a+0x1/0x2",
    "BUG kmalloc-64 (Tainted: G): Redzone overwritten",
    "kernel BUG at mm/page_table_check.c:120!",
    "Oops: Oops: 0000 [#1] SMP",
    "Kernel panic - not syncing: Fatal exception",
    "general protection fault, probably for non-canonical address 0xaaaaaaaaaaaaaaaa",
    "INFO: task fpr_aba:77 blocked for more than 120 seconds.",
    "INFO: possible recursive locking detected",
    "rcu: INFO: rcu_sched self-detected stall on CPU",
    "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
    "rcu: rcu_sched kthread starved for 1000 jiffies!",
    "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [a:1]",
    "NMI watchdog: Watchdog detected hard LOCKUP on cpu 1",
    "pagealloc: memory corruption",
    "pagealloc: single bit error",
    "list_del corruption. prev->next should be 1, but was 2",
    "refcount_t: underflow; use-after-free.",
    "UBSAN: array-index-out-of-bounds in mm/x.c:1:2",
)
GOOD = (
    "Linux version 6.12",
    "ceasefire-test: a WARNING: of a program",
    "x: BUG: not one",
    "NMI watchdog: Perf NMI watchdog permanently disabled",
)
STAMPS = ("[    1.234567] ", "[   12.000001][   T77] ", "[    1.5][    C1] ", "", "<4>[    1.2] ")


@pytest.mark.parametrize("line", BAD)
@pytest.mark.parametrize("stamp", STAMPS)
def test_every_complaint_is_seen(line: str, stamp: str) -> None:
    verdict = klog.scan([f"{stamp}fine\n", f"{stamp}{line}\n"])
    assert [report.line for report in verdict.reports] == [2]
    assert not verdict.clean


def test_good_log_is_clean(data: Path) -> None:
    with (data / "klog-good.txt").open() as lines:
        verdict = klog.scan(lines)
    assert verdict.clean
    assert verdict.booted
    assert verdict.status == 3


def test_guest_that_did_not_boot() -> None:
    verdict = klog.scan(["[    0.1] Linux version"])
    assert not verdict.booted
    assert verdict.status is None


def test_expected_complaints_can_be_allowed() -> None:
    lines = ["[ 1.0] WARNING: CPU: 0 at mm/a.c:1 wanted+0x1\n", "[ 1.1] RIP: 0010\n"]
    assert klog.scan(lines, allow=[r"WARNING: .* wanted\+"]).clean
    assert not klog.scan(lines, allow=["other"]).clean


def test_one_complaint_with_its_backtrace_is_one_report() -> None:
    lines = ["BUG: Bad page state in process a", "Call Trace:", " <TASK>", "BUG: Bad page state"]
    verdict = klog.scan(lines)
    assert len(verdict.reports) == 1
    assert verdict.reports[0].text == tuple(lines)


def test_description_shows_the_first_and_counts_the_rest() -> None:
    lines: list[str] = []
    for number in range(5):
        lines += [f"BUG: number {number}", *["noise"] * klog.CONTEXT_LINES]
    text = klog.describe(klog.scan(lines))
    assert "BUG: number 0" in text
    assert "BUG: number 4" not in text
    assert "and 2 more" in text


def test_emulator_failed_is_only_known_mistakes_before_the_command() -> None:
    oops = "[    1.1] Oops: int3: 0000 [#1] SMP NOPTI"
    ready = "[    2.0] ceasefire-vm: ready"
    other = "qemu-system-x86_64: ../system/physmem.c:1: other: Assertion `x' failed."
    panic = "[    1.1] Kernel panic - not syncing: x"
    timer = "[    0.05] Kernel panic - not syncing: IO-APIC + timer doesn't work!  Boot with apic=d"
    assert klog.emulator_failed(klog.scan([oops, panic])) == "lost a code patch"
    assert klog.emulator_failed(klog.scan([timer])) == "was too slow with a timer"
    ended = (
        "qemu-system-x86_64: ../../hw/pci/msix.c:218: msix_table_mmio_write: Assertion "
        "`addr + size <= dev->msix_entries_nr * PCI_MSIX_ENTRY_SIZE' failed."
    )
    assert klog.emulator_failed(klog.scan([ended])) == "has ended itself"
    assert not klog.lost_patch(klog.scan([timer]))
    for lines in (
        [ready, oops],
        [ready, timer],
        [ready, ended],
        [panic],
        [other],
        ["[    1.0] Oops: 0000 [#1] SMP NOPTI"],
        ["[    0.9] WARNING: CPU: 0", oops],
        [],
    ):
        assert not klog.emulator_failed(klog.scan(lines))


def test_a_lost_patch_is_known_at_any_time() -> None:
    oops = "[    0.4] Oops: int3: 0000 [#1] SMP"
    ready = "[    0.3] ceasefire-vm: ready"
    assert klog.lost_patch(klog.scan([ready, oops]))
    assert not klog.lost_patch(klog.scan([ready, "[    0.4] WARNING: CPU: 0", oops]))
    assert not klog.lost_patch(klog.scan([ready]))


def test_the_list_means_the_same_to_grep() -> None:
    for line in BAD:
        done = subprocess.run(
            ["grep", "-cEf", klog.COMPLAINTS],
            input=line,
            text=True,
            capture_output=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("1\n", ""), line


def test_guest_looks_for_the_same_list(root: Path, tmp_path: Path) -> None:
    text = (root / "tests/guest/run-mutations").read_text(encoding="utf-8")
    function = re.search(r"^complained\(\) \{.*?^\}$", text, re.MULTILINE | re.DOTALL)
    stamps = re.search(r"^sed .*>\$stamped", text, re.MULTILINE)
    marks = re.search(r"^\techo '(.*)' >>\$stamped", text, re.MULTILINE)
    assert function and stamps and marks
    log, heard, looks = tmp_path / "dmesg", tmp_path / "heard", "ceasefire-test: mutation 7 looks"
    files = f"patterns={klog.COMPLAINTS}; stamped={tmp_path}/stamped"
    script = (
        f"{files}; {stamps[0]}; echo '{marks[1]}' >>$stamped; note() {{ :; }}; {function[0]}\n"
        f"grep -Ef $stamped {log} >{heard}; exec 4<{heard}; complained 7"
    )
    # Where nobody listens any more there may be damage.
    for lines, status in (*(([bad, looks], 0) for bad in BAD), ([*GOOD, looks], 1), ([], 0)):
        log.write_text("".join(f"[    1.0][ T1] {line}\n" for line in lines))
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (status, ""), lines


def test_what_the_checking_emulator_reports_is_bad() -> None:
    assert klog.is_bad("tlb-check: violation class=freed kind=frame cpu=0 mode=user access=read")
    assert klog.is_bad("ERROR:../accel/tcg/cputlb.c:12:f: assertion failed: (x)")
    assert not klog.is_bad("tlb-check: summary checks=1 violations=0")
