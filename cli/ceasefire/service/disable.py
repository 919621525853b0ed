# SPDX-License-Identifier: GPL-2.0-only
"""Let a service of systemd run as it did before `ceasefire enable`, from its next start on.

Removes the drop-in /etc/systemd/system/UNIT.d/50-ceasefire.conf, and the folder if nothing else is
in it; also of a service that is not there any more.
"""

import argparse

from ceasefire.errors import Failure
from ceasefire.output import say
from ceasefire.service import dropin, enable, plan, tree, units


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire disable`."""
    parser.add_argument("unit", metavar="UNIT", help="a service, such as apache2")
    parser.add_argument("--now", action="store_true", help="restart the service if it runs")
    enable.add_root(parser)


def main(args: argparse.Namespace) -> int:
    """Remove the drop-in, and say what comes next."""
    where = tree.choose(args.root)
    enable.check_now(args, where)
    name = _name(where, args.unit)
    dropin.remove(where, name)
    say(f"{dropin.path_of(name)} removed{enable.in_tree(where)}")
    enable.start(args, where, name)
    return 0


def _name(where: tree.Tree, word: str) -> str:
    """Return the name under which a service was enabled."""
    name = units.full_name(word)
    if dropin.present(where, name) is not None:
        return name
    try:
        return units.find(where, word, without=plan.DROPIN).name
    except Failure:
        # It is gone, or masked, and so is what it was a name of.
        return name
