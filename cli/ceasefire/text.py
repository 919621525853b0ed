# SPDX-License-Identifier: GPL-2.0-only
"""Text that others have chosen, made fit for a terminal, a page or a line of ours.

Names of files, commands, programs and functions, and what programs print, may hold anything: line
breaks that forge a line of ours, sequences that a terminal obeys, marks that turn the direction of
writing round, bytes that are no UTF-8. All of these are shown, none is sent. All that is printed
goes through here, see output.py and errors.py.
"""

import shlex
from collections.abc import Iterable

_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
# Bytes that are no UTF-8 are lone surrogates in a str: U+DC80 to U+DCFF, as os.fsdecode() has it.
_LOW, _HIGH = 0xDC80, 0xDCFF


def shown(text: str) -> str:
    """Return a text as one line of characters that only stand for themselves."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def shown_lines(text: str) -> str:
    """Return a text of several lines, each fit to be printed."""
    return "\n".join(shown(line) for line in text.split("\n"))


def decoded(data: bytes) -> str:
    """Return what a file of /proc has, or a file system, as Python has names of files.

    Other than a text file of Python it takes no carriage return for the end of a line.
    """
    return data.decode("utf-8", "surrogateescape")


def lines_of(data: bytes) -> list[str]:
    """Return the lines of what a program has printed, each fit to be printed; no empty last one."""
    found = decoded(data).split("\n")
    return [shown(line.removesuffix("\r")) for line in (found if found[-1] else found[:-1])]


def quoted(words: Iterable[str]) -> str:
    """Return a command that a shell (bash, zsh, dash from 0.5.13) reads as these words."""
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    parts = []
    for byte in word.encode("utf-8", "surrogateescape"):
        plain = 0x20 <= byte < 0x7F and byte not in b"\\'"
        # In octal: of hexadecimal digits a shell might take more than two.
        parts.append(chr(byte) if plain else f"\\{byte:03o}")
    return "$'" + "".join(parts) + "'"


def _escape(char: str) -> str:
    code = ord(char)
    if _LOW <= code <= _HIGH:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return _SHORT.get(char, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
