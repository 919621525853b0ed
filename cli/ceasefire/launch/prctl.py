# SPDX-License-Identifier: GPL-2.0-only
"""prctl(PR_FPR), PR_LATR, PR_SHARERS and PR_ABIS: the kernel's switches for process trees.

The first makes them recycle their file mappings, the second makes their munmap() lazy, the third
sends their flushes to CPUs that have used what is flushed, the fourth sends them only for what a
CPU can have. What is set holds for this process and
what it forks and executes from then on, until a program gains privileges. The numbers are those of
uapi/linux/ceasefire.h; a unit test compares them.
"""

import ctypes
import errno
import os

PR_FPR = 0x465052
PR_FPR_SET_AUTO = 1
PR_FPR_GET_AUTO = 2
PR_FPR_SET_CONTEXT = 3
PR_FPR_GET_CONTEXT = 4
PR_LATR = 0x4C415452
PR_LATR_SET = 1
PR_LATR_GET = 2
PR_SHARERS = 0x53485253
PR_SHARERS_SET = 1
PR_SHARERS_GET = 2
PR_ABIS = 0x41424953
PR_ABIS_SET = 1
PR_ABIS_GET = 2
# As a limit: files of any size.
ALL: int = 2 ** (8 * ctypes.sizeof(ctypes.c_ulong)) - 1

# Who recycles together: names of the users' for PR_FPR_CONTEXT_*.
CONTEXTS = {"process": 0, "mapping": 1, "children": 2}

_prctl = ctypes.CDLL(None, use_errno=True).prctl
_prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]


def set_auto(limit: int) -> None:
    """From now on treat each mapping of a file of up to so many bytes; 0 treats none.

    Raises OSError: EINVAL on a kernel without it.
    """
    _call(PR_FPR, PR_FPR_SET_AUTO, limit)


def get_auto() -> int:
    """Return the limit that is in force. Raises OSError as set_auto() does."""
    limit = ctypes.c_uint64()
    _call(PR_FPR, PR_FPR_GET_AUTO, ctypes.addressof(limit))
    return limit.value


def set_context(name: str) -> None:
    """Choose who recycles together with this process, by a name of CONTEXTS.

    Raises OSError: EINVAL on a kernel without it, ENOMEM.
    """
    _call(PR_FPR, PR_FPR_SET_CONTEXT, CONTEXTS[name])


def get_context() -> str:
    """Return what was chosen. Raises OSError as set_context() does."""
    number = ctypes.c_uint()
    _call(PR_FPR, PR_FPR_GET_CONTEXT, ctypes.addressof(number))
    return next(name for name, value in CONTEXTS.items() if value == number.value)


def available() -> bool:
    """Say whether the running kernel has the switch, and nobody forbids it to us."""
    try:
        get_auto()
    except OSError:
        return False
    return True


def set_lazy(*, on: bool) -> None:
    """Make munmap() lazy from now on, or as ever.

    Raises OSError: EINVAL on a kernel without it, or with a context that is not this process
    alone; EPERM while it is switched off.
    """
    _call(PR_LATR, PR_LATR_SET, on)


def is_lazy() -> bool:
    """Say whether munmap() is lazy. Raises OSError: EINVAL on a kernel without it."""
    on = ctypes.c_uint()
    _call(PR_LATR, PR_LATR_GET, ctypes.addressof(on))
    return bool(on.value)


def lazy_available() -> bool:
    """Say whether the running kernel has that switch, and nobody forbids it to us."""
    try:
        is_lazy()
    except OSError:
        return False
    return True


def set_sharers(*, on: bool) -> None:
    """Have CPUs note what they use of what is forked and executed from now on, or not.

    A process that has threads already, or has had it and switched it off, cannot have it for itself
    (EBUSY): that is no error here, as the wish holds for what comes after it. Raises OSError:
    EINVAL on a kernel without it, EPERM while it is switched off.
    """
    try:
        _call(PR_SHARERS, PR_SHARERS_SET, on)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise


def has_sharers() -> bool:
    """Say whether that is wished for. Raises OSError: EINVAL on a kernel without it."""
    on = ctypes.c_uint()
    _call(PR_SHARERS, PR_SHARERS_GET, ctypes.addressof(on))
    return bool(on.value)


def sharers_available() -> bool:
    """Say whether the running kernel has that switch, and nobody forbids it to us."""
    try:
        has_sharers()
    except OSError:
        return False
    return True


def set_abis(*, on: bool) -> None:
    """Flush from now on only for what a CPU can have, or as ever.

    Raises OSError: EINVAL on a kernel without it, EPERM while it is switched off, ENOMEM.
    """
    _call(PR_ABIS, PR_ABIS_SET, on)


def has_abis() -> bool:
    """Say whether that is so. Raises OSError: EINVAL on a kernel without it."""
    on = ctypes.c_uint()
    _call(PR_ABIS, PR_ABIS_GET, ctypes.addressof(on))
    return bool(on.value)


def abis_available() -> bool:
    """Say whether the running kernel has that switch, and nobody forbids it to us."""
    try:
        has_abis()
    except OSError:
        return False
    return True


def _call(option: int, operation: int, argument: int) -> None:
    if _prctl(option, operation, argument, 0, 0) != 0:
        number = ctypes.get_errno()
        name = {
            PR_FPR: "PR_FPR",
            PR_LATR: "PR_LATR",
            PR_SHARERS: "PR_SHARERS",
            PR_ABIS: "PR_ABIS",
        }[option]
        raise OSError(number, f"prctl({name}): {os.strerror(number)}")
