# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire stat` on kernels that are not ceasefire's, and the width of its tables."""

import json
import os
import re
from pathlib import Path

import pytest

from ceasefire import copies, counters, modes
from ceasefire.__main__ import main

INTERRUPTS = "  CPU0 CPU1\n  0: 1 0 timer\nTLB: 120 30 TLB shootdowns\n"
TLBFLUSH = "pgfault 1\nnr_tlb_remote_flush 12\nnr_tlb_remote_flush_received 150\n"


@pytest.fixture
def stock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for a kernel that only counts interrupts."""
    monkeypatch.setattr(counters, "VMSTAT", tmp_path / "vmstat")
    monkeypatch.setattr(counters, "_INTERRUPTS", tmp_path / "interrupts")
    monkeypatch.setattr(modes, "SYSFS", tmp_path / "none")
    (tmp_path / "vmstat").write_text("pgfault 1\n")
    (tmp_path / "interrupts").write_text(INTERRUPTS)
    return tmp_path


@pytest.fixture
def noting(stock: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for a kernel that has sharers and nothing else of ceasefire."""
    monkeypatch.setattr(copies, "_XEN", stock / "guest_type")
    monkeypatch.setattr(copies, "_CLOCKS", stock / "clocks")
    (stock / "none/sharers").mkdir(parents=True)
    (stock / "vmstat").write_text("sharers_flush_local 9\nsharers_fill 3\n")
    return stock


def test_every_kernel_counts_the_shootdowns_it_receives(
    stock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stat"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^interrupts for shootdowns \(tlb_interrupts\) +150$", out, re.MULTILINE)
    assert "CONFIG_DEBUG_TLBFLUSH count the shootdowns sent" in out
    assert "not ceasefire's" in out


def test_what_was_sent_where_the_kernel_counts_it(
    stock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stock / "vmstat").write_text(TLBFLUSH)
    assert main(["stat"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^shootdowns sent \(nr_tlb_remote_flush\) +12$", out, re.MULTILINE)
    assert re.search(r"^shootdowns received \(nr_tlb_remote_flush_received\) +150$", out, re.M)
    assert "CONFIG" not in out


def test_json_of_a_stock_kernel(stock: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stat", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["counters"] == {"tlb_interrupts": 150}
    assert (record["mechanisms"], record["reasons"]) == ({}, [])


def test_command_interval_and_process_on_a_stock_kernel(
    stock: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["stat", "--", "sh", "-c", "exit 5"]) == 5
    assert "interrupts for shootdowns" in capfd.readouterr().err
    assert main(["stat", "-I", "1", "-n", "2"]) == 0
    assert capfd.readouterr().out.count("interrupts for shootdowns") == 2
    assert main(["stat", "-p", str(os.getpid())]) == 0
    out = capfd.readouterr().out
    assert "page tables, KiB" in out
    assert "recycling" not in out


def test_kernel_that_counts_nothing_is_status_77(
    stock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stock / "interrupts").write_text("  CPU0\n  0: 1 timer\n")
    assert main(["stat"]) == 77
    assert capsys.readouterr().err.count("\n") == 1


def test_kernel_of_ceasefire_says_what_is_on(
    stock: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stock / "vmstat").write_text((data / "vmstat-fpr.txt").read_text())
    folder = stock / "none/fpr"
    folder.mkdir(parents=True)
    (folder / "enabled").write_text("1\n")
    assert main(["stat", "--all"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^FPR +on$", out, re.MULTILINE)
    assert "not ceasefire's" not in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("switch", "xen", "says"),
    [
        ("never [ask] always", "", "on"),
        ("never ask [always]", "", "on for all programs"),
        ("[never] ask always", "PV", "off"),
        ("never [ask] always", "PV", "on, but this is a PV guest of Xen"),
    ],
)
def test_state_of_sharers(
    switch: str, xen: str, says: str, noting: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (noting / "guest_type").write_text(f"{xen}\n")
    (noting / "none/sharers/enabled").write_text(f"{switch}\n")
    assert main(["stat"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"^Sharers +{re.escape(says)}$", out, re.MULTILINE)
    assert re.search(r"^no other CPU had used the range.* 9 +100\.0 %$", out, re.MULTILINE)
    assert max(map(len, out.splitlines())) <= 80
    assert main(["stat", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["mechanisms"] == {"sharers": says != "off"}


def test_process_whose_cpus_note(noting: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (noting / "none/sharers/enabled").write_text("never [ask] always\n")
    assert main(["stat", "-p", str(os.getpid())]) == 0
    out = capsys.readouterr().out
    # It begins with the second thread, and what CPUs note is in the page tables.
    assert re.search(r"^threads +[1-9]", out, re.MULTILINE)
    assert re.search(r"^page tables, KiB +[1-9]", out, re.MULTILINE)
    assert main(["stat", "--json", "-p", str(os.getpid())]) == 0
    assert json.loads(capsys.readouterr().out)["process"]["threads"] >= 1
