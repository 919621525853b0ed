# SPDX-License-Identifier: GPL-2.0-only
"""Run a program so that it sends fewer shootdowns: with its file mappings recycled, or otherwise.

Without --path and --exclude the kernel recycles for the program and all that it starts; with them
a preloaded library does, which statically linked programs do not load. With --latr munmap is lazy
instead, of all kinds of memory: other CPUs catch up at their next ticks. With --sharers whatever
takes a flush interrupts only CPUs that have used what is flushed, from the second thread on. --mode
off runs the program without all of them, for comparison. With --shared-tables, in any mode, a
preloaded library makes large shared memory morsels. The exit status is the program's; 77 when this
kernel cannot do it, 126 and 127 as in a shell.
"""

import argparse
import contextlib
import os
import sys

from ceasefire import modes
from ceasefire.cmdline import add_command, command_of
from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Unsupported, UsageError
from ceasefire.launch import activation, prctl, preload, shared
from ceasefire.output import progress, say
from ceasefire.text import quoted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire run`."""
    parser.add_argument(
        "--mode",
        default=modes.FPR.name,
        metavar="MODE",
        help=f"{modes.known()}: what the program runs with (default: {modes.FPR.name})",
    )
    parser.add_argument(
        "--latr",
        dest="mode",
        action="store_const",
        const=modes.LATR.name,
        help="the same as --mode latr: munmap is lazy, whatever is unmapped",
    )
    parser.add_argument(
        "--sharers",
        dest="mode",
        action="store_const",
        const=modes.SHARERS.name,
        help="the same as --mode sharers: flushes go to CPUs that have used what is flushed",
    )
    parser.add_argument(
        "--abis",
        dest="mode",
        action="store_const",
        const=modes.ABIS.name,
        help="the same as --mode abis: no flush for what no CPU can have",
    )
    activation.add_arguments(parser)
    shared.add_arguments(parser)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="say on standard error what treats the files"
    )
    activation.add_context(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be run, and do not run it"
    )
    parser.add_argument(
        "--force", action="store_true", help="run it even where it gets no mechanism"
    )
    add_command(parser)


def main(args: argparse.Namespace) -> int:
    """Become the user's program."""
    command = command_of(args, "ceasefire run -- rg --mmap PATTERN DIR")
    mode = modes.parse(args.mode)
    how = activation_of(args, mode)
    if args.dry_run:
        if how.limit is not None:
            print(f"# prctl(PR_FPR, PR_FPR_SET_AUTO, {how.limit:#x}, 0, 0)")
        if args.context:
            number = prctl.CONTEXTS[args.context]
            print(f"# prctl(PR_FPR, PR_FPR_SET_CONTEXT, {number}, 0, 0)")
        if how.lazy is not None:
            print(f"# prctl(PR_LATR, PR_LATR_SET, {how.lazy:d}, 0, 0)")
        if how.sharers is not None:
            print(f"# prctl(PR_SHARERS, PR_SHARERS_SET, {how.sharers:d}, 0, 0)")
        if how.abis is not None:
            print(f"# prctl(PR_ABIS, PR_ABIS_SET, {how.abis:d}, 0, 0)")
        prefix = ["env", *(f"{k}={v}" for k, v in how.variables.items())] if how.variables else []
        say(quoted([*prefix, *command]))
        return 0
    if not args.force:
        if modes.FPR in mode.mechanisms:
            require_reach(how, args, command[0])
        mode.require()
        if args.shared_tables is not None:
            shared.require(how, command[0])
    if args.verbose:
        progress(f"ceasefire run: {how.text}")
    if warning := activation.warning(command[0], mode.mechanisms):
        progress(f"ceasefire run: {warning}")
    sys.stdout.flush()
    if how.limit is not None:
        with contextlib.suppress(OSError) if args.force else contextlib.nullcontext():
            prctl.set_auto(how.limit)
    if how.lazy is not None:
        with contextlib.suppress(OSError) if args.force else contextlib.nullcontext():
            prctl.set_lazy(on=how.lazy)
    if how.sharers is not None:
        with contextlib.suppress(OSError) if args.force else contextlib.nullcontext():
            prctl.set_sharers(on=how.sharers)
    if how.abis is not None:
        with contextlib.suppress(OSError) if args.force else contextlib.nullcontext():
            prctl.set_abis(on=how.abis)
    if args.context:
        set_context(args)
    try:
        os.execvpe(command[0], command, {**os.environ, **how.variables})
    except FileNotFoundError:
        progress(f"ceasefire run: {command[0]}: command not found")
        return EXIT_NOT_FOUND
    except OSError as error:
        progress(f"ceasefire run: {command[0]}: {error.strerror}")
        return EXIT_NOT_EXECUTABLE


def activation_of(args: argparse.Namespace, mode: modes.Mode) -> activation.Activation:
    """Return how the program is started in a mode."""
    wished = (m in mode.mechanisms for m in (modes.LATR, modes.SHARERS, modes.ABIS))
    lazy, sharers, abis = wished
    activation.check_context(args.context, mode)
    if modes.FPR in mode.mechanisms:
        # A kernel without any FPR is no case for the library: Mode.require() says what it is.
        switch = prctl.available() or not modes.FPR.present()
        inherited = os.environ.get("LD_PRELOAD", "")
        how = activation.chosen(args, switch=switch, inherited_preload=inherited)
    else:
        how = activation.without(args, mode.name, switch=prctl.available())
    # What starts it may have them itself.
    how = activation.of_process(
        how,
        lazy=lazy if lazy or prctl.lazy_available() else None,
        sharers=sharers if sharers or prctl.sharers_available() else None,
        abis=abis if abis or prctl.abis_available() else None,
    )
    if args.shared_tables is None:
        return how
    least = shared.least_of(args.shared_tables)
    return shared.added(how, least, os.environ.get("LD_PRELOAD", ""))


def set_context(args: argparse.Namespace) -> None:
    """Choose who recycles together."""
    try:
        prctl.set_context(args.context)
    except OSError as error:
        if not args.force:
            raise Unsupported(f"--context {args.context}: {error.strerror}") from None


def require_reach(how: activation.Activation, args: argparse.Namespace, program: str) -> None:
    """Raise when the way does nothing for the program."""
    why = activation.obstacle(how, program)
    if how.limit is None and preload.filter_is_on():
        why = "a seccomp filter is on here (a container, a service), so the preload library sleeps"
    if not why:
        return
    if args.path or args.exclude:
        raise UsageError(f"{why}: leave --path and --exclude out")
    raise Unsupported(f"{why}, and this kernel has no prctl(PR_FPR)")
