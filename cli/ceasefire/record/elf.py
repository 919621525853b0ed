# SPDX-License-Identifier: GPL-2.0-only
"""Functions and lines of an ELF file, by offset in the file; pyelftools does the reading.

A function is that of the symbol which holds the address: what `addr2line -f -i` names last, and
first where the compiler has put nothing in line. Behind the end of one, where addr2line guesses the
one before, and in the PLT, there is no name: a wrong one is worse.

The file may be made to do harm: sizes that are absurd, tables that lead in circles, millions of
symbols, sections that unpack to more than there is memory. Whatever goes wrong raises some error,
takes memory or does not end, so symbols.py calls this in a process that has limits and no rights.
"""

import bisect
import contextlib
import itertools
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import BinaryIO, NamedTuple

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
# Hostile files may have any number of names for one address.
_MAX_NESTED = 100
_UNSIZED = 1 << 64
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

    def functions(self, table: str, addresses: Iterable[int]) -> dict[int, str]:
        """Return the functions that hold addresses, as far as a table of symbols knows them."""
        section = self._elf.get_section_by_name(table)
        if section is None:
            return {}
        data = section.data()
        if len(data) // _SYMBOL.size > _MAX_SYMBOLS:
            raise NotReadable("it has too many symbols")
        code = {
            number: other["sh_addr"] + other["sh_size"]
            for number, other in enumerate(self._elf.iter_sections())
            if other["sh_flags"] & _EXECUTABLE
        }
        # Not iter_symbols(): it makes objects of each symbol, which takes twenty times as long.
        whole = len(data) - len(data) % _SYMBOL.size
        symbols = sorted(
            _Symbol(value, size, info & 0xF != 0, code[index], name)
            for name, info, _, index, value, size in _SYMBOL.iter_unpack(data[:whole])
            if name and index in code and info & 0xF in _KINDS
        )
        starts = [symbol.start for symbol in symbols]
        strings = self._elf.get_section(section["sh_link"]).data()
        found = {}
        for address in addresses:
            last = bisect.bisect_right(starts, address)
            near = symbols[max(last - _MAX_NESTED, 0) : last]
            names = [_string(strings, symbol.name) for symbol in _holding(near, address)]
            if best := min(filter(None, names), key=_plainness, default=""):
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


class _Symbol(NamedTuple):
    """A symbol of code. end: of its section. name: where that is."""

    start: int
    size: int
    typed: bool
    end: int
    name: int


def _holding(symbols: Sequence[_Symbol], address: int) -> list[_Symbol]:
    """Return the symbols that hold an address, of those that start at or before it, sorted.

    Those that start last; of these the functions if there are any, and the smallest: aliases.
    """
    nearest = symbols[-1].start if symbols else 0
    for _, group in itertools.groupby(reversed(symbols), key=lambda symbol: symbol.start):
        holding = [
            one
            for one in group
            if address < one.start + one.size
            # Written in assembler, without a size: up to the next symbol.
            or (not one.size and one.start == nearest and address < one.end)
        ]
        if holding:
            ranks = [(not one.typed, one.size or _UNSIZED) for one in holding]
            return [one for one, rank in zip(holding, ranks, strict=True) if rank == min(ranks)]
    return []


def _plainness(name: str) -> tuple[bool, int, str]:
    """Order aliases: the plain name comes first, not one that is reserved for the library."""
    return name.startswith("_"), len(name), name


@contextlib.contextmanager
def _separate(build_id: str) -> Iterator[Elf | None]:
    """Yield the file that a distribution has for a build id, if it is installed."""
    try:
        file = open_regular(DEBUG_FOLDER / build_id[:2] / f"{build_id[2:]}.debug")
    except OSError:
        yield None
        return
    with file:
        yield Elf(file)


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
    """Yield what is known of offsets as ("functions", ..) and ("lines", ..); what comes later is
    better.
    """
    elf = Elf(file)
    inside = elf.addresses(offsets)
    wanted = sorted(set(inside.values()))

    def by_offset(found: Mapping[int, str]) -> dict[int, str]:
        return {offset: found[a] for offset, a in inside.items() if a in found}

    yield "functions", by_offset(elf.functions(".dynsym", wanted))
    yield "functions", by_offset(elf.functions(".symtab", wanted))
    lines = elf.lines(wanted)
    with _separate(elf.build_id()) as debug:
        if debug is not None:
            yield "functions", by_offset(debug.functions(".symtab", wanted))
            lines = lines or debug.lines(wanted)
    yield "lines", by_offset(lines)
