# SPDX-License-Identifier: GPL-2.0-only
"""The harness: boots a kernel in QEMU on this machine's files and runs one command in it.

`GuestSpec` says what to boot, `run_guest()` boots it and returns a `GuestResult`.
Used by `ceasefire vm`, `try` and `bench`, and by the test driver.
"""

from ceasefire.vm.guest import GuestResult, run_guest
from ceasefire.vm.spec import GuestSpec, add_guest_arguments, spec_from_arguments

__all__ = [
    "GuestResult",
    "GuestSpec",
    "add_guest_arguments",
    "run_guest",
    "spec_from_arguments",
]
