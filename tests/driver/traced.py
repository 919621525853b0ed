# SPDX-License-Identifier: GPL-2.0-only
"""Guests in which tracing is used, and programs that are traced there."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ceasefire.vm import GuestResult, GuestSpec, klog, run_guest

# Names the program of hostile.c, where it is built: a compiler takes long on an emulated CPU.
HOSTILE = "CEASEFIRE_TEST_HOSTILE"
_ATTEMPTS = 3
# A line of pytest -v, and its status when there was nothing left to run.
_PASSED = re.compile(r"^(\S+::.*\S) PASSED\b", re.MULTILINE)
_NO_TESTS = 5


def run_traced(spec: GuestSpec, words: Sequence[str]) -> GuestResult:
    """Run a guest in which tracing is switched on and off, for which the kernel patches its code.

    The emulator that loses such a patch ends the guest; that is repeated, and nothing else is.
    """
    for _ in range(_ATTEMPTS - 1):
        result = run_guest(spec, words, name="pytest")
        if not klog.lost_patch(result.verdict):
            return result
    return run_guest(spec, words, name="pytest")


def run_tests_traced(spec: GuestSpec, words: Sequence[str]) -> tuple[int, str]:
    """Run tests of pytest in such a guest; return their status, and what all guests printed.

    words: run pytest without buffering its output. The longer a guest traces the likelier it is
    that the emulator loses a patch. What has passed by then is not run again, and it is given up
    after some guests in which nothing has passed.
    """
    passed: list[str] = []
    printed = ""
    vain = 0
    while True:
        left = [f"--deselect={test}" for test in passed]
        result = run_guest(spec, [*words, "-v", *left], name="pytest")
        text = result.stdout.decode(errors="replace")
        printed += text
        found = _PASSED.findall(text)
        vain = 0 if found else vain + 1
        if vain == _ATTEMPTS or not klog.lost_patch(result.verdict):
            status = result.check()
            return (0 if passed and status == _NO_TESTS else status), printed
        passed += found


def build(source: Path, program: Path) -> Path:
    """Build a program whose calls can be followed and named; return its path."""
    flags = ["-static", "-g", "-O1", "-fno-omit-frame-pointer", "-pthread"]
    subprocess.run(["cc", *flags, source, "-o", program], check=True)
    return program
