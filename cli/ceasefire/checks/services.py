# SPDX-License-Identifier: GPL-2.0-only
"""Checks services that `ceasefire enable` has been used for: do their drop-ins still fit?

A drop-in has the unit's ExecStart= with a launcher in front. When a package comes with another
ExecStart=, the drop-in goes on with the one before.
"""

from pathlib import Path

from ceasefire.checks.base import Check, check
from ceasefire.errors import Failure
from ceasefire.service import dropin, enable
from ceasefire.service.tree import Tree
from ceasefire.text import quoted

THIS = Tree(Path("/"), live=True)


def checks(tree: Tree = THIS) -> list[Check]:
    """Check each service that is enabled; there may be none."""
    return [_one(tree, name, words, text) for name, words, text in dropin.all_of(tree)]


def _one(tree: Tree, name: str, words: list[str], text: str) -> Check:
    again = f"ceasefire {quoted(['enable', *words])}"
    try:
        made = enable.planned(tree, words)
    except Failure as problem:
        fix = f"{again}, or ceasefire disable {name}"
        return check(name, False, str(problem).partition(":")[0], fix, needed=False)
    found = made.says if made.text == text else "its unit has changed since it was enabled"
    return check(name, made.text == text, found, again, needed=False)
