#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tell whether two relocatable objects would become the same part of a kernel.

Used by check-config-off. Compared is what reaches memory: the bytes of every
allocated section, its flags and alignment, its relocations (by what they refer to,
not by their number in the symbol table), and the global symbols. Names that the
compiler numbers (``__UNIQUE_ID_x123``, ``.LC4``, ``x.5``) count without their number:
an added include shifts those and nothing else.

    elf_compare.py OLD.o NEW.o    exit status 0 when equal, 1 with the differences
"""

import re
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

SHT_SYMTAB = 2
SHT_RELA = 4
SHT_NOBITS = 8
SHF_ALLOC = 2
SHN_ABS = 0xFFF1
SHN_COMMON = 0xFFF2
STT_SECTION = 3
STB_LOCAL = 0

# Sections whose bytes describe the build, not the code.
IGNORED_SECTIONS = (".note.gnu.build-id",)
NUMBERED = re.compile(r"(__UNIQUE_ID_\w*?|__initcall__\w*?__|\.LC|\.L|\.)\d+(_\d+)*")


class BadObject(Exception):
    """The file is not an object this script can read."""


@dataclass(frozen=True)
class Section:
    """One section header, and its content unless it has none in the file."""

    name: str
    type: int
    flags: int
    size: int
    link: int
    info: int
    align: int
    data: bytes


@dataclass(frozen=True)
class Symbol:
    """One entry of the symbol table."""

    name: str
    info: int
    section: int
    value: int
    size: int

    @property
    def is_local(self) -> bool:
        """Whether other objects cannot see it."""
        return self.info >> 4 == STB_LOCAL


def text_at(table: bytes, offset: int) -> str:
    """Return the string that starts at ``offset`` of a string table."""
    return table[offset : table.index(b"\0", offset)].decode()


class Object:
    """A 64-bit little-endian relocatable ELF file."""

    def __init__(self, path: Path) -> None:
        blob = path.read_bytes()
        if blob[:6] != b"\x7fELF\x02\x01":
            raise BadObject(f"{path}: not a 64-bit ELF object")
        (offset,) = struct.unpack_from("<Q", blob, 0x28)
        entry_size, count, names_at = struct.unpack_from("<HHH", blob, 0x3A)
        raw = [
            struct.unpack_from("<IIQQQQIIQQ", blob, offset + i * entry_size) for i in range(count)
        ]
        names = blob[raw[names_at][4] : raw[names_at][4] + raw[names_at][5]]
        self.sections = [
            Section(
                name=text_at(names, header[0]),
                type=header[1],
                flags=header[2],
                size=header[5],
                link=header[6],
                info=header[7],
                align=header[8],
                data=b"" if header[1] == SHT_NOBITS else blob[header[4] : header[4] + header[5]],
            )
            for header in raw
        ]
        self.symbols = self._symbols()

    def _symbols(self) -> list[Symbol]:
        for section in self.sections:
            if section.type == SHT_SYMTAB:
                names = self.sections[section.link].data
                return [
                    Symbol(text_at(names, name), info, index, value, size)
                    for name, info, _, index, value, size in struct.iter_unpack(
                        "<IBBHQQ", section.data
                    )
                ]
        return []

    def section_name(self, index: int) -> str:
        """Return a name for a section index, special ones included."""
        if index < len(self.sections):
            return self.sections[index].name or "undefined"
        return {SHN_ABS: "absolute", SHN_COMMON: "common"}.get(index, f"index {index}")

    def describe(self, symbol: Symbol) -> str:
        """Say what a relocation against ``symbol`` refers to."""
        if symbol.info & 15 == STT_SECTION or (symbol.is_local and symbol.section):
            return f"{self.section_name(symbol.section)}+{symbol.value:#x}"
        return without_number(symbol.name)

    def content(self) -> dict[str, object]:
        """Return everything that is compared, by a name that a reader understands."""
        result: dict[str, object] = {}
        seen: dict[str, int] = {}
        for index, section in enumerate(self.sections):
            if not section.flags & SHF_ALLOC or section.name in IGNORED_SECTIONS:
                continue
            # Several sections may share a name; their order is theirs.
            seen[section.name] = seen.get(section.name, 0) + 1
            label = f"section {section.name} #{seen[section.name]}"
            result[label] = (section.type, section.flags, section.align, section.size, section.data)
            result[f"relocations of {label}"] = self._relocations(index)
        result["global symbols"] = sorted(
            (symbol.name, self.section_name(symbol.section), symbol.value, symbol.size)
            for symbol in self.symbols
            if not symbol.is_local
        )
        return result

    def _relocations(self, target: int) -> list[tuple[int, int, str, int]]:
        found = []
        for section in self.sections:
            if section.type == SHT_RELA and section.info == target:
                for offset, info, addend in struct.iter_unpack("<QQq", section.data):
                    symbol = self.symbols[info >> 32]
                    found.append((offset, info & 0xFFFFFFFF, self.describe(symbol), addend))
        return sorted(found)


def without_number(name: str) -> str:
    """Strip the numbers that a compiler or a macro appends to keep names apart."""
    return NUMBERED.sub(r"\1N", name)


def differences(old: Object, new: Object) -> list[str]:
    """Name what differs between the two objects."""
    before, after = old.content(), new.content()
    result = [f"{name} is gone" for name in before if name not in after]
    result += [f"{name} is new" for name in after if name not in before]
    changed = {name for name in before.keys() & after.keys() if before[name] != after[name]}
    result += [f"{name} differs" for name in before if name in changed]
    return result


def main(arguments: list[str]) -> int:
    """Compare the two objects of the command line."""
    if len(arguments) != 2:
        print("usage: elf_compare.py OLD.o NEW.o", file=sys.stderr)
        return 2
    try:
        found = differences(*(Object(Path(name)) for name in arguments))
    except (OSError, BadObject, struct.error) as error:
        print(f"elf_compare.py: {error}", file=sys.stderr)
        return 2
    for line in found:
        print(f"  {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
