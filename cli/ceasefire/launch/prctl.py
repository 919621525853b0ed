# SPDX-License-Identifier: GPL-2.0-only
"""prctl(PR_FPR): the kernel's switch that makes a whole process tree recycle its file mappings.

What is set holds for this process and what it forks and executes from then on, until a program
gains privileges. The numbers are those of uapi/linux/ceasefire.h; a unit test compares them.
"""

import ctypes
import os

PR_FPR = 0x465052
PR_FPR_SET_AUTO = 1
PR_FPR_GET_AUTO = 2
PR_FPR_SET_CONTEXT = 3
PR_FPR_GET_CONTEXT = 4
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
    _call(PR_FPR_SET_AUTO, limit)


def get_auto() -> int:
    """Return the limit that is in force. Raises OSError as set_auto() does."""
    limit = ctypes.c_uint64()
    _call(PR_FPR_GET_AUTO, ctypes.addressof(limit))
    return limit.value


def set_context(name: str) -> None:
    """Choose who recycles together with this process, by a name of CONTEXTS.

    Raises OSError: EINVAL on a kernel without it, ENOMEM.
    """
    _call(PR_FPR_SET_CONTEXT, CONTEXTS[name])


def get_context() -> str:
    """Return what was chosen. Raises OSError as set_context() does."""
    number = ctypes.c_uint()
    _call(PR_FPR_GET_CONTEXT, ctypes.addressof(number))
    return next(name for name, value in CONTEXTS.items() if value == number.value)


def available() -> bool:
    """Say whether the running kernel has the switch, and nobody forbids it to us."""
    try:
        get_auto()
    except OSError:
        return False
    return True


def _call(operation: int, argument: int) -> None:
    if _prctl(PR_FPR, operation, argument, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_FPR): {os.strerror(number)}")
