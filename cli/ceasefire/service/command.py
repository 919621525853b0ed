# SPDX-License-Identifier: GPL-2.0-only
"""ExecStart lines of a unit, and the same with the launcher in front of the program.

A line is prefixes, a program, its arguments; systemd.service(5), Command Lines. Prefixes are about
how systemd starts what comes first (- its failure is none, : no variables, + ! !! with which
rights), so they stay in front of the launcher. Only @ is about the program: the word behind it is
the name that the program is told, and the launcher tells it. Arguments stay as they are written,
as systemd sees to their quotes, specifiers and variables before anything is started.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ceasefire.errors import Failure
from ceasefire.service.syntax import Setting, escaped, raw_word, skip_space, unquoted

_PREFIX = re.compile(r"(?:!!|[-@:+!])*")
_OTHER_PREFIX = re.compile(r"[|]")
_PLAIN = re.compile(r"[^\\\"'\s]+")


@dataclass(frozen=True)
class Command:
    """One command of a unit.

    prefixes: without @. program: a path or a name, where %-specifiers are still to be replaced.
    name: what it is told as its own name, as written; "" without @. arguments: as written.
    """

    prefixes: str
    program: str
    name: str
    arguments: str

    def with_launcher(self, launcher: str, options: Sequence[str], program: str) -> str:
        """Return the value of ExecStart= that starts it by the launcher. program: its path."""
        words = [self.prefixes + launcher, *options]
        if self.name:
            words += ["--argv0", self.name]
        words += ["--", self._argument(program)]
        return " ".join([*words, *([self.arguments] if self.arguments else [])])

    def _argument(self, program: str) -> str:
        """Return a path as an argument. Other than the first word these may have variables."""
        text = program if ":" in self.prefixes else program.replace("$", "$$")
        plain = _PLAIN.fullmatch(text) and text.isprintable() and text != ";"
        return text if plain else f'"{escaped(text)}"'


def commands_in(setting: Setting) -> Iterator[Command]:
    """Yield the commands of an assignment: one, or several with a semicolon between them.

    Errors: Failure for what systemd would not start either.
    """
    text = setting.value
    at = skip_space(text, 0)
    while at < len(text):
        if _separator(text, at):
            at = skip_space(text, at + 1)
            continue
        first, at = _word(text, at, setting)
        plain = unquoted(first)
        found = _PREFIX.match(plain)
        prefixes = found[0] if found else ""
        program = plain[len(prefixes) :]
        if not program or "\0" in program or _OTHER_PREFIX.match(program):
            raise _unreadable(setting)
        name = ""
        if "@" in prefixes:
            name, at = _word(text, at, setting)
            if not name:
                raise _unreadable(setting)
        start = at
        while at < len(text) and not _separator(text, at):
            at = _word(text, at, setting)[1]
        arguments = text[start:at].rstrip()
        yield Command(prefixes.replace("@", ""), program, name, arguments)


def _separator(text: str, at: int) -> bool:
    """Say whether a lone semicolon stands at a place."""
    return text[at] == ";" and (at + 1 == len(text) or skip_space(text, at + 1) > at + 1)


def _word(text: str, start: int, setting: Setting) -> tuple[str, int]:
    end = raw_word(text, start)
    if end < 0:
        raise _unreadable(setting)
    return text[start:end], skip_space(text, end)


def _unreadable(setting: Setting) -> Failure:
    return Failure(
        f"{setting.where}: cannot read ExecStart={setting.value}: correct the unit, or start its "
        "program with `ceasefire run` there"
    )
