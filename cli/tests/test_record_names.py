# SPDX-License-Identifier: GPL-2.0-only
"""Functions have the names that binutils give them: nm for what holds an address, addr2line for
which one of these it is. On a program with symbols of all kinds, and on those of this machine.
"""

import random
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ceasefire.record import elf

LIMIT = 600.0
MOST = 400
CODE = "tTwWiu"
SOURCE = Path(__file__).with_name("data") / "symbols.c"


def output(*words: object, text: str = "") -> list[str]:
    done = subprocess.run(
        [str(word) for word in words],
        input=text,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.stdout.splitlines()


@dataclass
class Known:
    """What nm knows. sized: names and ends by start. bare: starts without a size."""

    sized: dict[int, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    bare: dict[int, str] = field(default_factory=dict)

    def read(self, *words: object) -> None:
        for line in output("nm", "-S", "--defined-only", *words):
            *numbers, kind, name = line.split()
            if kind not in CODE or not numbers:
                continue
            start, name = int(numbers[0], 16), name.partition("@")[0]
            if len(numbers) == 2:
                self.sized[start].add((name, start + int(numbers[1], 16)))
            else:
                self.bare[start] = name

    def holding(self, address: int) -> dict[int, set[str]]:
        """Return the names of what holds an address, by start."""
        found = {
            start: {name for name, end in names if address < end}
            for start, names in self.sized.items()
            if start <= address
        }
        return {start: names for start, names in found.items() if names}


def debug_file(path: Path) -> Path:
    with path.open("rb") as file:
        build_id = elf.Elf(file).build_id()
    return elf.DEBUG_FOLDER / build_id[:2] / f"{build_id[2:]}.debug"


def known(path: Path) -> Known:
    found = Known()
    found.read(path)
    found.read("-D", path)
    if debug_file(path).is_file():
        found.read(debug_file(path))
    return found


def names(path: Path, addresses: Iterable[int]) -> dict[int, str]:
    """Return the names that a recording would have, by address."""
    with path.open("rb") as file:
        loads = elf.Elf(file)._loads
        offsets = {
            address: address - start + offset
            for address in addresses
            for offset, size, start in loads
            if start <= address < start + size
        }
        file.seek(0)
        found: dict[int, str] = {}
        for kind, values in elf.read(file, offsets.values()):
            if kind == "functions":
                found |= values
    return {address: found[o] for address, o in offsets.items() if o in found}


def addr2line(path: Path, addresses: Sequence[int]) -> dict[int, str]:
    """Return what addr2line calls the function that the compiler has put the others into."""
    lines = output("addr2line", "-a", "-f", "-i", "-e", path, text="\n".join(map(hex, addresses)))
    found: dict[int, str] = {}
    address, is_name = 0, False
    for line in lines:
        if line.startswith("0x"):
            address, is_name = int(line, 16), True
        else:
            if is_name and line != "??":
                found[address] = line.partition("@")[0]
            is_name = not is_name
    return found


def libc() -> Path:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return Path(next(line.split()[-1] for line in lines if "/libc.so" in line))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program with symbols of all kinds."""
    path = tmp_path_factory.mktemp("names") / "symbols"
    subprocess.run(["cc", "-O1", SOURCE, "-o", path], check=True)
    return path


def path_of(name: str, built: Path) -> Path:
    found = {
        "built": built,
        "libc": libc(),
        "python": Path(sys.executable).resolve(),
        "ripgrep": Path(shutil.which("rg") or "/nowhere"),
    }[name]
    assert found.is_file(), f"{name} is missing: make deps"
    return found


@pytest.mark.parametrize("name", ["built", "libc", "python", "ripgrep"])
def test_names_are_those_of_binutils(name: str, built: Path) -> None:
    path = path_of(name, built)
    symbols = known(path)
    places = {
        place
        for start, some in symbols.sized.items()
        for _, end in some
        for place in (start, (start + end) // 2, end - 1, end)
        if end > start
    }
    chosen = sorted(random.Random(1).sample(sorted(places), min(len(places), MOST)))
    ours, theirs = names(path, chosen), addr2line(path, chosen)
    compared = 0
    for address in chosen:
        where = f"{path} {address:#x}"
        holding = symbols.holding(address)
        if not holding:
            # The end of one, where no other begins.
            assert ours.get(address, "") in ("", symbols.bare.get(address, "")), where
            continue
        nearest = max(holding)
        assert ours.get(address) in holding[nearest], where
        if address in theirs and nearest == max(s for s in symbols.sized if s <= address):
            # It may choose another alias, or the outer one of two; what the compiler adds to a name
            # is not in debug information.
            plain = {name.partition(".")[0] for some in holding.values() for name in some}
            assert theirs[address].partition(".")[0] in plain, where
            compared += 1
    assert compared > 20 or not theirs


def start_of(symbols: Known, name: str) -> tuple[int, int]:
    return next(
        (start, end) for start, some in symbols.sized.items() for n, end in some if n == name
    )


def test_names_of_all_kinds(built: Path) -> None:
    symbols = known(built)
    expected: dict[int, str] = {}
    for name in ("local_one", "weak_one", "main", "inner_one"):
        start, end = start_of(symbols, name)
        expected |= {start: name, end - 1: name}
    # Of its aliases the plain one.
    expected[start_of(symbols, "__long_name_of_one")[0] + 2] = "plain_one"
    # Behind the end of one that is inside another.
    expected[start_of(symbols, "inner_one")[1]] = "outer_one"
    # Without type and size.
    bare = next(start for start, name in symbols.bare.items() if name == "bare_one")
    expected |= {bare: "bare_one", bare + 2: "bare_one"}
    # Behind the end of one, where nothing follows.
    gap = [start_of(symbols, "short_one")[1] + n for n in (0, 1, 50)]
    sections = {
        words[-10]: int(words[-8], 16)
        for line in output("readelf", "-SW", built)
        if len(words := line.split()) > 9 and words[-10].startswith(".")
    }
    # _init has no size and is in the section before.
    plt = [sections[".plt"], sections[".plt"] + 17]
    assert names(built, [*expected, *gap, *plt]) == expected


def test_debug_file_names_what_the_program_does_not(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elf, "DEBUG_FOLDER", tmp_path)
    start, _ = start_of(known(built), "local_one")
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, built], check=True)
    assert not names(stripped, [start])
    place = debug_file(stripped)
    place.parent.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", built, place], check=True)
    assert names(stripped, [start]) == {start: "local_one"}
