# SPDX-License-Identifier: GPL-2.0-only
"""Guests in which tracing is used, and programs that are traced there."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ceasefire.paths import build_dir
from ceasefire.vm import GuestResult, GuestSpec, run_guest
from ceasefire.vm.spec import BUILT_EMULATOR, parse_disk

# Names the program of hostile.c, where it is built: a compiler takes long on an emulated CPU.
HOSTILE = "CEASEFIRE_TEST_HOSTILE"
LIMIT = 2400.0
MAPPED = "/run/disk/0/mapped"
# How many shootdowns of each kind $PROGRAM has, in run_shootdowns().
COUNTS = {
    "file": 400,
    "dirty": 100,
    "anonymous": 100,
    "fixed": 50,
    "dontneed": 100,
    "protect": 50,
}


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


def run_shootdowns(source: Path, folder: Path, started: str, script: str) -> list[str]:
    """Run a script in a guest, and return the lines that it printed.

    Its $CEASEFIRE is the command line (started), $PROGRAM that of source with all of COUNTS,
    $WARM_UP the same program with a few; what they map is $MAPPED, which has four pages.
    """
    program = build(source, folder / source.stem)
    words = " ".join(f"{name}={count}" for name, count in COUNTS.items())
    head = (
        f'CEASEFIRE="{started}"\nMAPPED={MAPPED}\n'
        f'PROGRAM="{program} {MAPPED} {words}"\nWARM_UP="{program} {MAPPED} file=20"\n'
        "dd if=/dev/zero of=$MAPPED bs=4096 count=4 2>/dev/null\n"
    )
    spec = GuestSpec(
        timeout=LIMIT,
        disks=(parse_disk("brd-ext4:32M"),),
        environment=(("CEASEFIRE_BUILD", str(build_dir())),),
    )
    result = run_traced(spec, ["sh", "-c", head + script])
    assert result.check() == 0, result.stderr.decode()
    return result.stdout.decode().splitlines()
