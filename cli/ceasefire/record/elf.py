# SPDX-License-Identifier: GPL-2.0-only
"""Functions and lines of an ELF file, by offset in the file; pyelftools does the reading.

The file may be made to do harm: sizes that are absurd, tables that lead in circles, millions of
symbols, sections that unpack to more than there is memory. Whatever goes wrong raises some error,
takes memory or does not end, so symbols.py calls this in a process that has limits and no rights.
"""

import bisect
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import BinaryIO

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from ceasefire.files import open_regular

# Where distributions put what they have stripped from a file.
DEBUG_FOLDER = Path("/usr/lib/debug/.build-id")
_SYMBOL = struct.Struct("<IBBHQQ")
_MAX_SYMBOLS = 4_000_000
_MAX_SECTIONS = 70_000
_LONGEST_NAME = 4096
_KINDS = {0, 2, 10}  # no type, function, indirect function
_EXECUTABLE = 4
_LOAD = "PT_LOAD"
_BUILD_ID = re.compile(r"[0-9a-f]{8,64}")


class NotReadable(Exception):
    """The file has nothing for us; the text says why."""


class Elf:
    """An ELF file that is open."""

    def __init__(self, file: BinaryIO) -> None:
        """Read its headers. Any exception may come."""
        if file.read(4) != b"\x7fELF":
            raise NotReadable("it is no ELF file")
        file.seek(0)
        self._elf = ELFFile(file)
        if self._elf.elfclass != 64 or not self._elf.little_endian:
            raise NotReadable("it is not for x86-64")
        if self._elf.num_sections() > _MAX_SECTIONS:
            raise NotReadable("it has too many sections")
        self._loads = [
            (s["p_offset"], s["p_filesz"], s["p_vaddr"])
            for s in self._elf.iter_segments()
            if s["p_type"] == _LOAD
        ]

    def addresses(self, offsets: Iterable[int]) -> dict[int, int]:
        """Return the addresses, as in the symbols, of those offsets that are loaded."""
        return {
            offset: offset - start + address
            for offset in offsets
            for start, size, address in self._loads
            if start <= offset < start + size
        }

    def functions(self, addresses: Iterable[int]) -> dict[int, str]:
        """Return the functions that hold addresses, as far as they are known."""
        for name in (".symtab", ".dynsym"):
            found = self._functions(name, addresses)
            if found:
                return found
        return {}

    def _functions(self, table: str, addresses: Iterable[int]) -> dict[int, str]:
        section = self._elf.get_section_by_name(table)
        if section is None:
            return {}
        data = section.data()
        if len(data) // _SYMBOL.size > _MAX_SYMBOLS:
            raise NotReadable("it has too many symbols")
        code = {
            number
            for number, other in enumerate(self._elf.iter_sections())
            if other["sh_flags"] & _EXECUTABLE
        }
        whole = len(data) - len(data) % _SYMBOL.size
        symbols = sorted(
            (value, size, name)
            for name, info, _, index, value, size in _SYMBOL.iter_unpack(data[:whole])
            if index in code and info & 0xF in _KINDS
        )
        starts = [value for value, _, _ in symbols]
        strings = self._elf.get_section(section["sh_link"]).data()
        found = {}
        for address in addresses:
            last = bisect.bisect_right(starts, address)
            first = bisect.bisect_left(starts, starts[last - 1]) if last else 0
            # Hostile files may have any number of names for one address.
            names = [
                _string(strings, name)
                for value, size, name in symbols[first : min(last, first + 100)]
                if not size or address < value + size
            ]
            best = min(filter(None, names), key=_plainness, default="")
            if best:
                found[address] = best
        return found

    def build_id(self) -> str:
        """Return what names the file that the debug information is in; empty if nothing does."""
        for section in self._elf.iter_sections():
            if isinstance(section, NoteSection):
                for note in section.iter_notes():
                    if note["n_type"] == "NT_GNU_BUILD_ID":
                        text = str(note["n_desc"])
                        return text if _BUILD_ID.fullmatch(text) else ""
        return ""

    def lines(self, addresses: Iterable[int]) -> dict[int, str]:
        """Return FILE:LINE of addresses, as far as there is debug information."""
        if self._elf.get_section_by_name(".debug_line") is None:
            return {}
        # Nothing else is opened: the file may name any other.
        dwarf = self._elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        return dict(_lines(dwarf, sorted(addresses)))


def separate_lines(build_id: str, addresses: Iterable[int]) -> dict[int, str]:
    """Return the lines from the file that a distribution has for a build id, if it is installed."""
    if not build_id:
        return {}
    try:
        file = open_regular(DEBUG_FOLDER / build_id[:2] / f"{build_id[2:]}.debug")
    except OSError:
        return {}
    with file:
        return Elf(file).lines(addresses)


def _plainness(name: str) -> tuple[bool, int]:
    """Order aliases: the plain name comes first, not one that is reserved for the library."""
    return name.startswith("_"), len(name)


def _string(strings: bytes, start: int) -> str:
    end = strings.find(b"\0", start, start + _LONGEST_NAME)
    name = strings[start : end if end >= 0 else start + _LONGEST_NAME]
    return name.decode("utf-8", "surrogateescape").partition("@")[0]


def _lines(dwarf: DWARFInfo, addresses: list[int]) -> Iterator[tuple[int, str]]:
    """Yield addresses with their lines; of a unit all at once."""
    ranges = dwarf.get_aranges()
    units: dict[int, list[int]] = {}
    left = []
    for address in addresses:
        offset = ranges.cu_offset_at_addr(address) if ranges is not None else None
        if offset is None:
            left.append(address)
        else:
            units.setdefault(offset, []).append(address)
    for offset, some in units.items():
        yield from _lines_of_unit(dwarf, dwarf.get_CU_at(offset), some)
    if not left:
        return
    for unit in dwarf.iter_CUs():
        found = dict(_lines_of_unit(dwarf, unit, left))
        yield from found.items()
        left = [address for address in left if address not in found]
        if not left:
            return


def _lines_of_unit(
    dwarf: DWARFInfo, unit: CompileUnit, addresses: list[int]
) -> Iterator[tuple[int, str]]:
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return
    files = program["file_entry"]
    # Counted from 1 before version 5.
    base = 1 if program["version"] < 5 else 0
    found: dict[int, str] = {}
    before = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None:
            low = bisect.bisect_left(addresses, before.address)
            high = bisect.bisect_left(addresses, state.address)
            for address in addresses[low:high]:
                number = before.file - base
                if before.line and 0 <= number < len(files):
                    name = files[number].name.decode("utf-8", "surrogateescape")
                    found[address] = f"{PurePath(name).name}:{before.line}"
        before = None if state.end_sequence else state
    yield from found.items()


def read(file: BinaryIO, offsets: Iterable[int]) -> Iterator[tuple[str, Mapping[int, str]]]:
    """Yield what is known of offsets: first ("functions", ..), then ("lines", ..)."""
    elf = Elf(file)
    inside = elf.addresses(offsets)
    functions = elf.functions(inside.values())
    yield "functions", {o: functions[a] for o, a in inside.items() if a in functions}
    wanted = sorted(set(inside.values()))
    lines = elf.lines(wanted) or separate_lines(elf.build_id(), wanted)
    yield "lines", {o: lines[a] for o, a in inside.items() if a in lines}
