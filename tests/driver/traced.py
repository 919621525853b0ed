# SPDX-License-Identifier: GPL-2.0-only
"""Guests in which tracing is used, and programs that are traced there."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ceasefire.vm import GuestResult, GuestSpec, klog, run_guest

# Names the program of hostile.c, where it is built: a compiler takes long on an emulated CPU.
HOSTILE = "CEASEFIRE_TEST_HOSTILE"
_ATTEMPTS = 3


def run_traced(spec: GuestSpec, words: Sequence[str]) -> GuestResult:
    """Run a guest in which tracing is switched on and off, for which the kernel patches its code.

    The emulator that loses such a patch ends the guest; that is repeated, and nothing else is.
    """
    for _ in range(_ATTEMPTS - 1):
        result = run_guest(spec, words, name="pytest")
        if not klog.lost_patch(result.verdict):
            return result
    return run_guest(spec, words, name="pytest")


def build(source: Path, program: Path) -> Path:
    """Build a program whose calls can be followed and named; return its path."""
    flags = ["-static", "-g", "-O1", "-fno-omit-frame-pointer", "-pthread"]
    subprocess.run(["cc", *flags, source, "-o", program], check=True)
    return program
