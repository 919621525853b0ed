# SPDX-License-Identifier: GPL-2.0-only
"""What made the kernel send a shootdown: from its own stack and the system call under way.

The stack is looked at first for work that may happen inside any call or fault (reclaim,
migration, ..), then the recorded call counts, then a call or a fault that the stack shows. A
kernel without stacks in its traces leaves the call, and the fault before.
"""

import functools
import re

from ceasefire.record import syscalls

MUNMAP = "munmap"
RECLAIM = "reclaim"
NUMA = "numa"
OTHER = "other"

# In this order: the first that has a function in the stack.
_INNER = (
    ("fpr", ("fpr_flush", "fpr_settle", "fpr_arena_settle", "fpr_group_flush", "__fpr_mprotect")),
    (
        RECLAIM,
        (
            "shrink_node",
            "shrink_lruvec",
            "shrink_one",
            "evict_folios",
            "try_to_free_pages",
            "try_to_free_mem_cgroup_pages",
            "balance_pgdat",
            "kswapd",
        ),
    ),
    (NUMA, ("task_numa_work", "change_prot_numa", "do_numa_page", "migrate_misplaced_folio")),
    (
        "migration",
        ("migrate_pages", "migrate_pages_batch", "compact_zone", "migrate_vma_setup"),
    ),
    (
        "hugepage",
        ("collapse_huge_page", "collapse_file", "khugepaged", "__split_huge_pmd", "do_huge_pmd"),
    ),
    ("ksm", ("ksm_scan_thread", "try_to_merge_one_page", "write_protect_page")),
    ("cow", ("wp_page_copy", "do_wp_page", "do_cow_fault", "hugetlb_wp")),
    ("fork", ("dup_mmap", "dup_mm", "copy_process")),
    ("exit", ("exit_mmap", "exit_mm", "exec_mmap", "do_exit")),
    ("writeback", ("folio_mkclean", "page_mkclean_one", "folio_clear_dirty_for_io")),
    ("truncate", ("unmap_mapping_range", "unmap_mapping_pages", "unmap_mapping_folio")),
    ("userfaultfd", ("userfaultfd_ioctl", "mwriteprotect_range")),
    ("fault", ("handle_mm_fault", "exc_page_fault", "asm_exc_page_fault")),
)
_OF_FUNCTION = {name: cause for cause, names in reversed(_INNER) for name in names}
_RANK = {cause: rank for rank, (cause, _) in enumerate(_INNER)}
_SYSCALL = re.compile(r"__(?:x64|ia32|se|do)_sys_(\w+)")
_CALLEES = {
    "__vm_munmap": "munmap",
    "do_madvise": "madvise",
    "do_mprotect_pkey": "mprotect",
    "ksys_mmap_pgoff": "mmap",
    "vm_mmap_pgoff": "mmap",
    "do_brk_flags": "brk",
}
_SAME = {
    "pkey_mprotect": "mprotect",
    "exit_group": "exit",
    "execve": "exit",
    "clone": "fork",
    "clone3": "fork",
}

WORDS = {
    "munmap": "munmap",
    "mmap": "mmap over another mapping",
    "mremap": "mremap",
    "madvise": "madvise",
    "process_madvise": "process_madvise",
    "mprotect": "mprotect",
    "brk": "brk",
    "shmdt": "shmdt",
    "cow": "copy on write",
    "fault": "page fault",
    "fork": "fork",
    "exit": "exit or exec",
    RECLAIM: "reclaim",
    "migration": "migration, compaction",
    NUMA: "NUMA balancing",
    "hugepage": "huge pages made or split",
    "ksm": "merging of same pages (KSM)",
    "writeback": "writeback of a mapped file",
    "truncate": "truncation, hole punching",
    "userfaultfd": "userfaultfd",
    "fpr": "FPR itself: old debts paid",
    OTHER: "other",
}


def label(cause: str) -> str:
    """Return a cause for the user; the part after a colon is a detail such as an advice."""
    name, _, detail = cause.partition(":")
    return f"{WORDS.get(name, name)} {detail}".rstrip()


@functools.lru_cache(maxsize=4096)
def inner(kernel: tuple[str, ...]) -> str:
    """Return the work that a stack shows, whatever call it is part of; empty if none."""
    found = [_OF_FUNCTION[name] for name in kernel if name in _OF_FUNCTION]
    return min(found, key=_RANK.__getitem__) if found else ""


@functools.lru_cache(maxsize=4096)
def call_of(kernel: tuple[str, ...]) -> str:
    """Return the name of the system call that a stack shows; empty if none."""
    for name in reversed(kernel):
        match = _SYSCALL.fullmatch(name)
        found = match[1] if match else _CALLEES.get(name, "")
        if found:
            return _SAME.get(found, found)
    return ""


def cause_of(kernel: tuple[str, ...], call: int | None, advice: int, *, fault: bool) -> str:
    """Return the cause of a shootdown.

    call: number of the recorded system call under way. advice: the one of its madvise().
    fault: without stacks, whether the last thing the task did was a page fault that writes.
    """
    found = inner(kernel)
    if found:
        return found
    name = syscalls.NAMES.get(call, "") if call is not None else ""
    shown = call_of(kernel)
    if not name.endswith(shown) or not name:
        # Not recorded, or its end was lost and another call is under way.
        name, call = shown, None
    if name in ("madvise", "process_madvise") and call is not None:
        return f"{name}:{syscalls.advice_of(advice)}"
    if name:
        return name
    return "cow" if fault and not kernel else OTHER
