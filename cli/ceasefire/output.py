# SPDX-License-Identifier: GPL-2.0-only
"""Prints lines; tables.py prints tables.

Whatever is printed here is text: no markup, no control characters, see text.py.
"""

import os
import shutil
import sys
from typing import TextIO

from ceasefire.text import shown

_COLUMNS = 80


def columns_of_terminal() -> int:
    """Return how wide a line may be: 80 columns where there is no terminal that says more."""
    return shutil.get_terminal_size((_COLUMNS, 0)).columns


def fancy(stream: TextIO) -> bool:
    """Say whether a stream is a terminal that understands more than plain text."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def progress(text: str) -> None:
    """Tell a waiting person what is going on; results go to stdout, this does not."""
    say(text, file=sys.stderr)


def say(text: str, *, file: TextIO | None = None) -> None:
    """Print one line."""
    print(shown(text), file=sys.stdout if file is None else file, flush=True)


def number(value: float) -> str:
    """Return a count with thousands separators, or a small fraction with three digits."""
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
