# SPDX-License-Identifier: GPL-2.0-only
"""Run a program with its file mappings recycled, so that unmapping them sends no shootdowns.

The exit status is the program's; 77 when this kernel cannot do it, 126 and 127 as in a shell.
"""

import argparse
import os
import shlex
import sys

from ceasefire import counters, paths, preload
from ceasefire.cmdline import add_command, command_of
from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Unsupported


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire run`."""
    add_path_arguments(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be run, and do not run it"
    )
    parser.add_argument(
        "--force", action="store_true", help="run it even where the kernel has no FPR or it is off"
    )
    add_command(parser)


def add_path_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which files are meant; shared with `ceasefire try`."""
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


def main(args: argparse.Namespace) -> int:
    """Become the user's program."""
    command = command_of(args, "ceasefire run -- rg --mmap PATTERN DIR")
    library = paths.require_preload_library()
    extra = preload.variables(library, args.path, args.exclude, os.environ.get("LD_PRELOAD", ""))
    if args.dry_run:
        print(shlex.join(["env", *(f"{k}={v}" for k, v in extra.items()), *command]))
        return 0
    if not args.force:
        require_fpr()
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, {**os.environ, **extra})
    except FileNotFoundError:
        print(f"ceasefire run: {command[0]}: command not found", file=sys.stderr)
        return EXIT_NOT_FOUND
    except OSError as error:
        print(f"ceasefire run: {command[0]}: {error.strerror}", file=sys.stderr)
        return EXIT_NOT_EXECUTABLE


def require_fpr() -> None:
    """Raise when the running kernel cannot recycle file mappings now."""
    if not counters.supported():
        raise Unsupported(
            "this kernel has no FPR: boot the ceasefire kernel, or use `ceasefire try`"
        )
    if not counters.enabled():
        raise Unsupported(f"FPR is switched off: echo 1 > {counters.SYSFS}/fpr/enabled")
