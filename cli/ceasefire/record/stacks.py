# SPDX-License-Identifier: GPL-2.0-only
"""From the addresses of a stack to names: file, function and, with debug information, line.

Files come from /proc/PID/maps as it was while the program ran, functions from the symbol tables
by nm, lines by addr2line; what is not installed, stripped or not known is left out: then a frame
is FILE+OFFSET, or the address alone. Nothing is executed but these two tools.
"""

import bisect
import shutil
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from ceasefire.record.mappings import Region

_LIMIT = 60.0
_PT_LOAD = 1
_ELF_HEADER = struct.Struct("<16xHHIQQQIHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_CODE = frozenset("tTwWiI")


class Module:
    """An ELF file: its functions by address."""

    def __init__(self, path: str) -> None:
        """Read its symbols, if there are any."""
        self.path = path
        self.name = PurePath(path).name
        self._loads = _loads(Path(path))
        self._starts: list[int] = []
        self._names: list[str] = []
        if self._loads:
            for start, name in sorted(_symbols(path).items()):
                self._starts.append(start)
                self._names.append(name)

    def address(self, offset: int) -> int | None:
        """Return the address, as in the file's symbols, of an offset in the file."""
        for start, size, address in self._loads:
            if start <= offset < start + size:
                return offset - start + address
        return None

    def function(self, address: int) -> str:
        """Return the function that holds an address; empty if none is known."""
        index = bisect.bisect_right(self._starts, address) - 1
        return self._names[index] if index >= 0 else ""


def _loads(path: Path) -> list[tuple[int, int, int]]:
    """Return file offset, size and address of the loaded parts of an ELF file."""
    try:
        with path.open("rb") as file:
            head = file.read(_ELF_HEADER.size)
            if head[:5] != b"\x7fELF\x02" or len(head) < _ELF_HEADER.size:
                return []
            *_, offset, _, _, _, size, number = _ELF_HEADER.unpack(head)
            file.seek(offset)
            table = file.read(size * number)
    except (OSError, ValueError):
        return []
    found = []
    for at in range(0, len(table) - _PROGRAM_HEADER.size + 1, size or 1):
        kind, _, start, address, _, length, *_ = _PROGRAM_HEADER.unpack_from(table, at)
        if kind == _PT_LOAD:
            found.append((start, length, address))
    return found


def _symbols(path: str) -> dict[int, str]:
    """Return the functions of a file by address; those of the dynamic table if it is stripped."""
    nm = shutil.which("nm")
    if nm is None:
        return {}
    for option in ((), ("-D",)):
        found = parse_nm(_output([nm, "-C", "--defined-only", *option, path]))
        if found:
            return found
    return {}


def parse_nm(text: str) -> dict[int, str]:
    """Read what nm prints; of several names for an address the shortest without version."""
    found: dict[int, str] = {}
    for line in text.splitlines():
        address, _, rest = line.partition(" ")
        kind, _, name = rest.partition(" ")
        if kind not in _CODE or not name:
            continue
        short = name.partition("@")[0]
        key = int(address, 16)
        # Aliases: the plain name, not one that is reserved for the library.
        if key not in found or (short.startswith("_"), len(short)) < (
            found[key].startswith("_"),
            len(found[key]),
        ):
            found[key] = short
    return found


def _lines(path: str, addresses: Sequence[int]) -> dict[int, str]:
    """Return FILE:LINE of addresses where there is debug information."""
    tool = shutil.which("addr2line")
    if tool is None or not addresses:
        return {}
    text = _output([tool, "-e", path], "".join(f"{a:#x}\n" for a in addresses))
    found = {}
    for address, line in zip(addresses, text.splitlines(), strict=False):
        place = line.partition(" (")[0]
        if not place.startswith("?") and not place.endswith((":?", ":0")):
            found[address] = PurePath(place).name
    return found


def _output(words: Sequence[str], given: str = "") -> str:
    try:
        done = subprocess.run(
            words,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


class Layout:
    """The executable regions of a program, by address."""

    def __init__(self, regions: Iterable[Region]) -> None:
        """Sort them once for all stacks."""
        self._regions = sorted(regions, key=lambda region: region.start)
        self._starts = [region.start for region in self._regions]

    def _holding(self, address: int) -> Region | None:
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0 or address >= self._regions[index].end:
            return None
        return self._regions[index]

    def at(self, address: int) -> Region | None:
        """Return the region of a file that holds an address."""
        region = self._holding(address)
        return region if region is not None and region.path.startswith("/") else None

    def is_data(self, address: int) -> bool:
        """Say whether no code is at an address, as far as the regions are known."""
        return bool(self._regions) and self._holding(address) is None


class Symbols:
    """Names of addresses, in any number of files; a file is read once."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._modules: dict[str, Module] = {}
        self._places: dict[tuple[str, int], str] = {}

    def resolve(self, layout: Layout, stacks: Iterable[tuple[int, ...]]) -> None:
        """Look up the lines of many stacks at once, which is much faster than one by one."""
        wanted: dict[str, set[int]] = {}
        for address in {a for stack in stacks for a in called_from(stack)}:
            place = self._place(layout, address)
            if place and place[1] is not None:
                wanted.setdefault(place[0].path, set()).add(place[1])
        for path, addresses in wanted.items():
            new = sorted(a for a in addresses if (path, a) not in self._places)
            found = _lines(path, new)
            self._places.update(((path, a), found.get(a, "")) for a in new)

    def names(self, layout: Layout, stack: tuple[int, ...]) -> list[str]:
        """Return the names of the frames of a stack, outermost first.

        Code without frame pointers leads the kernel to data; there the stack ends.
        """
        found: list[str] = []
        for address in called_from(stack):
            if found and layout.is_data(address):
                break
            found.append(self._name(layout, address))
        return found[::-1]

    def _place(self, layout: Layout, address: int) -> tuple[Module, int | None, int] | None:
        region = layout.at(address)
        if region is None:
            return None
        path = region.path.removesuffix(" (deleted)")
        module = self._modules.get(path)
        if module is None:
            module = self._modules[path] = Module(path)
        offset = address - region.start + region.offset
        return module, module.address(offset), offset

    def _name(self, layout: Layout, address: int) -> str:
        place = self._place(layout, address)
        if place is None:
            return f"{address:#x}"
        module, inside, offset = place
        function = module.function(inside) if inside is not None else ""
        if not function:
            return f"{module.name}+{offset:#x}"
        line = self._places.get((module.path, inside or 0), "")
        return f"{function} ({line or module.name})"


def called_from(stack: tuple[int, ...]) -> tuple[int, ...]:
    """Return addresses inside the calls: all but the first are where a call returns to.

    The first one is behind the instruction of the system call, too.
    """
    return tuple(address - 1 for address in stack)
