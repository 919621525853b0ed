# SPDX-License-Identifier: GPL-2.0-only
"""What a program file is: whether a library can be preloaded, whether it gains privileges.

Both decide what `ceasefire run` can do for it. A script is judged by its interpreter. Where
something cannot be told (no such file, no right to read it) the answer is the harmless one, as
executing the program will say what is wrong.
"""

import os
import shutil
import stat
import struct
from pathlib import Path

# So many interpreters of interpreters the kernel follows.
_SCRIPTS = 5
_SCRIPT_LINE = 256
_CLASS_64 = 2
_PT_INTERP = 3
# e_type .. e_phnum of a little-endian 64-bit ELF header
_ELF_HEADER = struct.Struct("<16xHHIQQQIHHH")


def binary_of(name: str) -> Path | None:
    """Return what the kernel executes for a command: a script's interpreter, else its file."""
    found = shutil.which(name)
    for _ in range(_SCRIPTS):
        if found is None:
            break
        try:
            with Path(found).open("rb") as file:
                first = file.read(_SCRIPT_LINE).partition(b"\n")[0]
        except OSError:
            break
        words = first[2:].split() if first.startswith(b"#!") else []
        if not words:
            break
        found = os.fsdecode(words[0])
    return Path(found) if found is not None else None


def preload_obstacle(path: Path) -> str:
    """Say why the loader would not preload our library into a program; empty if nothing does."""
    try:
        with path.open("rb") as file:
            head = file.read(_ELF_HEADER.size)
            if head[:4] != b"\x7fELF" or len(head) < _ELF_HEADER.size:
                return ""
            if head[4] != _CLASS_64:
                return "a 32-bit program"
            *_, offset, _, _, _, size, number = _ELF_HEADER.unpack(head)
            file.seek(offset)
            table = file.read(size * number)
    except (OSError, ValueError):  # the latter for an offset beyond any file
        return ""
    kinds = [table[at : at + 4] for at in range(0, len(table), size or 1)]
    return "" if struct.pack("<I", _PT_INTERP) in kinds else "statically linked"


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
