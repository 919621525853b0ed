# SPDX-License-Identifier: GPL-2.0-only
"""Tables fit 80 columns, and lose nothing for that."""

import io
import json
import os
import re
from collections.abc import Sequence

import pytest
from rich.cells import cell_len

from ceasefire import counters, modes, reasons, tables
from ceasefire.__main__ import main

LONG = "/root/.cache/ceasefire/clone-0123abcd/linux/build-run/arch/x86/boot/bzImage"


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing say how wide the terminal is."""
    monkeypatch.delenv("COLUMNS", raising=False)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers_from: int = 1) -> str:
    stream = io.StringIO()
    tables.print_table(columns, rows, numbers_from=numbers_from, title="t", file=stream)
    return stream.getvalue()


@pytest.mark.parametrize("text", ["word " * 40, LONG, LONG * 3, "\u4e2d" * 70])
def test_text_that_has_no_room_goes_on_in_the_next_line(text: str) -> None:
    out = table(["what", "where", "count"], [[text, LONG, "1,234"]], numbers_from=2)
    assert max(cell_len(line) for line in out.splitlines()) <= 80
    letters = re.sub(r"[\s]", "", out)
    assert letters.count("1,234") == 1
    assert sorted(letters) == sorted(re.sub(r"\s", "", f"twhatwherecount{text}{LONG}1,234"))


def test_numbers_stay_whole_and_their_names_break() -> None:
    columns = ["what", *["a number with a long name"] * 6]
    out = table(columns, [["x", *["1,234,567"] * 6]])
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("1,234,567") == 6


def test_numbers_with_their_spread_break_between_the_two() -> None:
    spread = "123,456 (120,001..130,002)"
    out = table(["", "off", "fpr", "compared"], [["shootdowns received", *[spread] * 3]])
    assert max(map(len, out.splitlines())) <= 80
    assert (out.count("123,456"), out.count("(120,001..130,002)")) == (3, 3)


def test_terminal_has_no_longer_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "vt100")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    tables.print_table(["a", "b", "n"], [[LONG, LONG, "1"]], numbers_from=2, file=stream)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in stream.getvalue().splitlines()]
    assert max(map(cell_len, lines)) <= 80
    assert "".join(lines).count("/") == 2 * LONG.count("/")


def test_more_numbers_than_fit_are_all_there() -> None:
    out = table(["what", *["n"] * 12], [["x", *["1,234,567,890"] * 12]])
    assert out.count("1,234,567,890") == 12


def test_wider_where_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert f"{LONG}  {LONG}" in table(["a", "b"], [[LONG, LONG]], numbers_from=9)


@pytest.mark.parametrize(
    "words", [["maps", "--all", str(os.getpid())], ["doctor"], ["bench", "list"]], ids=" ".join
)
def test_tables_of_the_verbs_fit(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(words)
    # A line below a table may be a command to copy.
    lines = [line for line in capsys.readouterr().out.splitlines() if ": make " not in line]
    assert len(lines) > 5
    assert max(map(len, lines)) <= 80


def test_every_reason_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values = dict.fromkeys(reasons.WORDS, 10**9)
    monkeypatch.setattr(counters, "snapshot", lambda: values)
    assert main(["stat", "--all"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert all(re.search(rf"\b{name} +1,000,000,000 ", out) for name in values)
    assert main(["stat", "--all", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {m.name for m in modes.shown() if m.present()} == set(record["mechanisms"])
