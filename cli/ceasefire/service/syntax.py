# SPDX-License-Identifier: GPL-2.0-only
"""The syntax of unit files, systemd.syntax(7): sections, assignments, words with quotes.

Parsing takes text and knows no files. What a value means is known by those who ask for it.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ceasefire.errors import Failure

_SPACE = " \t\n\r"
# Behind a backslash, as in C; \s is a space.
_SHORT = {
    **{"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"},
    **{"\\": "\\", '"': '"', "'": "'", "s": " "},
}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))")
_TRUE = ("1", "yes", "y", "true", "t", "on")


@dataclass(frozen=True)
class Setting:
    """One assignment. where: the file, as the user knows it."""

    section: str
    key: str
    value: str
    where: str


def settings_in(text: str, where: str) -> Iterator[Setting]:
    """Yield the assignments of a file, in their order."""
    section = ""
    for line in _whole_lines(text):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif "=" in line and _is_utf8(line):
            key, _, value = line.partition("=")
            yield Setting(section, key.strip(_SPACE), value.strip(_SPACE), where)


def _is_utf8(line: str) -> bool:
    """Say whether it is; systemd leaves out lines that are not."""
    return not any(0xDC80 <= ord(char) <= 0xDCFF for char in line)


def _whole_lines(text: str) -> Iterator[str]:
    """Yield lines without comments, and those that end with a backslash joined with the next."""
    parts: list[str] = []
    for raw in text.removeprefix("\ufeff").split("\n"):
        line = raw.strip(_SPACE)
        # Also in the middle of a line that goes on.
        if line.startswith(("#", ";")) or not (line or parts):
            continue
        # One before the last is not escaped by another one: systemd counts them, too.
        backslashes = len(line) - len(line.rstrip("\\"))
        parts.append(line[:-1] if backslashes % 2 else line)
        if backslashes % 2 == 0:
            yield " ".join(parts).strip(_SPACE)
            parts = []
    if parts:
        yield " ".join(parts).strip(_SPACE)


class Service:
    """What the section [Service] of a unit says, with all its drop-ins."""

    def __init__(self, settings: Iterable[Setting]) -> None:
        """settings: of all files, in the order in which systemd reads them."""
        self._settings = [s for s in settings if s.section == "Service"]

    def assigned(self, key: str) -> list[Setting]:
        """Return the assignments of a list; one without a value has emptied it."""
        found: list[Setting] = []
        for setting in self._settings:
            if setting.key == key:
                found = [*found, setting] if setting.value else []
        return found

    def value(self, key: str) -> str:
        """Return the last assignment, "" where there is none."""
        return next((s.value for s in reversed(self._settings) if s.key == key), "")

    def is_on(self, key: str) -> bool:
        """Say whether a switch is on."""
        return self.value(key).lower() in _TRUE

    def words(self, key: str) -> list[str]:
        """Return the words of a list."""
        return [word for s in self.assigned(key) for word in words_of(s.value, s.where)]

    def files_with(self, key: str) -> list[str]:
        """Return the files that assign something, also nothing."""
        return list(dict.fromkeys(s.where for s in self._settings if s.key == key))


def raw_word(text: str, start: int) -> int:
    """Return where the word ends that begins at a place, -1 if a quote has no end."""
    quote = ""
    at = start
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
            if at == len(text):
                return -1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _SPACE:
            break
        at += 1
    return -1 if quote else at


def skip_space(text: str, start: int) -> int:
    """Return where the next word begins, or the end."""
    while start < len(text) and text[start] in _SPACE:
        start += 1
    return start


def unquoted(raw: str) -> str:
    """Return what a word with quotes and backslashes stands for."""
    out = []
    quote = ""
    at = 0
    while at < len(raw):
        char = raw[at]
        if char == "\\":
            found = _ESCAPE.match(raw, at)
            out.append(_unescaped(found) if found else char)
            at = found.end() if found else at + 1
            continue
        if quote and char == quote:
            quote = ""
        elif not quote and char in "\"'":
            quote = char
        else:
            out.append(char)
        at += 1
    return "".join(out)


def _unescaped(found: re.Match[str]) -> str:
    byte, short, long, octal, one = found.groups()
    if byte or octal:
        # One byte, which alone may be no UTF-8: then as os.fsdecode() has it.
        return os.fsdecode(bytes([int(byte, 16) if byte else int(octal, 8) & 0xFF]))
    code = short or long
    if code:
        return chr(min(int(code, 16), sys.maxunicode))
    return _SHORT.get(one, "\\" + one)


def words_of(value: str, where: str) -> list[str]:
    """Return the words of a value."""
    words = []
    at = skip_space(value, 0)
    while at < len(value):
        end = raw_word(value, at)
        if end < 0:
            raise Failure(f"{where}: a quote is not closed in '{value}': correct the unit first")
        words.append(unquoted(value[at:end]))
        at = skip_space(value, end)
    return words


def quoted(word: str) -> str:
    """Return a word as a unit file has it, with specifiers made harmless."""
    return '"' + escaped(word).replace("%", "%%") + '"'


def escaped(word: str) -> str:
    """Return what stands for a word between double quotes, in one line of UTF-8."""
    return "".join(_escape(char) for char in word)


def _escape(char: str) -> str:
    code = ord(char)
    if char in '\\"':
        return "\\" + char
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    # Bytes that are no UTF-8.
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else char
