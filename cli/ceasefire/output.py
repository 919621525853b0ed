# SPDX-License-Identifier: GPL-2.0-only
"""Prints lines, and tables: with rules and colour on a terminal, as aligned text otherwise.

Whatever is printed here is text: no markup, no control characters, see text.py.
"""

import os
import sys
from collections.abc import Sequence
from typing import Literal, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ceasefire.text import shown

GOOD = "green"
BAD = "red"
DIM = "dim"
_STYLE_OF = {"pass": GOOD, "fail": BAD, "skip": "yellow", "info": DIM}


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    numbers_from: int = 1,
    file: TextIO | None = None,
) -> None:
    """Print rows below their column names.

    numbers_from: index of the first column that holds numbers and is aligned to the right.
    """
    stream = sys.stdout if file is None else file
    title = shown(title)
    columns = [shown(column) for column in columns]
    rows = [[shown(cell) for cell in row] for row in rows]
    if not fancy(stream):
        stream.write(plain_table(columns, rows, title=title, numbers_from=numbers_from))
        return
    heading = Text(title, style="bold") if title else None
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD)
    for index, column in enumerate(columns):
        justify: Literal["right", "left"] = "right" if index >= numbers_from else "left"
        table.add_column(Text(column), justify=justify, overflow="fold")
    for row in rows:
        # A str would be read as markup, a Text is not.
        table.add_row(*(Text(cell, style=_STYLE_OF.get(cell, "")) for cell in row))
    Console(file=stream).print(table)


def plain_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    numbers_from: int = 1,
) -> str:
    """Return the table as plain text, one row a line."""
    lines = [columns, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    text = [title] if title else []
    for line in lines:
        cells = [
            cell.rjust(width) if index >= numbers_from else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        text.append("  ".join(cells).rstrip())
    return "\n".join(text) + "\n"


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
