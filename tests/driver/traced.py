# SPDX-License-Identifier: GPL-2.0-only
"""Guests in which tracing is used, and programs that are traced there."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ceasefire.vm import GuestResult, GuestSpec, run_guest
from ceasefire.vm.spec import BUILT_EMULATOR

# Names the program of hostile.c, where it is built: a compiler takes long on an emulated CPU.
HOSTILE = "CEASEFIRE_TEST_HOSTILE"


def run_traced(spec: GuestSpec, words: Sequence[str]) -> GuestResult:
    """Run a guest in which tracing is switched on and off, for which the kernel patches its code.

    Debian 12's emulator loses such a patch so often that many of these guests would end by it.
    """
    return run_guest(replace(spec, emulator=BUILT_EMULATOR), words, name="pytest")


def build(source: Path, program: Path) -> Path:
    """Build a program whose calls can be followed and named; return its path."""
    flags = ["-static", "-g", "-O1", "-fno-omit-frame-pointer", "-pthread"]
    subprocess.run(["cc", *flags, source, "-o", program], check=True)
    return program
