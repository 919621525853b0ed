# SPDX-License-Identifier: GPL-2.0-only
"""Reads what the kernel counts: /proc/vmstat, the TLB interrupts, sysfs, facts of a process.

The names of the counters of a mechanism are taken from /proc/vmstat itself, so that a newer kernel
with more of them needs no newer tool. Parsing takes text and is apart from reading, for the tests.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ceasefire import modes
from ceasefire.errors import Unsupported, UsageError
from ceasefire.text import decoded

RECEIVED = "nr_tlb_remote_flush_received"
SENT = "nr_tlb_remote_flush"
SKIPPED = modes.FPR.skipped
INTERRUPTS = "tlb_interrupts"
# Page faults; regions that a CPU came to (sharers); what page tables took, in samples.
FAULTS = "pgfault"
FILLS = "sharers_fill"
TABLES = "page_tables_kib"

SYSFS = modes.SYSFS
VMSTAT = Path("/proc/vmstat")
_INTERRUPTS = Path("/proc/interrupts")
_PREFIXES = ("nr_tlb_", *(mechanism.prefix for mechanism in modes.shown()))
# What NUMA balancing does, and page faults; of interest to benchmarks only.
_OF_SAMPLES = ("numa_hint_", "numa_pages_", "numa_pte_", "numa_huge_", FAULTS)
_TABLE_PAGES = "nr_page_table_pages"
_NUMBER = re.compile(r"[0-9]{1,20}")
# As in /proc/PID/status, smaps and meminfo.
_SIZE = re.compile(r"(\w+):\s+([0-9]{1,20}) kB")
_THREADS = re.compile(r"^Threads:\s+([0-9]{1,9})$", re.MULTILINE)
_SMAPS_HEAD = re.compile(r"^[0-9a-f]+-[0-9a-f]+ ")


@dataclass(frozen=True)
class ProcessFacts:
    """What is known of one process: its FPR mappings, its page tables, what it has parked.

    page_tables_kib: with those that each CPU has of its own (Sharers).
    """

    pid: int
    mappings: int
    mapped_kib: int
    page_tables_kib: int
    parked_kib: int
    threads: int


def parse_vmstat(text: str, prefixes: tuple[str, ...] = _PREFIXES) -> dict[str, int]:
    """Return the counters of interest in the kernel's order."""
    found = {}
    for line in text.split("\n"):
        name, _, value = line.partition(" ")
        if name.startswith(prefixes) and _NUMBER.fullmatch(value):
            found[name] = int(value)
    return found


def parse_interrupts(text: str) -> int | None:
    """Return the number of TLB shootdown interrupts of all CPUs, None without the line."""
    for line in text.split("\n"):
        words = line.split()
        if words[:1] == ["TLB:"]:
            return sum(int(word) for word in words[1:] if _NUMBER.fullmatch(word))
    return None


def parse_smaps(text: str) -> tuple[int, int]:
    """Return how many mappings recycle their frames, and their size in KiB."""
    mappings = total = size = 0
    for line in text.split("\n"):
        if _SMAPS_HEAD.match(line):
            size = 0
        elif found := _SIZE.fullmatch(line):
            size = int(found[2])
        elif line.startswith("VmFlags:") and "fr" in line.split()[1:]:
            mappings += 1
            total += size
    return mappings, total


def parse_status(status: str, name: str) -> int:
    """Return a size of /proc/PID/status in KiB; 0 where there is none, as in kernel threads."""
    for line in status.split("\n"):
        found = _SIZE.fullmatch(line)
        if found and found[1] == name:
            return int(found[2])
    return 0


def snapshot() -> dict[str, int]:
    """Read all event counters, or say that this kernel has none of them."""
    counters = available()
    if not counters:
        raise Unsupported("this kernel counts no TLB shootdowns: it has one CPU, or is not for x86")
    return counters


def available(prefixes: tuple[str, ...] = _PREFIXES) -> dict[str, int]:
    """Read what counters there are, on any kernel; there may be none.

    Every kernel for several CPUs has the interrupts; the others take CONFIG_DEBUG_TLBFLUSH, or a
    mechanism of ceasefire.
    """
    found = parse_vmstat(VMSTAT.read_text(encoding="ascii"), prefixes)
    interrupts = parse_interrupts(_INTERRUPTS.read_text(encoding="ascii"))
    return found if interrupts is None else {**found, INTERRUPTS: interrupts}


def of_samples() -> dict[str, int]:
    """Read what a sample of a benchmark records: the same, NUMA balancing, and page faults."""
    return available((*_PREFIXES, *_OF_SAMPLES))


def page_tables_kib() -> int:
    """Read how much memory the page tables of all processes take now."""
    found = parse_vmstat(VMSTAT.read_text(encoding="ascii"), (_TABLE_PAGES,))
    return found.get(_TABLE_PAGES, 0) * (os.sysconf("SC_PAGE_SIZE") // 1024)


def difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return how far each counter went."""
    return {name: value - before.get(name, 0) for name, value in after.items()}


def gauges() -> dict[str, int]:
    """Read the present values of sysfs (parked pages and so on); empty on other kernels."""
    values = {}
    for mechanism in modes.shown():
        prefix = mechanism.prefix if mechanism is modes.MORSEL else ""
        for name in mechanism.gauges:
            value = number_in(mechanism.folder / name)
            if value is not None:
                values[prefix + name] = value
    return values


def number_in(path: Path) -> int | None:
    """Return the number that a file of sysfs holds, None where the kernel has no such file."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    return int(text) if _NUMBER.fullmatch(text) else None


def process_facts(pid: int) -> ProcessFacts:
    """Read what is known of a process."""
    base = Path("/proc") / str(pid)
    try:
        status = decoded((base / "status").read_bytes())
        mappings, size = parse_smaps(decoded((base / "smaps").read_bytes()))
    except (FileNotFoundError, ProcessLookupError):
        raise UsageError(f"-p {pid}: there is no such process") from None
    except PermissionError:
        raise UsageError(f"-p {pid}: not allowed to look at it: run this as root") from None
    tables, parked = parse_status(status, "VmPTE"), parse_status(status, "FPRParked")
    found = _THREADS.search(status)
    return ProcessFacts(pid, mappings, size, tables, parked, int(found[1]) if found else 1)
