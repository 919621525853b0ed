# SPDX-License-Identifier: GPL-2.0-only
"""Does this machine give CPUs page tables of their own? Sharers does nothing without them.

The kernel takes the wish of a program all the same, and leaves it as it is: sharers_possible() in
arch/x86/mm/sharers/process.c. So the tools look at what the kernel looks at.
"""

from pathlib import Path

_XEN = Path("/sys/hypervisor/guest_type")
_CLOCKS = Path("/sys/devices/system/clocksource/clocksource0/available_clocksource")


def obstacle() -> str:
    """Say why CPUs get no page tables of their own here, and what to do; empty if they do."""
    if _read(_XEN).strip() == "PV":
        return "this is a PV guest of Xen: choose another mode, or make it a PVH guest"
    # The kernel has it only when it takes the hypervisor for that one.
    if "hyperv_clocksource" in _read(_CLOCKS):
        return "this is a guest of Hyper-V: choose another mode"
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
