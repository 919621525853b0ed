# SPDX-License-Identifier: GPL-2.0-only
"""Where the instructions of an operation go, by function of the kernel.

A plugin of the emulator (bench/instructions/steps-plugin.c) notes the blocks of code that a guest
runs between two marks of cycle-bench. A few operations are enough: they repeat to the instruction.
Where a block ends early, by a page fault, its last instructions count although they did not run.
"""

import bisect
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ceasefire import paths
from ceasefire.bench.cost.count import ICOUNT
from ceasefire.bench.measure import machine, programs
from ceasefire.errors import Failure
from ceasefire.tables import print_table
from ceasefire.vm import GuestSpec, run_guest
from ceasefire.vm.command import DISK_DIR
from ceasefire.vm.spec import DiskSpec

PROGRAM = "(program)"
OPERATIONS = 8
# Where the file lies that is mapped: ext4, as with most users.
DISKS = (DiskSpec("brd-ext4", "64M"),)
_ROWS = 40
_GUEST_LIMIT = 600.0
_KERNEL = 1 << 63
_BLOCK = struct.Struct("<QQ")
Block = tuple[int, int]


@dataclass
class Profile:
    """Instructions by function: its own, and with those of the functions that it calls."""

    own: Counter[str] = field(default_factory=Counter)
    whole: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """Return the number of instructions."""
        return sum(self.own.values())


class Symbols:
    """Names of kernel functions by address, from System.map."""

    def __init__(self, text: str) -> None:
        pairs = sorted(
            (int(address, 16), name)
            for address, kind, name in (line.split() for line in text.splitlines())
            if kind in "tTwW"
        )
        if not pairs:
            raise Failure("System.map of this kernel names no function")
        self.starts = [address for address, _ in pairs]
        self.names = [name for _, name in pairs]

    def find(self, address: int) -> tuple[str, bool]:
        """Return the function at an address, and whether it starts there."""
        index = bisect.bisect_right(self.starts, address) - 1
        if address < _KERNEL or index < 0:
            return PROGRAM, False
        return self.names[index], self.starts[index] == address


def read_blocks(data: bytes) -> Iterator[Block]:
    """Return the blocks that the plugin has noted: address and number of instructions."""
    whole = len(data) - len(data) % _BLOCK.size
    return _BLOCK.iter_unpack(data[:whole])


def profile_of(blocks: Iterable[Block], symbols: Symbols) -> Profile:
    """Return what each function has cost.

    A function is called where it is entered at its start, by a tail call, too; it has returned
    where an older one goes on.
    """
    result = Profile()
    stack = [PROGRAM]
    for address, count in blocks:
        name, starts = symbols.find(address)
        if name == PROGRAM:
            stack = [PROGRAM]
        elif name != stack[-1]:
            if not starts and name in stack:
                while stack[-1] != name:
                    stack.pop()
            else:
                stack.append(name)
        result.own[name] += count
        for caller in set(stack):
            result.whole[caller] += count
    return result


def measure(kernel: str, case: str, variant: str) -> Profile:
    """Boot a guest and return the profile of a few operations of a case, all together."""
    program = programs.find("cycle-bench")
    plugin = programs.find("steps-plugin.so")
    system_map = paths.kernel_image(kernel).parents[3] / "System.map"
    try:
        symbols = Symbols(system_map.read_text(encoding="ascii"))
    except OSError:
        raise Failure(f"there is no {system_map}: build the {kernel} kernel first") from None
    spec = GuestSpec(
        kernel=kernel,
        cpus=1,
        icount=True,
        accel="tcg",
        timeout=_GUEST_LIMIT,
        append=("nokaslr",),
        disks=DISKS,
    )
    words = ["--case", case, "--variant", variant, "--repeats", "1", "--ms", "20"]
    words += ["--mark", str(OPERATIONS), "--dir", f"{DISK_DIR}/0"]
    with tempfile.TemporaryDirectory(dir=paths.runs_dir()) as folder:
        out = Path(folder) / "steps"
        option = f"{plugin},out={out}"
        spec = replace(spec, qemu_args=("-icount", ICOUNT, "-plugin", option))
        result = run_guest(spec, [str(program), *words], name="bench-profile", cwd=Path("/"))
        machine.judge(result.check(), result.stderr.decode(errors="replace"))
        return profile_of(read_blocks(out.read_bytes()), symbols)


def print_profile(profile: Profile, title: str) -> None:
    """Print the functions that take the most, by operation."""
    rows = [
        [name, f"{own / OPERATIONS:,.0f}", f"{profile.whole[name] / OPERATIONS:,.0f}"]
        for name, own in profile.own.most_common(_ROWS)
    ]
    rows.append(["all", f"{profile.total / OPERATIONS:,.0f}", ""])
    print_table(["function", "its own", "with callees"], rows, title=title)


def differences(first: Profile, second: Profile) -> list[tuple[str, int]]:
    """Return by how much the second one's own instructions of a function differ, largest first.

    What differs by less than half an instruction of an operation is left out.
    """
    found = [(name, second.own[name] - first.own[name]) for name in {*first.own, *second.own}]
    found = [(name, more) for name, more in found if 2 * abs(more) >= OPERATIONS]
    return sorted(found, key=lambda pair: (-abs(pair[1]), pair[0]))


def print_differences(first: Profile, second: Profile, title: str) -> None:
    """Print by which functions two profiles differ, by operation."""
    rows = [[name, f"{more / OPERATIONS:+,.0f}"] for name, more in differences(first, second)]
    rows.append(["all", f"{(second.total - first.total) / OPERATIONS:+,.0f}"])
    print_table(["function", "more"], rows, title=title)
