# SPDX-License-Identifier: GPL-2.0-only
"""Which mappings FPR could unmap without a flush, as seen from system calls."""

import pytest

from ceasefire.record import syscalls
from ceasefire.record.mappings import (
    ANONYMOUS,
    SAVED,
    UNKNOWN,
    WORDS,
    AddressSpace,
    parse_maps,
    usual_file,
)

READ, WRITE, EXEC = 1, syscalls.PROT_WRITE, syscalls.PROT_EXEC
SHARED, PRIVATE = syscalls.MAP_SHARED, 2
AT = 0x7F0000000000


def space(flags: int, prot: int = READ, length: int = 0x4000, hint: int = 0) -> AddressSpace:
    found = AddressSpace()
    found.map(AT, (hint, length, prot, flags, 3, 0))
    return found


@pytest.mark.parametrize(
    ("prot", "flags", "hint", "verdict"),
    [
        (READ, PRIVATE, 0, SAVED),
        (READ, SHARED, 0, SAVED),
        (READ | WRITE, SHARED, 0, SAVED),
        (READ | EXEC, PRIVATE, 0, "executable"),
        (READ, PRIVATE, 0x10000, "address"),
        (READ, PRIVATE | syscalls.MAP_FIXED, AT, "address"),
        (READ, PRIVATE | syscalls.MAP_32BIT, 0, "address"),
        (READ, PRIVATE | syscalls.MAP_DENYWRITE, 0, "linker"),
        (READ, PRIVATE | syscalls.MAP_ANONYMOUS, 0, ANONYMOUS),
        (READ, SHARED | syscalls.MAP_ANONYMOUS, 0, "device"),
        (READ, PRIVATE | syscalls.MAP_ANONYMOUS | syscalls.MAP_FIXED, AT, "address"),
        (READ, PRIVATE | syscalls.MAP_ANONYMOUS | syscalls.MAP_HUGETLB, 0, "huge"),
        (READ | WRITE, SHARED | syscalls.MAP_POPULATE, 0, "dirty"),
    ],
)
def test_what_mmap_asked_for(prot: int, flags: int, hint: int, verdict: str) -> None:
    assert space(flags, prot, hint=hint).verdict(AT, AT + 0x4000) == verdict
    assert verdict == SAVED or verdict in WORDS


def test_too_large() -> None:
    assert space(SHARED, length=(64 << 30) + 1).verdict(AT, AT + 1) == "limit"


def test_written_pages() -> None:
    for flags, verdict in ((SHARED, "dirty"), (PRIVATE, SAVED)):
        mappings = space(flags, READ | WRITE)
        mapping = mappings.at(AT + 0x1000)
        assert mapping is not None
        mapping.written = True
        assert mappings.verdict(AT, AT + 0x4000) == verdict
    child = mappings.copy()
    assert mappings.verdict(AT, AT + 0x4000) == "forked"
    assert child.verdict(AT, AT + 0x4000) == "moved"


def test_fork_leaves_clean_mappings_of_the_parent() -> None:
    mappings = space(PRIVATE)
    mappings.copy()
    assert mappings.verdict(AT, AT + 0x4000) == SAVED


def test_ranges() -> None:
    mappings = space(PRIVATE)
    assert mappings.verdict(AT + 0x1000, AT + 0x2000) == SAVED
    assert mappings.verdict(AT - 0x1000, AT) == UNKNOWN
    assert mappings.verdict(AT + 0x4000, AT + 0x5000) == UNKNOWN
    gone = mappings.remove(AT + 0x1000, AT + 0x2000)
    assert [(m.start, m.end) for m in gone] == [(AT, AT + 0x4000)]
    assert [(m.start, m.end) for m in mappings.within(0, 1 << 48)] == [
        (AT, AT + 0x1000),
        (AT + 0x2000, AT + 0x4000),
    ]
    assert mappings.at(AT + 0x1000) is None
    assert mappings.sizes() == (0x3000, 0x3000)


def test_several_mappings_at_once() -> None:
    mappings = space(PRIVATE)
    mappings.map(AT + 0x4000, (0, 0x1000, READ, PRIVATE | syscalls.MAP_ANONYMOUS, -1, 0))
    assert mappings.verdict(AT, AT + 0x5000) == "mixed"
    mappings.map(AT, (AT, 0x4000, READ, PRIVATE | syscalls.MAP_FIXED, 3, 0))
    assert mappings.verdict(AT, AT + 0x5000) == "address"


def test_changes() -> None:
    mappings = space(PRIVATE)
    mappings.move(AT, 0x4000, AT, 0x8000)
    assert mappings.verdict(AT, AT + 0x8000) == SAVED
    mappings.move(AT, 0x8000, AT + 0x10000, 0x8000)
    assert mappings.at(AT) is None
    assert mappings.verdict(AT + 0x10000, AT + 0x18000) == "moved"
    mappings = space(PRIVATE)
    mappings.protect(AT, AT + 0x1000, READ | WRITE)
    assert mappings.verdict(AT, AT + 0x4000) == SAVED
    mappings.protect(AT, AT + 0x1000, READ | EXEC)
    assert mappings.verdict(AT, AT + 0x4000) == "executable"


MAPS = """\
7f0000000000-7f0000004000 r--p 00001000 fe:00 12   /srv/a file
7f0000004000-7f0000005000 r--p 00000000 00:05 13   /dev/null
7f0000008000-7f0000009000 rw-p 00000000 00:00 0
"""


def test_files_are_learned_from_maps() -> None:
    regions = parse_maps(MAPS)
    assert [(r.path, r.offset) for r in regions] == [
        ("/srv/a file", 4096),
        ("/dev/null", 0),
        ("", 0),
    ]
    mappings = space(PRIVATE)
    mappings.map(AT + 0x4000, (0, 0x1000, READ, PRIVATE, 3, 0))
    mappings.learn(regions)
    assert mappings.verdict(AT, AT + 0x4000) == SAVED
    assert mappings.verdict(AT + 0x4000, AT + 0x5000) == "device"
    found = mappings.at(AT)
    assert found is not None
    assert found.path == "/srv/a file"


@pytest.mark.parametrize(
    ("path", "usual"),
    [
        ("/dev/null", False),
        ("/nosuch/file (deleted)", True),
        ("/memfd:x (deleted)", True),
        ("anon_inode:[io_uring]", False),
        ("[vdso]", False),
    ],
)
def test_usual_files(path: str, usual: bool) -> None:
    assert usual_file(path) is usual
