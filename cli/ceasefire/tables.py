# SPDX-License-Identifier: GPL-2.0-only
"""Prints tables: with rules and colour on a terminal, as aligned text otherwise.

A table is as wide as the terminal at most, and 80 columns elsewhere; programs read --json.

Whatever is printed here is text: no markup, no control characters, see text.py. Rich is imported
where a table is printed: that takes half as long as a short command does to run.
"""
# ruff: noqa: PLC0415

import io
import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, TextIO

from ceasefire.output import columns_of_terminal, fancy
from ceasefire.text import shown

if TYPE_CHECKING:
    from rich.padding import Padding

_STYLE_OF = {"pass": "green", "fail": "red", "skip": "yellow", "info": "dim"}

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
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    stream = sys.stdout if file is None else file
    rich = fancy(stream)
    look = box.SIMPLE_HEAD if rich else None
    # The box has a space between columns, too.
    gaps = [_GAP - rich] * (len(columns) - 1) + [0]
    # The gap is in the cells: rich 13 would give the last column one as well.
    table = Table(box=look, pad_edge=False, show_edge=False, padding=0)
    texts = [[shown(cell) for cell in line] for line in (columns, *rows)]
    widths = _widths(texts, numbers_from)
    for index, (name, gap) in enumerate(zip(texts[0], gaps, strict=True)):
        justify: Literal["right", "left"] = "right" if index >= numbers_from else "left"
        width = widths[index] + gap
        table.add_column(_cell(name, "", gap), justify=justify, overflow="fold", width=width)
    for line in texts[1:]:
        styles = [_STYLE_OF.get(text, "") if rich else "" for text in line]
        table.add_row(*map(_cell, line, styles, gaps))
    # What does not fit rich would cut off.
    wide = max(columns_of_terminal(), sum(widths) + _GAP * (len(widths) - 1))
    if rich:
        console = Console(file=stream, width=wide)
        if title:
            console.print(Text(shown(title), style="bold"))
        console.print(table)
        return
    text = io.StringIO()
    Console(file=text, width=wide, color_system=None).print(table)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    stream.write("\n".join([*wrap(shown(title), columns_of_terminal()), *lines]) + "\n")


def _cell(text: str, style: str, gap: int) -> "Padding":
    """Return what is in a cell, with the gap behind it."""
    from rich.padding import Padding
    from rich.text import Text

    # A str would be read as markup, a Text is not.
    return Padding(Text(text, style=style), (0, gap, 0, 0))


def _widths(texts: Sequence[Sequence[str]], numbers_from: int) -> list[int]:
    """Return how wide the columns are: as their text is, or less where the lines get too long.

    Numbers stay whole, and so do the words of their names.
    """
    from rich.cells import cell_len

    widths, least = [], []
    for index, cells in enumerate(zip(*texts, strict=True)):
        longest = max(cell_len(cell) for cell in cells)
        word = max(cell_len(word) for cell in cells for word in cell.split(" "))
        # A name above numbers that is longer than they are goes on in the next line.
        number = max(word, *(cell_len(cell) for cell in cells[1:]), 0)
        widths.append(longest if index < numbers_from else number)
        least.append(min(longest, _LEAST_TEXT) if index < numbers_from else word)
    left = columns_of_terminal() - _GAP * (len(widths) - 1)
    while sum(widths) > left and widths != least:
        # Of those that can give way the widest one.
        index = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
        widths[index] -= 1
    return widths
