# SPDX-License-Identifier: GPL-2.0-only
"""Check what this machine has, what is missing, and how to fix it.

There are two ways to use ceasefire: here, on a kernel that has it, and in a virtual machine. The
exit status is 0 when at least one of the two has everything it needs, 1 otherwise.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from ceasefire.checks import guest, here
from ceasefire.checks.base import FAIL, PASS, Check
from ceasefire.output import fancy, say
from ceasefire.tables import print_table

SCHEMA = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire doctor`."""
    parser.add_argument("--boot", action="store_true", help="also boot guests, with KVM first")
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(args: argparse.Namespace) -> int:
    """Run all checks and print what they found."""
    groups = {
        "On this kernel": here.checks(),
        "In a virtual machine": guest.checks(boot=args.boot),
    }
    usable = [name for name, checks in groups.items() if complete(checks)]
    if args.json:
        record = {
            "schema": SCHEMA,
            "usable": usable,
            "groups": {name: [asdict(c) for c in checks] for name, checks in groups.items()},
        }
        print(json.dumps(record, indent=2))
        return 0 if usable else 1
    for name, checks in groups.items():
        _print_group(name, checks)
    say(verdict(usable))
    return 0 if usable else 1


def complete(checks: Sequence[Check]) -> bool:
    """Say whether nothing that is needed failed."""
    return all(check.result != FAIL for check in checks if check.needed)


def verdict(usable: Sequence[str]) -> str:
    """Return the last line."""
    if not usable:
        return "Neither way works yet: fix what failed, from the top."
    return "Ready: " + " and ".join(name[0].lower() + name[1:] for name in usable) + "."


def _print_group(name: str, checks: Sequence[Check]) -> None:
    rows = [[check.result, check.name, check.found] for check in checks]
    print_table(["", "check", "found"], rows, title=name, numbers_from=3)
    fixes = [check for check in checks if check.result != PASS and check.fix]
    for check in fixes:
        say(f"  {check.name}: {check.fix}")
    say("")
    if fancy(sys.stdout):
        sys.stdout.flush()
