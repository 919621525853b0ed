# SPDX-License-Identifier: GPL-2.0-only
"""What makes an unchanged program ask for a mechanism; chosen for `ceasefire run` and `try`.

LATR, Sharers and ABIS have a switch of the kernel, see prctl.py. For FPR there are two ways. The
kernel's switch, prctl(PR_FPR), reaches every program, but knows no paths. The preload library
knows paths, but reaches only what the dynamic linker loads.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ceasefire.errors import Unsupported, UsageError
from ceasefire.launch import prctl, preload
from ceasefire.launch.executable import ASAN, binary_of, gains_privileges, preload_obstacle
from ceasefire.modes import FPR, LATR, Mechanism, Mode
from ceasefire.sizes import parse_size


@dataclass(frozen=True)
class Activation:
    """How a program is started.

    limit: for prctl.set_auto(), 0 for a program without FPR; None without the switch.
    lazy: for prctl.set_lazy(); None without the switch.
    sharers: for prctl.set_sharers(); None without the switch.
    abis: for prctl.set_abis(); None without the switch.
    variables: of its environment.
    text: what treats which mappings, for the user.
    """

    text: str
    limit: int | None = None
    lazy: bool | None = None
    sharers: bool | None = None
    abis: bool | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which files are meant."""
    parser.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="GLOB",
        help="files to treat, * matches / too; may be repeated (default: all files)",
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="files to leave alone; may be repeated",
    )
    parser.add_argument(
        "--max-size",
        metavar="SIZE",
        help="leave larger mappings alone, such as 512M or 2G; not with --path or --exclude",
    )


def add_context(parser: argparse.ArgumentParser) -> None:
    """Declare who recycles together."""
    parser.add_argument(
        "--context",
        choices=prctl.CONTEXTS,
        help="who uses the frames again that the program has unmapped (default: process)",
    )


def without(args: argparse.Namespace, mode: str, *, switch: bool) -> Activation:
    """Return how a program is started in a mode that has no FPR; the options make no sense there.

    What starts it may have FPR itself, so that the switch is set.
    """
    given = [name for name in ("path", "exclude", "max_size") if getattr(args, name)]
    if given:
        raise UsageError(f"--{given[0].replace('_', '-')} is for FPR, which mode {mode} has not")
    return Activation("no mapping is treated", limit=0 if switch else None)


def of_process(
    how: Activation,
    *,
    lazy: bool | None,
    sharers: bool | None,
    abis: bool | None = None,
) -> Activation:
    """Return the same with what a process as a whole has or has not."""
    texts = [
        *(["munmap is lazy"] if lazy else []),
        *(["flushes go to CPUs that have used what is flushed"] if sharers else []),
        *(["flushes are for what a CPU can have"] if abis else []),
    ]
    if how.limit or how.variables or not texts:
        texts.insert(0, how.text)
    return replace(how, text=", ".join(texts), lazy=lazy, sharers=sharers, abis=abis)


def check_context(context: str | None, mode: Mode) -> None:
    """Raise when it makes no sense to choose who recycles together in a mode."""
    if context and LATR in mode.mechanisms:
        raise UsageError(f"--context is for FPR alone, and mode {mode.name} is lazy")
    if context and FPR not in mode.mechanisms:
        raise UsageError(f"--context is for FPR, which mode {mode.name} has not")


def chosen(
    args: argparse.Namespace,
    *,
    switch: bool,
    inherited_preload: str = "",
    library: Callable[[], Path] | None = None,
) -> Activation:
    """Return what the options ask for.

    switch: whether the kernel that the program will run on has it.
    library: says where the preload library is, if not among what is built here; asked only if it
    is needed.
    """
    if args.path or args.exclude:
        if args.max_size is not None:
            raise UsageError(
                "--max-size goes with neither --path nor --exclude: "
                "the kernel knows no paths, the preload library no sizes"
            )
        text = "the preload library treats the files that match"
        return Activation(text, variables=_variables(args, inherited_preload, library))
    limit = _limit(args.max_size)
    if switch:
        text = "the kernel treats the mappings of all files"
        if limit != prctl.ALL:
            text += f" up to {args.max_size}"
        return Activation(text, limit)
    if limit != prctl.ALL:
        raise Unsupported("--max-size takes prctl(PR_FPR), which this kernel does not have")
    text = "the preload library treats all files, as this kernel has no prctl(PR_FPR)"
    return Activation(text, variables=_variables(args, inherited_preload, library))


def obstacle(how: Activation, command: str) -> str:
    """Say why it does not reach a program, and what to do; empty if it does."""
    binary = binary_of(command)
    return "" if binary is None else obstacle_of(how, command, binary)


def obstacle_of(how: Activation, command: str, binary: Path) -> str:
    """Say the same of a command whose binary is known."""
    if how.limit is not None:
        return ""
    what = preload_obstacle(binary)
    if not what or (what == ASAN and preload.asan_first(how.variables.get("LD_PRELOAD", ""))):
        return ""
    subject = command if Path(command).name == binary.name else f"{binary} of {command}"
    return f"{subject} is {what}, so no library can be preloaded"


def warning(command: str, mechanisms: Sequence[Mechanism]) -> str:
    """Say if a program loses what it was to have when it starts; empty if not."""
    binary = binary_of(command)
    lost = [m.title for m in mechanisms if not m.for_all()]
    if not lost or binary is None or not gains_privileges(binary):
        return ""
    return (
        f"{command} gains privileges when it starts, so the kernel clears {' and '.join(lost)}: "
        "start `ceasefire run` with these privileges instead"
    )


def _variables(
    args: argparse.Namespace, inherited_preload: str, library: Callable[[], Path] | None
) -> dict[str, str]:
    found = (library or preload.require_library)()
    return preload.variables(found, args.path, args.exclude, inherited_preload)


def _limit(text: str | None) -> int:
    if text is None:
        return prctl.ALL
    if text.isdecimal():
        raise UsageError(f"--max-size {text}: give it a unit, such as {text}M")
    return min(parse_size(text), prctl.ALL)
