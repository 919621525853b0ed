# SPDX-License-Identifier: GPL-2.0-only
"""Which metrics there are: the kernel's counters and present values under names for collectors.

A counter of /proc/vmstat is `ceasefire_`, its name, and `_total`, so that one which a newer kernel
has is there, too. Counters that are the answers to one question (why a flush was sent) are one
metric with the label `cause`. A few have another name than the kernel's: see _NAMES.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ceasefire import counters, modes, reasons

PREFIX = "ceasefire_"
COUNTER, GAUGE = "counter", "gauge"
BYTES, PAGES, SECONDS = "bytes", "pages", "seconds"

# counter of the kernel: name of the metric, "" for the counter's own; what it counts
_NAMES = {
    counters.SENT: ("shootdowns_sent", "Flushes for which other CPUs were interrupted"),
    counters.RECEIVED: ("shootdowns_received", "Times that a CPU took part in a flush of another"),
    counters.INTERRUPTS: ("tlb_interrupts", "Interrupts of CPUs for flushes; every kernel has it"),
    "fpr_map": ("", "Mappings that recycle their frames"),
    "fpr_skip": ("", "Calls of munmap that sent no flush (FPR)"),
    "fpr_skip_pages": ("", "Pages that such calls left to be flushed later"),
    "fpr_shared": ("", "Frames that were found with two processes"),
    "fpr_park": ("", "Pages that were freed and had to wait for a flush"),
    "fpr_recycle": ("", "Pages that waited and were used again by the same program"),
    "fpr_release": ("", "Pages that waited and were given back after a flush"),
    "fpr_evict_skip": ("", "Pages that reclaim took from a mapping without a flush"),
    "fpr_evict_later": ("", "Pages that reclaim left for later because they took a flush"),
    "fpr_cold_skip": ("", "Pages for which madvise(MADV_COLD) sent no flush"),
    "fpr_drain_tables": ("", "Times that page tables which were left over were freed"),
    "latr_skip": ("", "Calls of munmap that sent no flush (LATR)"),
    "latr_skip_pages": ("", "Pages that such calls left to ticks"),
    "latr_hint_skip": ("", "NUMA hints whose flush was left to ticks"),
    "latr_hint_flush": ("", "NUMA hints that needed no flush of others"),
    "latr_late": ("latr_late_cpus", "CPUs that had to be interrupted as they were late"),
    "sharers_defer": ("", "Pages that reclaim asked only some CPUs for"),
    "sharers_place": ("", "Mappings that were placed beside others of their thread"),
    "sharers_granule": ("", "Pieces of 8 MiB that a thread got for its mappings"),
    "sharers_whole": ("", "Times that a CPU noted a whole GiB"),
    "sharers_fill": ("", "Regions of 2 MiB that a CPU noted"),
    "sharers_fill_only": ("", "Page faults for that alone"),
    "sharers_fill_race": ("", "Regions that were gone before a CPU had noted them"),
    "sharers_leave": ("", "Regions that a CPU does not use any more"),
    "sharers_unconfine": ("", "Times that a CPU went on without notes"),
    "abis_none": ("", "Flushes that fell away as no CPU could have what was changed"),
    "abis_some": ("", "Flushes that were for fewer entries for that reason"),
    "abis_all": ("", "Flushes for all that was changed, of programs with ABIS"),
    "abis_local": ("", "Flushes of the CPU that changed something, and no other one"),
    "abis_narrow": ("", "Flushes of the CPUs that had asked for what was changed"),
    "abis_uncached": ("", "Entries that were changed and that no CPU could have"),
    "abis_born": ("", "Entries made for pages that nobody had asked for"),
    "abis_cleaned": ("", "Entries that were flushed for and stayed"),
    "abis_inserted": ("", "Entries that only the CPU got that had asked for them"),
    "morsel_lazy_pages": ("", "Pages of morsels that were given up without a flush"),
    "morsel_steal": ("", "Pages of zeroes that were taken from morsels when memory was short"),
    "morsel_steal_table": ("", "Page tables without a page that were taken from them"),
    "morsel_copy": ("", "Copies of morsels that were made"),
    "morsel_copy_table": ("", "Page tables that a copy or its origin got for itself"),
    "morsel_copy_page": ("", "Pages that a copy or its origin got for itself"),
}

# A flush that was skipped is a debt; these are flushes that paid for all debts of a process.
_DEBTS = "debts_paid"
_PAID = {
    "fpr_tick_flush": "tick",
    "fpr_drain_flush": "drain",
    "fpr_va_flush": "addresses",
    "fpr_leave_flush": "leave",
    "fpr_evict_settle": "evict",
    "latr_hint_settle": "hints",
}

# Beginnings of counters whose end is the cause, behind those of reasons.py; what they count.
_CAUSES = {
    "fpr_drain_": "Times that parked pages were taken back",
    "nr_tlb_local_flush_": "Flushes of a CPU's own TLB: all of it, or one page",
}
_RENAMED = {"nr_tlb_local_flush": "local_flushes"}


@dataclass(frozen=True)
class Sample:
    """A value, and its label if it has one."""

    value: float
    label: tuple[str, str] | None = None


@dataclass(frozen=True)
class Family:
    """A metric: its name without `_total`, what kind it is, in what unit, what it says."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]
    unit: str = ""


