# SPDX-License-Identifier: GPL-2.0-only
"""The mappings of a recorded address space, and which of them FPR could unmap without a flush.

Follows the kernel's rules (mm/ceasefire/fpr.c) from outside: what mmap() asked for, what was
written to since, whether fork or mremap() came between. Changes in place; the order of calls is
that of the trace.
"""

import bisect
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ceasefire.record import syscalls

_ADDRESS_FLAGS = syscalls.MAP_FIXED | syscalls.MAP_FIXED_NOREPLACE | syscalls.MAP_32BIT
_LIMIT = 64 << 30
_PAGE = 4096
_HEX = "([0-9a-f]{1,16})"
_LINE = re.compile(
    rf"{_HEX}-{_HEX} ([-a-z]{{4}}) {_HEX} ([0-9a-f]{{1,8}}:[0-9a-f]{{1,8}}) ([0-9]{{1,20}}) *(.*)",
    re.DOTALL,
)

# Why the munmap() of a mapping flushes also with FPR; no reason: it does not.
SAVED = ""
ANONYMOUS = "anonymous"
UNKNOWN = "unknown"
EXECUTABLE = "executable"
# What LATR spares: nothing is used again, so it may be memory, and code.
LAZY = frozenset({SAVED, ANONYMOUS, EXECUTABLE})
WORDS = {
    ANONYMOUS: "anonymous memory",
    "address": "mapped at an address of the program's choice",
    EXECUTABLE: "executable",
    "device": "not a regular file or block device",
    "dirty": "a file written through a shared mapping",
    "forked": "private pages that a child has, too, after fork",
    "moved": "moved by mremap, or inherited over fork",
    "limit": "larger than 64 GiB",
    "linker": "mapped by the dynamic linker",
    "huge": "huge pages of a pool",
    "mixed": "unmapped together with one that cannot recycle",
    UNKNOWN: "mapped before the recording began, or events were lost",
}


@dataclass
class Mapping:
    """One mapping. why_not: what keeps FPR from it whatever happens later."""

    start: int
    end: int
    shared: bool
    why_not: str
    written: bool = False
    forked: bool = False
    path: str = ""

    def verdict(self) -> str:
        """Return why its munmap() would flush with FPR, SAVED if it would not."""
        if self.why_not:
            return self.why_not
        if self.written and self.shared:
            return "dirty"
        if self.written and self.forked:
            return "forked"
        return SAVED


@dataclass(frozen=True)
class Region:
    """A line of /proc/PID/maps. device: as it is there, two numbers; empty if nobody told."""

    start: int
    end: int
    rights: str
    offset: int
    path: str
    device: str = ""
    inode: int = 0


def parse_maps(text: str) -> list[Region]:
    """Read /proc/PID/maps. What is no line of it is left out.

    A name of a file may hold anything but a line feed, which the kernel writes as \\012.
    """
    found = []
    for line in text.split("\n"):
        match = _LINE.fullmatch(line)
        if match:
            start, end, rights, offset, device, inode, path = match.groups()
            numbers = int(start, 16), int(end, 16), rights, int(offset, 16)
            found.append(Region(*numbers, path, device, int(inode)))
    return found


def ineligible(args: Sequence[int]) -> str:
    """Return why FPR leaves an mmap() with these arguments alone."""
    address, length, prot, flags = args[0], args[1], args[2], args[3]
    if flags & syscalls.MAP_HUGETLB:
        return "huge"
    if flags & syscalls.MAP_ANONYMOUS:
        return ANONYMOUS
    if flags & syscalls.MAP_DENYWRITE:
        return "linker"
    if prot & syscalls.PROT_EXEC:
        return EXECUTABLE
    if address or flags & _ADDRESS_FLAGS:
        return "address"
    return "limit" if length > _LIMIT else SAVED


def suits_source(args: Sequence[int]) -> bool:
    """Say whether private anonymous memory could have MAP_FPR if the program asked for it."""
    address, prot, flags = args[0], args[2], args[3]
    no = syscalls.MAP_SHARED | syscalls.MAP_GROWSDOWN | syscalls.MAP_HUGETLB | _ADDRESS_FLAGS
    return not (address or flags & no or prot & syscalls.PROT_EXEC)


