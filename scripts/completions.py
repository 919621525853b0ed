#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Print the completion of `ceasefire` for a shell, made from the parsers of all verbs by shtab.

  scripts/completions.py bash|zsh|fish

Called when the userspace side is built (cli/meson.build), with the Python of the build folder.
"""

import argparse
import importlib
import sys
from pathlib import Path
from typing import cast

import shtab

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from ceasefire.__main__ import VERBS, VerbModule, top_parser
from ceasefire.modes import MECHANISMS, OFF, STOCK
from ceasefire.paths import KERNEL_KINDS
from ceasefire.vm.spec import BUILT_EMULATOR, CHECKING_EMULATOR, STOCK_EMULATOR

SHELLS = ("bash", "zsh", "fish")
# A command of the user's has programs and files; all programs there are help nobody. For a word
# like an option shtab asks for all that there is, but the options of others we do not know.
_COMMAND = {
    "bash": "_ceasefire_command_or_file",
    "zsh": "_ceasefire_command_or_file",
    "fish": "(__fish_complete_command; __fish_complete_path (commandline -ct))",
    "preamble": {
        "bash": "_ceasefire_command_or_file() "
        '{ [[ $completing_word == -* ]] || compgen ${1:+-c} -f -- "$1"; }',
        "zsh": "_ceasefire_command_or_file() "
        "{ _alternative 'commands::_command_names -e' 'files::_files' }",
    },
}


def _words(*words: str) -> dict[str, str | dict[str, str]]:
    """Let a value be one of some words, or anything else."""
    return shtab.cmd("printf '%s\\n' " + " ".join(words))


# What comes in the place of each metavar; nothing where it is a number or free text.
_VALUES = {
    "-- CMD": _COMMAND,
    "DIR": shtab.DIRECTORY,
    "FILE": shtab.FILE,
    "GLOB": shtab.FILE,
    "KIND": _words(*KERNEL_KINDS),
    "MODE": _words(*(mode.name for mode in (OFF, STOCK)), *(m.name for m in MECHANISMS)),
    "NAME": _words(STOCK_EMULATOR, CHECKING_EMULATOR, BUILT_EMULATOR),
    "PID": shtab.cmd("ps -e -o pid="),
    "UNIT": shtab.cmd(
        "systemctl list-unit-files --type=service --no-legend --plain 2>/dev/null | cut -d' ' -f1"
    ),
}


def parser() -> argparse.ArgumentParser:
    """Return the one parser that has every verb."""
    whole = argparse.ArgumentParser(prog="ceasefire", description=top_parser().description)
    whole.add_argument("--version", action="store_true", help="print the version")
    verbs = whole.add_subparsers()
    for verb in VERBS:
        module = cast(VerbModule, importlib.import_module(verb.module))
        module.add_arguments(verbs.add_parser(verb.name, help=verb.help, description=verb.help))
    return whole


def add_values(some: argparse.ArgumentParser) -> None:
    """Say for every option and argument what its values are."""
    for action in some._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                add_values(inner)
        elif isinstance(action.metavar, str) and action.metavar in _VALUES:
            action.complete = _VALUES[action.metavar]  # type: ignore[attr-defined]


def main() -> int:
    """Print it."""
    if len(sys.argv) != 2 or sys.argv[1] not in SHELLS:
        print(f"usage: completions.py {'|'.join(SHELLS)}", file=sys.stderr)
        return 2
    whole = parser()
    add_values(whole)
    print(shtab.complete(whole, sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
