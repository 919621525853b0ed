# SPDX-License-Identifier: GPL-2.0-only
"""Why flushes were sent all the same, and mappings not treated: the kernel's counters in words.

Each group is a question with one good answer and reasons why not; together they are the whole of
which shares are given. A reason that a newer kernel counts is shown by its name. Of Sharers, which
spares no flush, the question is to whom each one went.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ceasefire.counters import SKIPPED, SYSFS
from ceasefire.modes import ABIS, LATR, MORSEL, SHARERS
from ceasefire.output import number

COLUMNS = ("what happened, and what to do", "counter", "count")
_NOTHING = "nothing to do"
_SWITCH_ON = f"echo 1 > {SYSFS}/fpr/enabled"


@dataclass(frozen=True)
class Group:
    """One question: the title of its table, its good answer, how the names of the others begin.

    good: "" where there is no good answer.
    """

    name: str
    title: str
    good: str
    prefix: str

    def has(self, counter: str) -> bool:
        """Say whether a counter is one of the answers."""
        return counter == self.good or counter.startswith(self.prefix)


GROUPS = (
    Group("map", "mmap of files, FPR asked for", "fpr_map", "fpr_map_ineligible_"),
    Group("unmap", "munmap of mappings with FPR", SKIPPED, "fpr_flush_"),
    Group("lazy", "munmap of lazy programs (LATR)", LATR.skipped, LATR.prefix + "flush_"),
    Group(
        "evict",
        "pages that reclaim took from mappings with FPR",
        "fpr_evict_skip",
        "fpr_evict_flush_",
    ),
    Group(
        "narrow",
        "flushes of programs whose CPUs note what they use (Sharers)",
        SHARERS.narrowed[0],
        SHARERS.prefix + "flush_",
    ),
    Group("everybody", "why such flushes went to all CPUs", "", SHARERS.prefix + "all_"),
    Group(
        "uncached",
        "entries that were changed, of programs with ABIS",
        "abis_uncached",
        ABIS.prefix + "cached_",
    ),
    Group(
        "morsels",
        "pages of morsels given up lazily, and flushes for them",
        "morsel_lazy_pages",
        MORSEL.prefix + "lazy_flush_",
    ),
)

# counter: what happened, what to do
WORDS = {
    "fpr_map": ("the mapping recycles", ""),
    "fpr_map_ineligible_disabled": ("FPR was switched off", _SWITCH_ON),
    "fpr_map_ineligible_file": (
        "a device, pipe, DAX, hugetlbfs or shared memory",
        f"{_NOTHING}: only the page cache recycles",
    ),
    "fpr_map_ineligible_exec": ("executable", f"{_NOTHING}: code stays mapped anyway"),
    "fpr_map_ineligible_address": (
        "at an address of the program's choice, or 32-bit",
        "mmap with address NULL, without MAP_FIXED",
    ),
    "fpr_map_ineligible_limit": ("larger than 64 GiB", "map it in parts"),
    "fpr_map_ineligible_arena": (
        "no memory, or no room in the address space",
        "check `ulimit -v` and free memory",
    ),
    SKIPPED: ("no flush: nobody was interrupted", ""),
    "fpr_flush_local": (
        "no other CPU ran the program, or had used this (Sharers)",
        f"{_NOTHING}: this flush interrupts nobody",
    ),
    "fpr_flush_dirty": (
        "pages were written through the mapping",
        f"{_NOTHING}, or write with write(2)",
    ),
    "fpr_flush_anon": (
        "private pages that a child has, too, after fork",
        f"{_NOTHING}: the child may write to them",
    ),
    "fpr_flush_special": ("pages of a device", _NOTHING),
    "fpr_flush_notifier": (
        "a device or virtual machine shares the memory",
        f"{_NOTHING}: it must hear of each munmap",
    ),
    "fpr_flush_outside": (
        "moved by mremap, or inherited over fork",
        "map in the process that unmaps",
    ),
    "fpr_flush_mixed": (
        "unmapped together with one that cannot recycle",
        "one munmap for each mapping",
    ),
    "fpr_flush_tables": (
        "huge pages, or page tables were freed",
        _NOTHING,
    ),
    "fpr_flush_nested": (
        "another thread changed mappings just then",
        _NOTHING,
    ),
    "fpr_flush_tags": ("the first use, or no memory for tags", "if it stays: check free memory"),
    "fpr_flush_disabled": ("FPR was switched off meanwhile", _SWITCH_ON),
    "fpr_flush_context": (
        "the program recycles within each mapping",
        "choose another context: `ceasefire run --context process`",
    ),
    "fpr_flush_limit": (
        "too many pages could still be reached",
        f"if often: raise {SYSFS}/fpr/stale_limit",
    ),
    "fpr_flush_poison": ("memory that is bad", "replace the memory: `dmesg | grep Memory`"),
    LATR.skipped: ("no flush: ticks catch up", ""),
    "latr_flush_local": (
        "no other CPU ran the program, or had used this (Sharers)",
        f"{_NOTHING}: this flush interrupts nobody",
    ),
    "latr_flush_dirty": (
        "pages were written through a shared mapping",
        f"{_NOTHING}, or write with write(2)",
    ),
    "latr_flush_anon": (
        "private pages that a child has, too, after fork",
        f"{_NOTHING}: the child may write to them",
    ),
    "latr_flush_special": ("pages of a device", _NOTHING),
    "latr_flush_notifier": (
        "a device or virtual machine shares the memory",
        f"{_NOTHING}: it must hear of each munmap",
    ),
    "latr_flush_outside": (
        "at an address of the program's choice, or older than the choice",
        "mmap with address NULL, without MAP_FIXED",
    ),
    "latr_flush_mixed": (
        "memory of a device, with a protection key, or under userfaultfd",
        _NOTHING,
    ),
    "latr_flush_tables": ("huge pages, or page tables were freed", _NOTHING),
    "latr_flush_nested": ("another thread changed mappings just then", _NOTHING),
    "latr_flush_tags": ("the first use, or no memory for tags", "if it stays: check free memory"),
    "latr_flush_disabled": (
        "LATR was switched off meanwhile",
        f"echo ask > {SYSFS}/latr/enabled",
    ),
    "latr_flush_context": ("the program recycles within each mapping", _NOTHING),
    "latr_flush_limit": (
        "too much memory would have waited",
        f"if often: raise {SYSFS}/latr/held_limit",
    ),
    "latr_flush_poison": ("memory that is bad", "replace the memory: `dmesg | grep Memory`"),
    "fpr_evict_skip": ("no flush", ""),
    "fpr_evict_flush_young": (
        "used since reclaim had looked",
        "memory is short: reclaim takes pages in use",
    ),
    "fpr_evict_flush_stale": (
        "reclaim had looked just before",
        "memory is short: reclaim is in a hurry",
    ),
    "fpr_evict_flush_disabled": ("FPR was switched off", _SWITCH_ON),
    "fpr_evict_flush_notifier": (
        "a device or virtual machine shares the memory",
        f"{_NOTHING}: it must hear of each eviction",
    ),
    "fpr_evict_flush_pending": ("madvise was at work just then", _NOTHING),
    "fpr_evict_flush_vendor": (
        "the processor does not promise that it sets accessed bits in time",
        f"only who knows better: write 1 to {SYSFS}/fpr/evict",
    ),
    "fpr_evict_flush_untracked": (
        "the first use, or no memory for tags",
        "if it stays: check free memory",
    ),
    "sharers_flush_local": ("no other CPU had used the range: nobody was interrupted", ""),
    "sharers_flush_remote": (
        "only CPUs were asked that had used the range",
        "if threads share none of it: keep what each uses 2 MiB apart",
    ),
    "sharers_flush_all": (
        "all CPUs that run the program",
        f"{_NOTHING}: without Sharers each flush goes there",
    ),
    "sharers_all_whole": ("all memory, as at fork and exit", _NOTHING),
    "sharers_all_long": ("a range of more than 4 TiB", "change it in parts"),
    "sharers_all_stopped": (
        "the end of a process, or it was switched off meanwhile",
        f"if often: echo ask > {SYSFS}/sharers/enabled, and start it again",
    ),
}

WORDS |= {
    "abis_uncached": ("no CPU had it: no flush for it", ""),
    "abis_cached_young": ("used since it was made, or last flushed for", _NOTHING),
    "abis_cached_stale": (
        "the kernel has cleared the accessed bit just before",
        f"{_NOTHING}: ticks pay for that within half a second",
    ),
    "abis_cached_disabled": (
        "ABIS was switched off meanwhile",
        f"echo ask > {SYSFS}/abis/enabled; echo uncached > {SYSFS}/abis/sources",
    ),
    "abis_cached_notifier": (
        "a device or virtual machine shares the memory",
        f"{_NOTHING}: it must hear of each change",
    ),
    "abis_cached_pending": ("madvise or reclaim was at work just then", _NOTHING),
    "abis_cached_untracked": (
        "the first use, or no memory for tags",
        "if it stays: check free memory",
    ),
    "abis_cached_vendor": (
        "the processor does not promise that it sets accessed bits in time",
        f"only who knows better: write 1 to {SYSFS}/fpr/evict",
    ),
    "abis_cached_class": (
        "only the CPU had it that had asked for it",
        f"{_NOTHING}: no other one is interrupted",
    ),
    "abis_cached_special": ("memory of a device, or the page of zeroes", _NOTHING),
    "abis_cached_locked": (
        "mprotect() of locked memory, which programs have used as a barrier",
        f"{_NOTHING}, or do not lock what is protected often",
    ),
    "morsel_lazy_pages": ("no flush: nobody was interrupted", ""),
    "morsel_lazy_flush_context": (
        "a child has inherited the mapping, and maps no morsel itself",
        "unmap it in children that do not use it",
    ),
    "morsel_lazy_flush_notifier": (
        "a virtual machine or a device mirrors the mapping",
        _NOTHING,
    ),
    "morsel_lazy_flush_again": (
        "populated again within two ticks, its page was used elsewhere",
        f"raise {SYSFS}/morsel/lazy_limit",
    ),
    "morsel_lazy_flush_taken": (
        "memory was taken away in the ordinary way meanwhile",
        "depopulate with MORSEL_LAZY only",
    ),
    "morsel_lazy_flush_limit": (
        "more pages waited than may, or fsync() was called",
        f"raise {SYSFS}/morsel/lazy_limit",
    ),
}

# Counters that answer no question of a group, in words.
NAMES = {
    "sharers_defer": "pages that reclaim has asked only some CPUs for",
    "sharers_place": "mappings that were placed beside others of their thread",
    "sharers_granule": "pieces of 8 MiB that a thread got for them",
    "sharers_whole": "times that a CPU has noted a whole GiB",
    "sharers_fill": "regions of 2 MiB that a CPU has noted",
    "sharers_fill_only": "page faults for that alone",
    "sharers_fill_race": "regions that were gone meanwhile",
    "sharers_leave": "regions that a CPU does not use any more",
    "sharers_unconfine": "times that a CPU went on without notes",
    "abis_none": "flushes that fell away",
    "abis_some": "flushes for fewer entries",
    "abis_all": "flushes for all that was changed",
    "abis_local": "flushes of the CPU that has changed something, and no other one",
    "abis_narrow": "flushes of the CPUs that had asked for what was changed",
    "abis_born": "entries made for pages that nobody had asked for",
    "abis_cleaned": "entries that were flushed for and stayed",
    "abis_inserted": "entries that only the CPU got that had asked for them",
    "morsel_steal": "pages of zeroes taken from morsels when memory was short",
    "morsel_steal_table": "page tables without a page taken from them",
    "morsel_copy": "copies of morsels",
    "morsel_copy_table": "page tables that a copy or its origin got for itself",
    "morsel_copy_page": "pages that a copy or its origin got for itself",
}


@dataclass(frozen=True)
class Reason:
    """One answer: how often, its share of its group (0 to 1), what happened, what to do."""

    group: str
    counter: str
    count: int
    share: float
    meaning: str
    hint: str


def reasons(group: Group, values: Mapping[str, int]) -> Iterator[Reason]:
    """Yield the answers of a group in the kernel's order."""
    found = {name: value for name, value in values.items() if group.has(name)}
    total = sum(found.values())
    for name, value in found.items():
        meaning, hint = words(name)
        yield Reason(group.name, name, value, value / total if total else 0.0, meaning, hint)


def is_reason(counter: str) -> bool:
    """Say whether a counter belongs to a group."""
    return any(group.has(counter) for group in GROUPS)


def words(counter: str) -> tuple[str, str]:
    """Return what a counter means and what to do about it."""
    return WORDS.get(counter, (counter, ""))


def table(
    group: Group, values: Mapping[str, int], *, everything: bool = False, shares: bool = False
) -> list[list[str]]:
    """Return the answers of a group that were given as rows of text, the hint of each below it."""
    rows = []
    for reason in reasons(group, values):
        if not (reason.count or everything):
            continue
        numbers = [number(reason.count), *([f"{100 * reason.share:.1f} %"] if shares else [])]
        rows.append([reason.meaning, reason.counter, *numbers])
        if reason.hint:
            rows.append([f"- {reason.hint}", "", *("" for _ in numbers)])
    return rows
