# SPDX-License-Identifier: GPL-2.0-only
"""From the addresses of a stack to places: a file that was mapped there, and an offset in it.

Which file it was comes from /proc/PID/maps as it was while the program ran. No file is opened
here; symbols.py finds the names of places later. Until then a place is FILE+OFFSET, or the
address alone where no file was.
"""

import bisect
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import NamedTuple

from ceasefire.record.mappings import Region

_MAX_NAME = 500


class Module(NamedTuple):
    """A file that was mapped, as /proc/PID/maps tells it. Another one may be at the path now."""

    path: str
    device: str
    inode: int

    @property
    def name(self) -> str:
        """Return its name for the user."""
        return PurePath(self.path).name.removesuffix(" (deleted)")


class Place(NamedTuple):
    """An offset in a file, or an address where no file is known."""

    module: Module | None
    number: int

    def text(self, names: Mapping["Place", str]) -> str:
        """Return its name, or what can be told without."""
        if self.module is None:
            return f"{self.number:#x}"
        known = names.get(self, "")
        text = known if known else f"{self.module.name}+{self.number:#x}"
        return text if len(text) <= _MAX_NAME else f"{text[:_MAX_NAME]}..."


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

    def is_data(self, address: int) -> bool:
        """Say whether no code is at an address, as far as the regions are known."""
        return bool(self._regions) and self._holding(address) is None

    def place(self, address: int) -> Place:
        """Return what is at an address."""
        region = self._holding(address)
        if region is None or not region.path.startswith("/"):
            return Place(None, address)
        module = Module(region.path, region.device, region.inode)
        return Place(module, address - region.start + region.offset)

    def places(self, stack: tuple[int, ...]) -> tuple[Place, ...]:
        """Return the places of the frames of a stack, outermost first.

        Code without frame pointers leads the kernel to data; there the stack ends.
        """
        found: list[Place] = []
        for address in called_from(stack):
            if found and self.is_data(address):
                break
            found.append(self.place(address))
        return tuple(found[::-1])


def called_from(stack: tuple[int, ...]) -> tuple[int, ...]:
    """Return addresses inside the calls: all but the first are where a call returns to.

    The first one is behind the instruction of the system call, too.
    """
    return tuple(max(address - 1, 0) for address in stack)
