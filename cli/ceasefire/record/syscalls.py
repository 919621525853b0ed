# SPDX-License-Identifier: GPL-2.0-only
"""The system calls that are recorded, by the numbers of x86-64, and what their arguments mean.

Only calls that change mappings are: the others cost time and say nothing. What else sends a
shootdown (a fault, reclaim, writeback) shows in the kernel's stack, see causes.py.
"""

MMAP = 9
MPROTECT = 10
MUNMAP = 11
BRK = 12
MREMAP = 25
MADVISE = 28
SHMAT = 30
SHMDT = 67
EXECVE = 59
EXECVEAT = 322
PKEY_MPROTECT = 329
PROCESS_MADVISE = 440

NAMES = {
    MMAP: "mmap",
    MPROTECT: "mprotect",
    MUNMAP: "munmap",
    BRK: "brk",
    MREMAP: "mremap",
    MADVISE: "madvise",
    SHMAT: "shmat",
    SHMDT: "shmdt",
    216: "remap_file_pages",
    PKEY_MPROTECT: "mprotect",
    PROCESS_MADVISE: "process_madvise",
}

# Their end is what tells of a new program: the event of exec itself has the name of the file, which
# may be as long as several lines.
EXECS = (EXECVE, EXECVEAT)

PROT_WRITE = 0x2
PROT_EXEC = 0x4

MAP_SHARED = 0x1
MAP_FIXED = 0x10
MAP_ANONYMOUS = 0x20
MAP_32BIT = 0x40
MAP_GROWSDOWN = 0x100
MAP_DENYWRITE = 0x800
MAP_POPULATE = 0x8000
MAP_HUGETLB = 0x40000
MAP_FIXED_NOREPLACE = 0x100000

CLONE_VM = 0x100

_ADVICE = {
    4: "DONTNEED",
    8: "FREE",
    9: "REMOVE",
    14: "HUGEPAGE",
    20: "COLD",
    21: "PAGEOUT",
    22: "POPULATE_READ",
    23: "POPULATE_WRITE",
    25: "COLLAPSE",
}


def advice_of(number: int) -> str:
    """Return the name of an madvise() advice without MADV_, its number if it has none here."""
    return _ADVICE.get(number, str(number))


def failed(result: int) -> bool:
    """Say whether a system call returned an error."""
    return -4096 < result < 0
