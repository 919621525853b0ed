# SPDX-License-Identifier: GPL-2.0-only
"""Let a service of systemd run with a mechanism from its next start on.

Writes the drop-in /etc/systemd/system/UNIT.d/50-ceasefire.conf, which `systemctl cat UNIT` shows
and `ceasefire disable UNIT` removes. A launcher asks for the mechanism and becomes the program, so
static and sandboxed services have it, too. For --path a library is preloaded. Enabling again writes
it anew, as is needed when the unit has another ExecStart= than before. With --root DIR it is done
in the tree of another machine, and nothing is asked of the kernel and systemd here.
"""

import argparse
from typing import NoReturn

from ceasefire import modes
from ceasefire.errors import UsageError
from ceasefire.launch import activation
from ceasefire.output import progress, say
from ceasefire.service import dropin, plan, tree, units


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire enable`."""
    parser.add_argument("unit", metavar="UNIT", help="a service, such as apache2")
    parser.add_argument(
        "--mode",
        action="append",
        metavar="MODE",
        help=f"{', '.join(m.name for m in modes.MECHANISMS)}, or several joined by +: what it "
        f"runs with (default: {modes.FPR.name})",
    )
    activation.add_arguments(parser)
    activation.add_context(parser)
    parser.add_argument("--now", action="store_true", help="restart the service if it runs")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the drop-in, and do not write it"
    )
    add_root(parser)


def add_root(parser: argparse.ArgumentParser) -> None:
    """Declare where the service is."""
    parser.add_argument(
        "--root", metavar="DIR", help="the tree of another machine, in place of this one"
    )


def main(args: argparse.Namespace) -> int:
    """Write the drop-in, and say what comes next."""
    mode = mode_of(args)
    where = tree.choose(args.root)
    check_now(args, where)
    unit = units.find(where, args.unit, without=plan.DROPIN)
    if where.live:
        mode.require()
    made = plan.make(where, unit, mode, args)
    for warning in made.warnings:
        progress(f"ceasefire enable: {unit.name}: {warning}")
    if args.dry_run:
        for line in made.text.splitlines():
            say(line)
        return 0
    if unit.name != units.full_name(args.unit):
        progress(f"ceasefire enable: {args.unit} is a name of {unit.name}")
    dropin.write(where, unit.name, made.text)
    say(f"{dropin.path_of(unit.name)} written{in_tree(where)}: {made.says}")
    start(args, where, unit.name)
    return 0


class _Parser(argparse.ArgumentParser):
    """Reads options that no user has just typed."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong."""
        raise UsageError(message)


def planned(where: tree.Tree, words: list[str]) -> plan.Plan:
    """Return the drop-in that some options make now. Errors: Failure and its kinds."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    add_arguments(parser)
    args = parser.parse_args(words)
    unit = units.find(where, args.unit, without=plan.DROPIN)
    return plan.make(where, unit, mode_of(args), args)


def mode_of(args: argparse.Namespace) -> modes.Mode:
    """Return the mode that a service is to have. Errors: UsageError."""
    given: list[str] = args.mode or [modes.FPR.name]
    if len(given) > 1:
        once = "+".join(dict.fromkeys(given))
        raise UsageError(f"--mode is given twice: give one, such as --mode {once}")
    mode = modes.parse(given[0])
    if not mode.mechanisms:
        raise UsageError(f"mode {mode.name} is for `ceasefire run`: use `ceasefire disable UNIT`")
    return mode


def check_now(args: argparse.Namespace, where: tree.Tree) -> None:
    """Raise when a service is to be restarted that does not run here."""
    if args.now and not where.live:
        raise UsageError("--now restarts a service of this machine: leave --now or --root out")


def in_tree(where: tree.Tree) -> str:
    """Say where a path is, if not on this machine."""
    return "" if where.live else f" in {where.root}"


def start(args: argparse.Namespace, where: tree.Tree, name: str) -> None:
    """Restart the service, or say that it has to be."""
    if args.now:
        dropin.restart(name)
        say(f"{name} restarted, if it ran")
    elif where.live:
        say(f"{name} goes on as before until `systemctl restart {name}`")
