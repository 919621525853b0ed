# SPDX-License-Identifier: GPL-2.0-only
"""What a program file is: can it be started, can a library be preloaded, does it gain privileges.

The last two decide what `ceasefire run` can do for it. A script is judged by its interpreter. Where
something cannot be told (no such file, no right to read it) the answer is the harmless one, as
executing the program will say what is wrong.
"""

import os
import re
import shutil
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND
from ceasefire.files import open_regular

# An obstacle that is none where this runtime is preloaded, too.
ASAN = "built with AddressSanitizer, whose runtime must come first"

# So many interpreters of interpreters the kernel follows.
_SCRIPTS = 5
_SCRIPT_LINE = 256
_CLASS_64 = 2
_PT_LOAD = 1
_PT_DYNAMIC = 2
_PT_INTERP = 3
_DT_NEEDED = 1
_DT_STRTAB = 5
# e_type .. e_phnum of a little-endian 64-bit ELF header
_ELF_HEADER = struct.Struct("<16xHHIQQQIHHH")
# p_type .. p_filesz of a program header
_PROGRAM_HEADER = struct.Struct("<IIQQQQ")
_DYNAMIC = struct.Struct("<qQ")
# No table of a real program is larger; a damaged header may ask for gigabytes.
_MOST = 1 << 20
_MOST_NAME = 4096
_ASAN = re.compile(r"lib(clang_rt\.)?asan\b.*\.so\b")


def binary_of(name: str) -> Path | None:
    """Return what the kernel executes for a command: a script's interpreter, else its file."""
    found = shutil.which(name)
    return None if found is None else binary_at(found)


def binary_at(path: str, place: Callable[[str], Path] = Path) -> Path:
    """Return the same for a file. place: where the files of another machine are on this one."""
    found = place(path)
    for _ in range(_SCRIPTS):
        try:
            with open_regular(found) as file:
                first = file.read(_SCRIPT_LINE).partition(b"\n")[0]
        except (OSError, ValueError):  # the latter for a name with a NUL
            break
        words = first[2:].split() if first.startswith(b"#!") else []
        if not words:
            break
        found = place(os.fsdecode(words[0]))
    return found


def missing(name: str) -> tuple[str, int] | None:
    """Say why a command cannot be started, and the exit status for that; None if it can."""
    if shutil.which(name) is None:
        # A name without a slash is not looked for here.
        if "/" in name and Path(name).is_dir():
            return f"{name} is a directory", EXIT_NOT_EXECUTABLE
        there = shutil.which(name, mode=os.F_OK)
        if there is None:
            return f"{name}: command not found", EXIT_NOT_FOUND
        return f"{there} is not executable", EXIT_NOT_EXECUTABLE
    binary = binary_of(name)
    if binary is not None and not binary.exists():
        return f"{name}: its interpreter {binary} is not there", EXIT_NOT_EXECUTABLE
    return None


def preload_obstacle(path: Path) -> str:
    """Say why the loader would not preload our library into a program; empty if nothing does."""
    try:
        with open_regular(path) as file:
            return _obstacle_in(file)
    except (OSError, ValueError):  # the latter for an offset beyond any file
        return ""


def is_asan(library: str) -> bool:
    """Say whether a library is AddressSanitizer's runtime, which refuses to come second."""
    return _ASAN.match(Path(library).name) is not None


def _obstacle_in(file: BinaryIO) -> str:
    head = file.read(_ELF_HEADER.size)
    if head[:4] != b"\x7fELF" or len(head) < _ELF_HEADER.size:
        return ""
    if head[4] != _CLASS_64:
        return "a 32-bit program"
    *_, offset, _, _, _, size, number = _ELF_HEADER.unpack(head)
    table = _read_at(file, offset, size * number)
    rows = range(0, len(table) - _PROGRAM_HEADER.size + 1, max(size, _PROGRAM_HEADER.size))
    segments = [_PROGRAM_HEADER.unpack_from(table, at) for at in rows]
    if all(segment[0] != _PT_INTERP for segment in segments):
        return "statically linked"
    if any(map(is_asan, _needed(file, segments))):
        return ASAN
    return ""


def _needed(file: BinaryIO, segments: list[tuple[int, ...]]) -> Iterator[str]:
    """Yield the libraries that an ELF file names."""
    dynamic = next(((s[2], s[5]) for s in segments if s[0] == _PT_DYNAMIC), (0, 0))
    table = _read_at(file, *dynamic)
    whole = len(table) // _DYNAMIC.size * _DYNAMIC.size
    entries = list(_DYNAMIC.iter_unpack(table[:whole]))
    strings = next((value for tag, value in entries if tag == _DT_STRTAB), 0)
    for kind, _, offset, address, _, size in segments:
        if kind == _PT_LOAD and address <= strings < address + size:
            for value in (value for tag, value in entries if tag == _DT_NEEDED):
                name = _read_at(file, offset + strings - address + value, _MOST_NAME)
                yield os.fsdecode(name.partition(b"\0")[0])
            return


def _read_at(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(min(length, _MOST))


def can_gain(path: Path) -> bool:
    """Say whether executing a program may give rights to a user that is not root."""
    try:
        mode = path.stat().st_mode
        capable = "security.capability" in os.listxattr(path)
    except OSError:
        return False
    return capable or bool(mode & stat.S_ISUID) or bool(mode & stat.S_ISGID and mode & stat.S_IXGRP)


def gains_privileges(path: Path) -> bool:
    """Say whether executing a program gives it rights that we do not have."""
    try:
        facts = path.stat()
        if os.statvfs(path).f_flag & os.ST_NOSUID:
            return False
        capable = "security.capability" in os.listxattr(path) and os.geteuid() != 0
    except OSError:
        return False
    return (
        capable
        or bool(facts.st_mode & stat.S_ISUID and facts.st_uid != os.geteuid())
        or bool(
            facts.st_mode & stat.S_ISGID
            and facts.st_mode & stat.S_IXGRP
            and facts.st_gid != os.getegid()
        )
    )
