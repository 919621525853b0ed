# SPDX-License-Identifier: GPL-2.0-only
"""Guests in which tracing is used."""

from collections.abc import Sequence

from ceasefire.vm import GuestResult, GuestSpec, klog, run_guest

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
