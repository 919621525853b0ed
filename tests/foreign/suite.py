# SPDX-License-Identifier: GPL-2.0-only
"""Reads the list of tests of a foreign suite: *.toml in this folder.

command: shell command of each test, {} is replaced by its entry in the table `test`. timeout:
seconds of a run. maps: tests that map files, so that they must use FPR. left_out: what is not
run at all, and why.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ceasefire.errors import UsageError

FOLDER = Path(__file__).parent
_KEYS = {"command": str, "timeout": int, "maps": list, "test": dict, "left_out": dict}


@dataclass(frozen=True)
class Suite:
    """Tests by name, in the order of the file; the values of commands are shell commands."""

    commands: dict[str, str]
    timeout: int
    maps: frozenset[str]
    left_out: dict[str, str]


def load(name: str, folder: Path = FOLDER) -> Suite:
    """Read a suite by its name."""
    path = folder / f"{name}.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(p.stem for p in folder.glob("*.toml")))
        raise UsageError(f"no suite is named {name}: it is one of {known}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path.name}: {error}") from None
    return _suite(path.name, table)


def _suite(file: str, table: dict[str, Any]) -> Suite:
    for key, kind in _KEYS.items():
        if not isinstance(table.get(key), kind):
            raise UsageError(f"{file}: {key} is missing, or no {kind.__name__}")
    unknown = sorted(set(table) - set(_KEYS)) + sorted(set(table["maps"]) - set(table["test"]))
    if unknown:
        raise UsageError(f"{file}: unknown key or test {unknown[0]}")
    commands = {n: str(table["command"]).replace("{}", a) for n, a in table["test"].items()}
    return Suite(commands, table["timeout"], frozenset(table["maps"]), table["left_out"])


def choose(suite: Suite, names: Sequence[str]) -> list[str]:
    """Return the tests of these names, or all of them."""
    unknown = [name for name in names if name not in suite.commands]
    if unknown:
        raise UsageError(f"the suite has no test {unknown[0]}")
    return list(names or suite.commands)
