# SPDX-License-Identifier: GPL-2.0-only
"""Makes the drop-in of a service: what it says, or why there cannot be one.

LATR, Sharers, ABIS and FPR of all files are asked for by the launcher in front of each program, so
these services may be static, sandboxed or of any language. FPR of some files takes the preload
library, which the drop-in puts into the environment.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ceasefire import modes
from ceasefire.errors import Failure, UsageError
from ceasefire.launch import activation, prctl
from ceasefire.launch.executable import binary_at, can_gain
from ceasefire.service import launcher, sandbox
from ceasefire.service.command import Command, commands_in
from ceasefire.service.syntax import quoted
from ceasefire.service.tree import Tree
from ceasefire.service.units import SUFFIX, Unit, exists
from ceasefire.text import quoted as quoted_for_shell

DROPIN = "50-ceasefire.conf"
# How a drop-in of ours begins; the options are in the second line.
_MARK = "# Written by `ceasefire enable`, taken back by `ceasefire disable`. To write it again:"
_AGAIN = "# ceasefire enable "
# systemd's own, where the name of a program has no slash.
_SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NOTHING_STARTED = ("/bin/true", "/usr/bin/true")
_PRELOAD = "LD_PRELOAD"


@dataclass(frozen=True)
class Plan:
    """A drop-in. text: of the file. says: what it does. warnings: what it does not."""

    text: str
    says: str
    warnings: tuple[str, ...]


def make(tree: Tree, unit: Unit, mode: modes.Mode, args: argparse.Namespace) -> Plan:
    """Return the drop-in that the options ask for. Errors: Failure and its kinds.

    args: those that launch.activation declares, and the context.
    """
    commands = _commands(tree, unit)
    how = _how(tree, unit, mode, args)
    for values in how.variables.values():
        if not values.isprintable():
            raise UsageError("a glob of a service has no control characters and is UTF-8")
    told = launcher.options(how, args.context)
    files: list[PurePosixPath] = []
    lines: list[str] = []
    if how.variables:
        preloaded = launcher.library(tree)
        sandbox.check_library(unit, preloaded)
        _check_environment(tree, unit, how.variables)
        _check_reach(tree, unit, commands, how)
        files.append(preloaded)
        words = " ".join(quoted(f"{key}={value}") for key, value in how.variables.items())
        lines.append(f"Environment={words}")
    if told:
        program = launcher.launcher(tree)
        sandbox.check_launcher(tree, unit, program)
        _check_last(unit)
        files.append(program)
        lines.append("ExecStart=")
        for command in commands:
            path = _path_of(tree, unit, command)
            lines.append(f"ExecStart={command.with_launcher(str(program), told, path)}")
    lines += sandbox.additions(unit.service, files)
    head = _head(unit.name, mode, args)
    says = f"{_mode_in_words(mode)} for {unit.name}: {how.text}"
    warnings = tuple(_warnings(tree, unit, mode, commands))
    return Plan("\n".join([*head, "[Service]", *lines, ""]), says, warnings)


def _mode_in_words(mode: modes.Mode) -> str:
    return " and ".join(mechanism.title for mechanism in mode.mechanisms)


def words_for(name: str, mode: modes.Mode, args: argparse.Namespace) -> list[str]:
    """Return the options that make this drop-in again."""
    words = [name, "--mode", mode.name]
    for option in ("path", "exclude"):
        for glob in getattr(args, option):
            words += [f"--{option}", glob]
    words += ["--max-size", args.max_size] if args.max_size else []
    return [*words, *(["--context", args.context] if args.context else [])]


def words_in(text: str) -> str | None:
    """Return the options with which a drop-in was made, for a shell; None if it is not ours."""
    first, second = [*text.split("\n", 2), "", ""][:2]
    return second.removeprefix(_AGAIN) if first == _MARK and second.startswith(_AGAIN) else None


def _head(name: str, mode: modes.Mode, args: argparse.Namespace) -> list[str]:
    return [
        _MARK,
        _AGAIN + quoted_for_shell(words_for(name, mode, args)),
        "# Where ExecStart= is set, it is the unit's own with a launcher in front.",
    ]


def _commands(tree: Tree, unit: Unit) -> list[Command]:
    found = [c for s in unit.service.assigned("ExecStart") for c in commands_in(s)]
    if not found:
        raise UsageError(f"{unit.name} has no ExecStart=: it starts no program")
    if all(command.program in _NOTHING_STARTED for command in found):
        template = unit.name.removesuffix(SUFFIX) + "@" + SUFFIX
        hint = f", such as {template[: -len(SUFFIX)]}NAME" if exists(tree, template) else ""
        raise UsageError(f"{unit.name} starts nothing itself: name the unit that does{hint}")
    return found


def _how(
    tree: Tree, unit: Unit, mode: modes.Mode, args: argparse.Namespace
) -> activation.Activation:
    """Return how its programs are started, as `ceasefire run` has it."""
    for mechanism in mode.mechanisms:
        if not launcher.knows(mechanism):
            raise UsageError(f"services cannot have {mechanism.title}: choose another mode")
    activation.check_context(args.context, mode)
    if modes.FPR in mode.mechanisms:
        how = activation.chosen(
            args,
            # The kernel of a tree is one that has all there is.
            switch=not tree.live or prctl.available() or not modes.FPR.present(),
            inherited_preload=_environment(unit).get(_PRELOAD, ""),
            library=lambda: Path(launcher.library(tree)),
        )
    else:
        how = activation.without(args, mode.name, switch=False)
    wished = (m in mode.mechanisms for m in (modes.LATR, modes.SHARERS, modes.ABIS))
    lazy, sharers, abis = wished
    return activation.of_process(how, lazy=lazy, sharers=sharers, abis=abis)


def _environment(unit: Unit) -> dict[str, str]:
    words = [word.partition("=") for word in unit.service.words("Environment")]
    return {name: value for name, _, value in words}


def _check_environment(tree: Tree, unit: Unit, variables: Mapping[str, str]) -> None:
    """Raise when something else has the last word on our variables."""
    for name in unit.service.words("UnsetEnvironment"):
        if name.partition("=")[0] in variables:
            raise Failure(f"UnsetEnvironment= of {unit.name} takes {name} away: leave it out there")
    for word in unit.service.words("EnvironmentFile"):
        path = word.removeprefix("-")
        if not path.startswith("/"):
            continue
        text = tree.read(path) or "" if "%" not in path else ""
        for line in text.split("\n"):
            name = line.partition("=")[0].strip()
            if name in variables:
                raise Failure(f"{path} of {unit.name} sets {name}: leave it out there")


def _check_last(unit: Unit) -> None:
    """Raise when a drop-in behind ours has other programs."""
    for path in unit.dropins:
        if path.name > DROPIN and str(path) in unit.service.files_with("ExecStart"):
            raise Failure(
                f"{path} sets ExecStart= behind {DROPIN}: give it a name that comes before, "
                f"such as 40-{path.name}"
            )


def _check_reach(
    tree: Tree, unit: Unit, commands: Sequence[Command], how: activation.Activation
) -> None:
    """Raise when the preload library cannot be loaded into a program."""
    for command in commands:
        binary = _binary(tree, unit, command)
        why = activation.obstacle_of(how, command.program, binary) if binary else ""
        if why:
            raise UsageError(f"{why}: leave --path and --exclude out")


def _root_of(tree: Tree, unit: Unit) -> Tree:
    """Return the file system that the programs of a unit see."""
    folder = unit.service.value("RootDirectory").lstrip("-+")
    if not folder.startswith("/") or "%" in folder:
        return tree
    return Tree(tree.place(folder), live=False)


def _path_of(tree: Tree, unit: Unit, command: Command) -> str:
    """Return the path of a program, as systemd finds it. Other than systemd we do not search."""
    program = command.program
    if program.startswith(("/", "%")):
        return program
    if "/" in program:
        raise Failure(f"{unit.name} starts {program}, which is no absolute path: correct the unit")
    folders = ":".join(unit.service.words("ExecSearchPath")) or _SEARCHED
    root = _root_of(tree, unit)
    for folder in folders.split(":"):
        place = root.place(f"{folder}/{program}")
        if place.is_file() and os.access(place, os.X_OK):
            return f"{folder}/{program}"
    raise Failure(f"{unit.name} starts {program}, which is not in {folders}: install it first")


def _binary(tree: Tree, unit: Unit, command: Command) -> Path | None:
    """Return the file that is executed for a command, None where that cannot be told."""
    path = _path_of(tree, unit, command).replace("%i", unit.instance)
    if "%" in path:
        return None
    root = _root_of(tree, unit)
    return binary_at(path, root.place)


def _warnings(tree: Tree, unit: Unit, mode: modes.Mode, commands: Sequence[Command]) -> list[str]:
    found = []
    user = unit.service.value("User")
    for command in commands:
        binary = _binary(tree, unit, command)
        # systemd's + runs it with all rights.
        other = user not in ("", "root", "0") or unit.service.is_on("DynamicUser")
        plain = other and "+" not in command.prefixes
        confined = unit.service.is_on("NoNewPrivileges")
        if plain and not confined and binary is not None and can_gain(binary):
            found.append(
                f"{command.program} gains privileges when it starts, so the kernel clears "
                f"{_mode_in_words(mode)}"
            )
    policy = unit.service.value("CPUSchedulingPolicy")
    if modes.SHARERS in mode.mechanisms and policy in ("fifo", "rr"):
        found.append(
            f"its programs are real-time ones ({policy}), which Sharers leaves as they are"
        )
    if profile := unit.service.value("AppArmorProfile").lstrip("-"):
        found.append(f"the AppArmor profile {profile} must allow to execute {launcher.NAME}")
    return found
