# SPDX-License-Identifier: GPL-2.0-only
"""What ABIS and reclaim believe of the processor, here and before a kernel that has them is booted.

The kernel decides the same by itself (kernel/src/mm/ceasefire/core/young.c, abis/insert.c); where
it runs, it is asked. `ceasefire doctor` shows this; nothing else depends on it.
"""

import re
from collections.abc import Callable
from pathlib import Path

from ceasefire.checks.base import Check, check

_CPUINFO = Path("/proc/cpuinfo")
_MELTDOWN = Path("/sys/devices/system/cpu/vulnerabilities/meltdown")
_EVICT = Path("/sys/kernel/mm/ceasefire/fpr/evict")
# Xeon Phi, the only ones of Intel that set the bit late: Knights Landing and Knights Mill.
_LATE_MODELS = {("6", "87"), ("6", "133")}


def checks(root: Path = Path("/")) -> list[Check]:
    """Check what entries that no CPU has, and those that one CPU has, take. root: for tests."""

    def text(path: Path) -> str:
        try:
            return (root / path.relative_to("/")).read_text(encoding="ascii", errors="replace")
        except OSError:
            return ""

    fields = dict(re.findall(r"^(\S[^:\n]*?)\s*:\s*(.*)$", text(_CPUINFO).split("\n\n")[0], re.M))
    return [_accessed_bits(fields, text), _classes(fields, text)]


def _accessed_bits(fields: dict[str, str], text: Callable[[Path], str]) -> Check:
    """Does an entry without the accessed bit mean that no TLB has it?"""
    name = "accessed bits"
    vendor = fields.get("vendor_id", "an unknown processor")
    told = text(_EVICT).strip()
    model = (fields.get("cpu family", ""), fields.get("model", ""))
    if told == "1":
        return check(name, True, f"{vendor}: the kernel believes them", "", needed=False)
    fix = f"to believe them: echo 1 > {_EVICT}"
    if told:
        return check(name, False, f"{vendor}: not believed, flushed as ever", fix, needed=False)
    known = vendor == "GenuineIntel" and model not in _LATE_MODELS
    found = "promised in time" if known else "no promise known, so ABIS and reclaim flush as ever"
    return check(name, known, f"{vendor}: {found}", fix, needed=False)


def _classes(fields: dict[str, str], text: Callable[[Path], str]) -> Check:
    """Can a CPU load an entry alone, for the source `inserted` of ABIS?"""
    name = "inserted entries"
    if "pcid" not in fields.get("flags", "").split():
        fix = "abis/sources has `uncached` for this processor"
        return check(name, False, "no PCIDs", fix, needed=False)
    if text(_MELTDOWN).startswith("Mitigation: PTI"):
        fix = "this processor needs it: use the source `uncached`"
        return check(name, False, "page table isolation", fix, needed=False)
    return check(name, True, "PCIDs, no page table isolation", "", needed=False)