@dataclass(frozen=True)
class _Gauge:
    """A file of sysfs that says what is there at present; scale: of its numbers."""

    mechanism: modes.Mechanism
    file: str
    name: str
    help: str
    unit: str = ""
    scale: float = 1


_PAGE = os.sysconf("SC_PAGE_SIZE")
_MS = 0.001
_GAUGES = (
    _Gauge(modes.FPR, "parked", "fpr_parked_bytes", "Freed memory that waits", BYTES, _PAGE),
    _Gauge(modes.FPR, "contexts", "fpr_contexts", "Processes that owe flushes or may"),
    _Gauge(modes.FPR, "groups", "fpr_groups", "Contexts of several processes"),
    _Gauge(modes.FPR, "tag_bytes", "fpr_tag_bytes", "Memory for tags of frames", BYTES),
    _Gauge(
        modes.FPR,
        "pool_limit",
        "fpr_pool_limit_bytes",
        "Parked memory of one process above which it is drained",
        BYTES,
        _PAGE,
    ),
    _Gauge(
        modes.FPR,
        "parked_limit",
        "fpr_parked_limit_bytes",
        "Parked memory of all processes above which it is drained",
        BYTES,
        _PAGE,
    ),
    _Gauge(
        modes.FPR,
        "stale_limit",
        "fpr_stale_limit_bytes",
        "Unmapped memory that one process may still reach",
        BYTES,
        _PAGE,
    ),
    _Gauge(
        modes.FPR,
        "debt_age_ms",
        "fpr_debt_age_limit_seconds",
        "Time after which a skipped flush has been paid for",
        SECONDS,
        _MS,
    ),
    _Gauge(
        modes.LATR,
        "settle_ms",
        "latr_settle_seconds",
        "Time after which ticks begin to pay for a skipped flush",
        SECONDS,
        _MS,
    ),
    _Gauge(
        modes.LATR,
        "late_ms",
        "latr_late_limit_seconds",
        "Time after which a CPU that has not caught up is interrupted",
        SECONDS,
        _MS,
    ),
    _Gauge(
        modes.LATR,
        "held_limit",
        "latr_held_limit_bytes",
        "Anonymous memory that may wait in one lazy process",
        BYTES,
        _PAGE,
    ),
    _Gauge(modes.MORSEL, "pages", "morsel_bytes", "Memory of morsels, with tables", BYTES, _PAGE),
    _Gauge(modes.MORSEL, "limit", "morsel_limit_bytes", "What they may have", BYTES, _PAGE),
)


def collect() -> list[Family]:
    """Read all that this kernel counts. Errors: Unsupported when it counts nothing."""
    return [*of_counters(counters.snapshot()), *_of_present()]


def of_counters(values: Mapping[str, int]) -> list[Family]:
    """Return the metrics of counters, in the kernel's order."""
    causes = {group.prefix: f"{group.title}, by cause" for group in reasons.GROUPS} | _CAUSES
    found: dict[str, Family] = {}
    for counter, value in values.items():
        if not (counter.isascii() and counter.isidentifier()):
            continue
        family = _family_of(counter, value, causes)
        before = found[family.name].samples if family.name in found else ()
        found[family.name] = replace(family, samples=(*before, *family.samples))
    return list(found.values())


def _family_of(counter: str, value: int, causes: Mapping[str, str]) -> Family:
    """Return the metric that a counter belongs to, with this one sample."""
    if counter in _PAID:
        words = "Flushes that paid for skipped ones, by what asked for them"
        return _counter(_DEBTS, words, Sample(value, ("cause", _PAID[counter])))
    if counter not in _NAMES:
        for prefix, words in causes.items():
            if cause := counter.removeprefix(prefix) if counter.startswith(prefix) else "":
                name = prefix.removesuffix("_")
                sample = Sample(value, ("cause", cause))
                return _counter(_RENAMED.get(name, name), words, sample)
    name, words = _NAMES.get(counter, ("", f"The counter {counter} of /proc/vmstat"))
    return _counter(name or counter, words, Sample(value))


def _counter(name: str, words: str, sample: Sample) -> Family:
    unit = PAGES if name.endswith(f"_{PAGES}") else ""
    return Family(PREFIX + name, COUNTER, words, (sample,), unit)


def _of_present() -> list[Family]:
    """Return what is so now: which mechanisms are on, memory, limits."""
    there = [m for m in modes.shown() if m.present()]
    found = [
        Family(
            f"{PREFIX}{name}",
            GAUGE,
            words,
            tuple(Sample(int(says(m)), ("mechanism", m.name)) for m in there),
        )
        for name, words, says in (
            ("mechanism_enabled", "Whether programs may have it", modes.Mechanism.enabled),
            ("mechanism_for_all", "Whether all programs have it", modes.Mechanism.for_all),
        )
        if there
    ]
    for gauge in _GAUGES:
        value = counters.number_in(gauge.mechanism.folder / gauge.file)
        if value is not None:
            samples = (Sample(value * gauge.scale),)
            found.append(Family(PREFIX + gauge.name, GAUGE, gauge.help, samples, gauge.unit))
    tables = Sample(counters.page_tables_kib() * 1024)
    words = "Page tables of all processes"
    found.append(Family(f"{PREFIX}page_tables_bytes", GAUGE, words, (tables,), BYTES))
    return found
