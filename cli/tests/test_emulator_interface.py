# SPDX-License-Identifier: GPL-2.0-only
"""The numbers by which guests talk to the checking emulator are the same everywhere.

The kernel and its selftests cannot include a header of the emulator, so they repeat them.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "emulator/src/include/exec/tlb-check-guest.h"
KERNEL = ROOT / "kernel/src"
NUMBER = re.compile(
    r"^\s*(?:#define\s+)?([A-Z][A-Z_]*)(?:\s*=\s*|\s+)(0x[0-9a-f]+|\d+)u?\b", re.MULTILINE
)


def numbers(path: Path) -> dict[str, int]:
    return {name: int(value, 0) for name, value in NUMBER.findall(path.read_text("utf-8"))}


def signature(path: Path) -> bytes:
    found = re.search(r'SIGNATURE\s+"(\w{12})"', path.read_text("utf-8"))
    assert found
    return found.group(1).encode()


INTERFACE = numbers(HEADER)
SIGNATURE = b"".join(
    INTERFACE[f"TLB_CHECK_SIGNATURE_{register}"].to_bytes(4, "little") for register in "BCD"
)


def test_kernel() -> None:
    source = KERNEL / "mm/ceasefire/check.c"
    used = {n: v for n, v in numbers(source).items() if n.startswith("TLB_CHECK_")}
    assert len(used) >= 5
    assert used.items() <= INTERFACE.items()
    assert signature(source) == SIGNATURE


def test_kernel_events() -> None:
    used = numbers(KERNEL / "include/linux/ceasefire_check.h")
    assert used["CEASEFIRE_FREED"] == INTERFACE["TLB_CHECK_FREED"]
    assert used["CEASEFIRE_OWNER"] == INTERFACE["TLB_CHECK_OWNER"]
    assert used["CEASEFIRE_UNCACHED"] == INTERFACE["TLB_CHECK_CACHE"]


def test_selftests() -> None:
    source = KERNEL / "tools/testing/selftests/ceasefire/checker.c"
    used = numbers(source)
    for name in ("LEAF", "IDENTIFY", "ARM", "DISARM", "WATCH"):
        assert used[name] == INTERFACE[f"TLB_CHECK_{name}"]
    assert signature(source) == SIGNATURE
