# SPDX-License-Identifier: GPL-2.0-only
"""Chooses between KVM and the emulator.

A /dev/kvm that opens is no proof: on some machines QEMU aborts or hangs with it. So a guest is
really booted once with KVM, and the verdict is kept until the host boots again.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

from ceasefire import paths

DEVICE = Path("/dev/kvm")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# A guest boots in two seconds with KVM.
PROBE_LIMIT = 20.0


def remembered() -> bool | None:
    """Return what an earlier probe of this host boot found, None without one."""
    try:
        state = json.loads(_cache().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(state, dict) or state.get("boot_id") != _boot_id():
        return None
    works = state.get("works")
    return works if isinstance(works, bool) else None


def kvm_works(boots: Callable[[], bool], *, again: bool = False) -> bool:
    """Say whether a guest boots with KVM, by calling `boots` unless it is known."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return False
    known = None if again else remembered()
    if known is not None:
        return known
    works = boots()
    cache = _cache()
    fresh = cache.with_name(f"{cache.name}.{os.getpid()}")
    fresh.write_text(json.dumps({"boot_id": _boot_id(), "works": works}), encoding="utf-8")
    fresh.replace(cache)
    return works


def _boot_id() -> str:
    return _BOOT_ID.read_text(encoding="ascii").strip()


def _cache() -> Path:
    return paths.state_dir() / "kvm.json"
