# SPDX-License-Identifier: GPL-2.0-only
"""Parsing of what the kernel counts, from recorded inputs."""

import os
import threading
from pathlib import Path

import pytest

from ceasefire import counters
from ceasefire.errors import UsageError


def test_vmstat_takes_tlb_and_fpr_only(data: Path) -> None:
    found = counters.parse_vmstat((data / "vmstat-fpr.txt").read_text())
    assert list(found) == [
        "nr_tlb_remote_flush",
        "nr_tlb_remote_flush_received",
        "nr_tlb_local_flush_all",
        "nr_tlb_local_flush_one",
        "fpr_map",
        "fpr_map_ineligible_file",
        "fpr_skip",
        "fpr_flush_dirty",
        "fpr_park",
    ]
    assert found["nr_tlb_remote_flush_received"] == 1203


def test_vmstat_takes_counters_it_has_never_heard_of() -> None:
    assert counters.parse_vmstat("fpr_something_new 4\nother 1\n") == {"fpr_something_new": 4}


def test_samples_have_what_numa_balancing_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vmstat, interrupts = tmp_path / "vmstat", tmp_path / "interrupts"
    vmstat.write_text("numa_hit 9\nnuma_pte_updates 4\nnuma_pages_migrated 2\nfpr_skip 1\n")
    interrupts.write_text("TLB: 3 4 TLB shootdowns\n")
    monkeypatch.setattr(counters, "VMSTAT", vmstat)
    monkeypatch.setattr(counters, "_INTERRUPTS", interrupts)
    usual = {"fpr_skip": 1, "tlb_interrupts": 7}
    assert counters.available() == usual
    assert counters.of_samples() == {**usual, "numa_pte_updates": 4, "numa_pages_migrated": 2}


def test_vmstat_of_a_stock_kernel_has_none() -> None:
    assert counters.parse_vmstat("pgfault 1\nnr_free_pages 2\n") == {}


def test_interrupts_are_summed_over_the_cpus() -> None:
    text = (
        "            CPU0       CPU1\n"
        "  0:         43          0   IO-APIC   2-edge      timer\n"
        "TLB:        120         30   TLB shootdowns\n"
    )
    assert counters.parse_interrupts(text) == 150
    assert counters.parse_interrupts("  0: 1 timer\n") is None


def test_smaps_counts_mappings_with_the_flag(data: Path) -> None:
    assert counters.parse_smaps((data / "smaps.txt").read_text()) == (2, 144)


def test_sizes_of_status() -> None:
    status = "VmRSS:\t 10 kB\nVmPTE:\t      52 kB\nFPRParked:\t    1024 kB\n"
    assert counters.parse_status(status, "VmPTE") == 52
    assert counters.parse_status(status, "FPRParked") == 1024
    assert counters.parse_status("Name:\tkthreadd\n", "VmPTE") == 0


def test_difference_knows_new_counters() -> None:
    assert counters.difference({"a": 1}, {"a": 4, "b": 2}) == {"a": 3, "b": 2}


def test_facts_of_this_process() -> None:
    facts = counters.process_facts(os.getpid())
    assert facts.pid == os.getpid()
    assert facts.page_tables_kib > 0
    assert facts.threads == threading.active_count()


def test_process_that_is_gone_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="no such process"):
        counters.process_facts(4194304 + 1)