def round_up(length: int) -> int:
    """Return a length in whole pages."""
    return -(-length // _PAGE) * _PAGE


class AddressSpace:
    """Mappings by address, without overlaps."""

    def __init__(self) -> None:
        """It is empty."""
        self._starts: list[int] = []
        self._mappings: list[Mapping] = []

    def at(self, address: int) -> Mapping | None:
        """Return the mapping that holds an address."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index >= 0 and address < self._mappings[index].end:
            return self._mappings[index]
        return None

    def within(self, start: int, end: int) -> list[Mapping]:
        """Return the mappings that overlap a range."""
        first, last = self._range(start, end)
        return self._mappings[first:last]

    def _range(self, start: int, end: int) -> tuple[int, int]:
        first = bisect.bisect_right(self._starts, start) - 1
        if first < 0 or self._mappings[first].end <= start:
            first += 1
        return first, bisect.bisect_left(self._starts, end, first)

    def put(self, mapping: Mapping) -> None:
        """Add a mapping in place of what was there."""
        self.remove(mapping.start, mapping.end)
        index = bisect.bisect_left(self._starts, mapping.start)
        self._starts.insert(index, mapping.start)
        self._mappings.insert(index, mapping)

    def map(self, start: int, args: Sequence[int]) -> None:
        """Add what an mmap() with these arguments has made at an address."""
        length, prot, flags = round_up(args[1]), args[2], args[3]
        shared = bool(flags & syscalls.MAP_SHARED)
        # Faulted in by the kernel, without page faults that would tell.
        written = bool(flags & syscalls.MAP_POPULATE and prot & syscalls.PROT_WRITE)
        why_not = ineligible(args)
        if why_not == ANONYMOUS and not suits_source(args):
            why_not = "address" if not shared else "device"
        self.put(Mapping(start, start + length, shared, why_not, written))

    def remove(self, start: int, end: int) -> list[Mapping]:
        """Take a range away and return what was there."""
        first, last = self._range(start, end)
        gone = self._mappings[first:last]
        rest = []
        for mapping in gone:
            if mapping.start < start:
                rest.append(replace(mapping, end=start))
            if mapping.end > end:
                rest.append(replace(mapping, start=end))
        self._mappings[first:last] = rest
        self._starts[first:last] = [mapping.start for mapping in rest]
        return gone

    def verdict(self, start: int, end: int) -> str:
        """Return why an munmap() of a range would flush with FPR, SAVED if it would not."""
        found = {mapping.verdict() for mapping in self.within(start, end)}
        if not found:
            return UNKNOWN
        if len(found) == 1:
            return found.pop()
        return "mixed" if SAVED in found else min(found)

    def move(self, old: int, old_length: int, new: int, new_length: int) -> None:
        """Do an mremap()."""
        gone = self.remove(old, old + round_up(old_length))
        if not gone:
            return
        why_not = gone[0].why_not if new == old else gone[0].why_not or "moved"
        end = new + round_up(new_length)
        self.put(replace(gone[0], start=new, end=end, why_not=why_not))

    def protect(self, start: int, end: int, prot: int) -> None:
        """Do an mprotect()."""
        if prot & syscalls.PROT_EXEC:
            for mapping in self.within(start, end):
                mapping.why_not = mapping.why_not or "executable"

    def copy(self) -> "AddressSpace":
        """Do a fork: return the child's, whose mappings are outside of its context."""
        child = AddressSpace()
        child._starts = list(self._starts)
        for mapping in self._mappings:
            mapping.forked = True
            child._mappings.append(replace(mapping, why_not=mapping.why_not or "moved"))
        return child

    def learn(self, regions: Iterable[Region]) -> None:
        """Take from /proc/PID/maps what mmap() does not tell: the files."""
        for region in regions:
            mapping = self.at(region.start)
            if mapping is None or mapping.path or mapping.why_not == ANONYMOUS:
                continue
            mapping.path = region.path
            if region.path and not mapping.why_not and not usual_file(region.path):
                mapping.why_not = "device"

    def sizes(self) -> tuple[int, int]:
        """Return how many bytes could recycle, and how many are mapped."""
        good = sum(m.end - m.start for m in self._mappings if m.verdict() == SAVED)
        return good, sum(m.end - m.start for m in self._mappings)


def usual_file(path: str) -> bool:
    """Say whether a path of /proc/PID/maps is a regular file or block device, as far as we see."""
    if not path.startswith("/") or path.startswith(("/memfd:", "/SYSV", "/anon_hugepage")):
        return path.startswith("/memfd:")
    # Only there a device is found, as a rule. Elsewhere others may have put what hangs when it is
    # looked at.
    if not path.startswith("/dev/") or path.startswith("/dev/shm/"):
        return True
    try:
        mode = Path(path).lstat().st_mode
    except (OSError, ValueError):
        return True
    return stat.S_ISREG(mode) or stat.S_ISBLK(mode)
