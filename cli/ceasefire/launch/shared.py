# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire run --shared-tables`: shared memory of an unchanged program becomes morsels."""

import argparse
from dataclasses import replace

from ceasefire.errors import Unsupported, UsageError
from ceasefire.launch import preload
from ceasefire.launch.activation import Activation
from ceasefire.launch.executable import ASAN, binary_of, gains_privileges, preload_obstacle
from ceasefire.modes import MORSEL
from ceasefire.sizes import parse_size

OPTION = "--shared-tables"
# Below, page tables are few, and a morsel takes whole units of 2 MiB.
_LEAST = "8M"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        OPTION,
        nargs="?",
        const=_LEAST,
        metavar="SIZE",
        help="let shared memory of SIZE and more be morsels, which have one set of page tables for "
        f"all processes of the program (default: {_LEAST})",
    )


def least_of(text: str) -> int:
    """Return the bytes of SIZE, which has a unit."""
    if text.isdecimal():
        raise UsageError(f"{OPTION}={text}: give it a unit, such as {text}M")
    return parse_size(text)


def added(how: Activation, least: int, inherited_preload: str = "") -> Activation:
    """Return the same, with shared memory of least bytes and more as morsels."""
    # The library is there already if it treats files.
    inherited = "" if how.variables else inherited_preload
    found = preload.shared_tables(preload.require_library(), least, inherited)
    text = f"{how.text}, shared memory is morsels"
    return replace(how, text=text, variables={**found, **how.variables})


def require(how: Activation, program: str) -> None:
    """Raise when it does nothing for the program here."""
    if not MORSEL.present():
        raise Unsupported(f"{OPTION}: this kernel has no morsels: see `ceasefire doctor`")
    if not MORSEL.enabled():
        raise Unsupported(f"{OPTION}: morsels are switched off: echo ask > {MORSEL.switch}")
    if preload.filter_is_on():
        raise Unsupported(
            f"{OPTION}: a seccomp filter is on here (a container, a service), so the preload "
            "library sleeps"
        )
    binary = binary_of(program)
    if binary is None:
        return
    if gains_privileges(binary):
        raise UsageError(f"{program} gains privileges when it starts: leave {OPTION} out")
    what = preload_obstacle(binary)
    if what and not (what == ASAN and preload.asan_first(how.variables.get("LD_PRELOAD", ""))):
        raise UsageError(f"{program} is {what}, so no library can be preloaded: leave {OPTION} out")
