# SPDX-License-Identifier: GPL-2.0-only
"""Prints lines, and tables: with rules and colour on a terminal, as aligned text otherwise.

A table is as wide as the terminal at most, and 80 columns elsewhere; programs read --json.

Whatever is printed here is text: no markup, no control characters, see text.py.
"""

import io
import os
import shutil
import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ceasefire.text import shown

GOOD = "green"
BAD = "red"
DIM = "dim"
_STYLE_OF = {"pass": GOOD, "fail": BAD, "skip": "yellow", "info": DIM}

_COLUMNS = 80
_GAP = 2
# A column of text is not made narrower than that; words that are longer are broken.
_LEAST_TEXT = 12


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    numbers_from: int = 1,
    file: TextIO | None = None,
) -> None:
    """Print rows below their column names; text that has no room goes on in the next line.

    numbers_from: index of the first column that holds numbers and is aligned to the right.
    """
    stream = sys.stdout if file is None else file
    rich = fancy(stream)
    table = Table(box=box.SIMPLE_HEAD if rich else None, pad_edge=rich, padding=(0, 2, 0, 0))
    width = 0
    for index, column in enumerate(columns):
        cells = [shown(row[index]) for row in rows]
        longest = max((cell_len(cell) for cell in cells), default=0)
        if index >= numbers_from:
            # A number stays whole, its name need not.
            longest = max(longest, *(cell_len(word) for word in shown(column).split(" ")))
            name = "\n".join(wrap(shown(column), longest, break_long_words=False))
            table.add_column(Text(name), justify="right", no_wrap=True)
        else:
            longest = min(longest, _LEAST_TEXT)
            table.add_column(Text(shown(column)), overflow="fold")
        width += longest + _GAP
    for row in rows:
        # A str would be read as markup, a Text is not.
        table.add_row(*(Text(shown(c), style=_STYLE_OF.get(c, "") if rich else "") for c in row))
    wide = max(columns_of_terminal(), width)
    if rich:
        console = Console(file=stream, width=wide)
        if title:
            console.print(Text(shown(title), style="bold"))
        console.print(table)
        return
    text = io.StringIO()
    Console(file=text, width=wide, color_system=None).print(table)
    lines = [*wrap(shown(title), wide), *(line.rstrip() for line in text.getvalue().splitlines())]
    stream.write("\n".join(lines) + "\n")


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
