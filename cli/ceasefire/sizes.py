# SPDX-License-Identifier: GPL-2.0-only
"""Sizes as users write them; used for the memory of guests and the limit of `ceasefire run`."""

import re

from ceasefire.errors import UsageError

_SIZE = re.compile(r"(\d+)([KMGT]?)", re.ASCII | re.IGNORECASE)
_SHIFT = {"": 20, "K": 10, "M": 20, "G": 30, "T": 40}


def parse_size(text: str) -> int:
    """Return the bytes of '512M' or '1G'; a bare number is in MiB, as QEMU has it."""
    match = _SIZE.fullmatch(text)
    if not match or int(match.group(1)) == 0:
        raise UsageError(f"'{text}' is not a size: write it like 512M or 2G")
    return int(match.group(1)) << _SHIFT[match.group(2).upper()]
