# SPDX-License-Identifier: GPL-2.0-only
"""Reads the list of tests of a foreign suite: *.toml in this folder.

command: shell command of each test, {} is replaced by its entry in the table `test`. timeout:
seconds of a run. maps: tests that map files, so that they must use the mechanism. left_out: what
is not run at all, and why. differs: what a test says with one of the mechanisms in `with`, and why
it is right to: it passes only as long as it says so, and nothing else is wrong with it.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ceasefire.errors import UsageError
from tests.foreign import arms

FOLDER = Path(__file__).parent
_KEYS = {"command": str, "timeout": int, "maps": list, "test": dict, "left_out": dict}


@dataclass(frozen=True)
class Difference:
    """What a test does with mechanisms only. says: part of its output. marks: see judge."""

    arms: frozenset[str]
    says: str
    marks: tuple[str, ...]
    because: str


@dataclass(frozen=True)
class Suite:
    """Tests by name, in the order of the file; the values of commands are shell commands."""

    commands: dict[str, str]
    timeout: int
    maps: frozenset[str]
    left_out: dict[str, str]
    differs: dict[str, Difference] = field(default_factory=dict)

    def difference(self, test: str, arm: str) -> Difference | None:
        """Return what a test is known to do with this arm only."""
        known = self.differs.get(test)
        return known if known and arm in known.arms else None


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
    differs = table.get("differs", {})
    named = {*table["maps"], *differs}
    unknown = sorted(set(table) - set(_KEYS) - {"differs"}) + sorted(named - set(table["test"]))
    if unknown:
        raise UsageError(f"{file}: unknown key or test {unknown[0]}")
    commands = {n: str(table["command"]).replace("{}", a) for n, a in table["test"].items()}
    return Suite(
        commands,
        table["timeout"],
        frozenset(table["maps"]),
        table["left_out"],
        _differences(file, differs),
    )


def _differences(file: str, table: dict[str, Any]) -> dict[str, Difference]:
    found = {}
    for name, entry in table.items():
        if set(entry) != {"with", "says", "marks", "because"}:
            raise UsageError(f"{file}: differs, {name}: give with, says, marks and because")
        names = frozenset(arms.choose(arm).name for arm in entry["with"])
        found[name] = Difference(names, entry["says"], tuple(entry["marks"]), entry["because"])
    return found


def choose(suite: Suite, names: Sequence[str]) -> list[str]:
    """Return the tests of these names, or all of them."""
    unknown = [name for name in names if name not in suite.commands]
    if unknown:
        raise UsageError(f"the suite has no test {unknown[0]}")
    return list(names or suite.commands)
