# SPDX-License-Identifier: GPL-2.0-only
"""System calls of morsels, as <linux/morsel.h> has them.

Errors are OSError with words that say what to do, as those of libmorsel.
"""

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ceasefire.errors import Failure, Unsupported

_MFD_CLOEXEC = 0x1
_MFD_MORSEL = 0x800000
_RANGES_MAX = 1024
_UNITS_MAX = 511
# _IOW(0xCF, 1, 24 bytes), _IOR(0xCF, 2, STAT), _IOWR(0xCF, 3 and 4, 24 bytes),
# _IOW(0xCF, 5, 4 bytes); _IOW(0x94, 9, 4 bytes)
_GEOMETRY = 0x4018CF01
_STAT = 0x8048CF02
_POPULATE = 0xC018CF03
_DEPOPULATE = 0xC018CF04
_DESTROY = 0x4004CF05
_FICLONE = 0x40049409
_FORCE = 1
_ASYNC = 2
_LAZY = 4
_ALLOW_LAZY = 1
_GEOMETRY_TEXT = struct.Struct("=QIIQ")
_VECTOR_TEXT = struct.Struct("=QIIQ")
_RANGE_TEXT = struct.Struct("=QQ")
_STAT_BYTES = 72
_PAGE = 4096
UNITS = (2 << 20, 1 << 30, 512 << 30, 256 << 40)
PAGES = (_PAGE, 2 << 20, 1 << 30)

_WORDS = {
    errno.EPERM: (
        "it is not allowed: the descriptor only reads, morsels are switched off, or pages of 1G "
        "are asked for without CAP_IPC_LOCK"
    ),
    errno.EINVAL: "it is no morsel, a range is behind its end, or it does not allow --lazy",
    errno.EBUSY: "a process has it mapped: --force takes it away, and whoever uses it gets SIGBUS",
    errno.ENODEV: "it was destroyed",
    errno.EFBIG: "a morsel has at most 511 units: take a larger unit, or none",
    errno.ENOMEM: "there is no memory, or a limit is reached",
    errno.EOPNOTSUPP: (
        "this machine cannot have such morsels: units of 256T need page tables of five levels, "
        "pages of 1G a processor that has them"
    ),
}
_COPY_WORDS = {
    **_WORDS,
    errno.EINVAL: "it has no size, so there is nothing to copy",
    errno.EXDEV: "they are in different file systems: one without a path has copies without a path",
    errno.EOPNOTSUPP: "only those with pages of 4K and without --lazy are copied",
}


@dataclass(frozen=True)
class Range:
    """Bytes of a morsel."""

    offset: int
    length: int


@dataclass(frozen=True)
class Layout:
    """How a morsel is laid out.

    unit: in bytes, one of UNITS; None: the smallest that suffices.
    page: in bytes, one of PAGES; smaller than a unit.
    lazy: memory may be taken away without a flush.
    """

    unit: int | None = None
    page: int = _PAGE
    lazy: bool = False


def create(name: str, size: int, layout: Layout) -> int:
    """Make a morsel of size bytes and return its descriptor, which exec closes."""
    fd = _new(name)
    try:
        lay_out(fd, size, layout)
    except Failure:
        os.close(fd)
        raise
    return fd


def copy_of(origin: int, name: str) -> int:
    """Make a copy of a morsel that has no path and return its descriptor, which exec closes."""
    fd = _new(name)
    try:
        become_copy(fd, origin)
    except Failure:
        os.close(fd)
        raise
    return fd


def become_copy(fd: int, origin: int) -> None:
    """Make of a new morsel, which has no size yet, a copy of another one as it is now."""
    try:
        fcntl.ioctl(fd, _FICLONE, origin)
    except OSError as error:
        _fail(error, words=_COPY_WORDS)


def _new(name: str) -> int:
    try:
        return os.memfd_create(name, _MFD_CLOEXEC | _MFD_MORSEL)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise Unsupported("this kernel has no morsels: see `ceasefire doctor`") from None
        _fail(error)


def lay_out(fd: int, size: int, layout: Layout) -> None:
    """Give a new morsel its layout, if something is asked for, and its size."""
    try:
        if layout != Layout():
            chosen = layout.unit or _unit_for(size, layout.page)
            flags = _ALLOW_LAZY if layout.lazy else 0
            fcntl.ioctl(fd, _GEOMETRY, _GEOMETRY_TEXT.pack(chosen, layout.page, flags, 0))
        os.ftruncate(fd, size)
    except OSError as error:
        _fail(error)


def _unit_for(size: int, page: int = _PAGE) -> int:
    """Return the unit that the kernel takes if it is asked for none."""
    larger = [unit for unit in UNITS if unit > page]
    return next((unit for unit in larger if -(-size // unit) <= _UNITS_MAX), larger[-1])


def is_morsel(fd: int) -> bool:
    """Return whether a descriptor is of a morsel."""
    try:
        fcntl.ioctl(fd, _STAT, bytearray(_STAT_BYTES))
    except OSError:
        return False
    return True


def populate(fd: int, ranges: Sequence[Range]) -> None:
    """Make memory for ranges, where there is none."""
    _for_ranges(fd, _POPULATE, ranges)


def depopulate(
    fd: int, ranges: Sequence[Range], *, later: bool = False, lazy: bool = False
) -> None:
    """Take the memory of ranges away.

    later: it is free after this, when the kernel comes to it. lazy: without a flush.
    """
    _for_ranges(fd, _DEPOPULATE, ranges, (_ASYNC if later else 0) | (_LAZY if lazy else 0))


def destroy(fd: int, *, force: bool) -> None:
    """Take all memory away for good. force: also if somebody has it mapped."""
    try:
        fcntl.ioctl(fd, _DESTROY, struct.pack("=I", _FORCE if force else 0))
    except OSError as error:
        _fail(error)


def _for_ranges(fd: int, request: int, ranges: Sequence[Range], flags: int = 0) -> None:
    for first in range(0, len(ranges), _RANGES_MAX):
        some = ranges[first : first + _RANGES_MAX]
        text = b"".join(_RANGE_TEXT.pack(r.offset, r.length) for r in some)
        buffer = ctypes.create_string_buffer(text, len(text))
        vector = bytearray(_VECTOR_TEXT.pack(ctypes.addressof(buffer), len(some), flags, 0))
        try:
            fcntl.ioctl(fd, request, vector)
        except OSError as error:
            done = first + _VECTOR_TEXT.unpack(vector)[3]
            _fail(error, f" ({done} of {len(ranges)} ranges are done)")


def _fail(error: OSError, more: str = "", words: Mapping[int, str] = _WORDS) -> NoReturn:
    number = errno.EINVAL if error.errno == errno.ENOTTY else error.errno
    raise Failure(f"{words.get(number or 0, error.strerror)}{more}") from None
