# SPDX-License-Identifier: GPL-2.0-only
"""Judge a program on the patched kernel, in a virtual machine, without installing anything.

Boots the kernel in QEMU on this machine's files and runs the command without and with FPR in
turn. Checks that it prints the same and ends with the same status, and shows the shootdowns
received, the flushes skipped and how the runtimes compare. The exit status is 0 when all runs
printed the same, 1 when not, 70 when the guest's kernel complained, 77 when it has no FPR.
"""

import argparse
import json
import os
import secrets
import sys
from dataclasses import asdict, replace
from pathlib import Path

from ceasefire import paths
from ceasefire.cmdline import add_command, command_of
from ceasefire.counters import RECEIVED, SKIPPED
from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Failure, Unsupported, UsageError
from ceasefire.launch import activation
from ceasefire.output import print_table, progress, say
from ceasefire.text import lines_of
from ceasefire.trial import samples as trial
from ceasefire.trial.agent import Plan
from ceasefire.vm import GuestResult, GuestSpec, run_guest
from ceasefire.vm.disks import ext4_image
from ceasefire.vm.spec import (
    ACCELERATORS,
    EMULATOR_HELP,
    STOCK_EMULATOR,
    DiskSpec,
    check_spec,
)

SCHEMA = 1
_MAX_ROUNDS = 1000
# A sample is a line of two KiB at most.
_OUTPUT_LIMIT = 16 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire try`."""
    activation.add_arguments(parser)
    add = parser.add_argument
    add(
        "--data",
        action="append",
        default=[],
        metavar="DIR",
        help="give the guest a copy of DIR on ext4, at the same place; may be repeated",
    )
    add(
        "--rounds", type=int, default=5, metavar="N", help="measured runs of each kind (default: 5)"
    )
    add(
        "--sort-output",
        action="store_true",
        help="compare sorted lines, for programs that print in any order",
    )
    add("--cpus", type=int, default=2, metavar="N", help="virtual CPUs (default: 2)")
    add("--memory", default="2G", metavar="SIZE", help="memory (default: 2G)")
    add(
        "--kernel",
        default="run",
        metavar="KIND",
        help="run, debug or the path of a bzImage (default: run)",
    )
    add(
        "--accel",
        choices=ACCELERATORS,
        default="auto",
        help="auto uses KVM when a guest really boots with it",
    )
    add(
        "--emulator",
        default=STOCK_EMULATOR,
        metavar="NAME",
        help=EMULATOR_HELP,
    )
    add(
        "--append",
        action="append",
        default=[],
        metavar="ARGS",
        help="kernel arguments; may be repeated",
    )
    add(
        "--timeout",
        type=float,
        default=1800.0,
        metavar="SEC",
        help="kill the guest after this long (default: 1800)",
    )
    add("--json", action="store_true", help="print JSON")
    add_command(parser)


def main(args: argparse.Namespace) -> int:
    """Boot, run all rounds, and tell what came of it."""
    command = command_of(args, "ceasefire try --data DIR -- rg --mmap PATTERN DIR")
    if not 1 <= args.rounds <= _MAX_ROUNDS:
        raise UsageError(f"--rounds {args.rounds}: it is 1 to {_MAX_ROUNDS}")
    # The kernel in the guest is ours, and has the switch.
    how = activation.chosen(args, switch=True)
    if why := activation.obstacle(how, command[0]):
        raise UsageError(f"{why}: leave --path and --exclude out")
    spec = _guest(args)
    result, found = _boot(spec, args, command, how)
    status = result.check()
    if status == Unsupported.status:
        raise Unsupported(f"the '{args.kernel}' kernel has no FPR: build one with `make kernel`")
    if status != 0 or not trial.complete(found, args.rounds):
        words = [*found.texts, *lines_of(result.stderr.strip())]
        reason = next((word for word in words if word), f"exit status {status}")
        raise Failure(f"the runs in the guest failed: {reason}; kernel log {result.log}")
    first = found.samples[0].status
    if first in (EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND):
        reason = found.texts[0] if found.texts else f"exit status {first}"
        progress(f"ceasefire try: the command cannot be run in the guest: {reason}")
        return first
    problem = trial.verdict(found)
    if args.json:
        print(json.dumps(_record(args, command, result, found, problem, how=how), indent=2))
    else:
        _tell(args, result, found, problem)
    return 1 if problem else 0


def _guest(args: argparse.Namespace) -> GuestSpec:
    """Return the guest, with the disks still missing: images are made once all else is right."""
    spec = GuestSpec(
        kernel=args.kernel,
        cpus=args.cpus,
        memory=args.memory,
        append=tuple(word for text in args.append for word in text.split()),
        timeout=args.timeout,
        accel=args.accel,
        emulator=args.emulator,
    )
    check_spec(spec)
    disks = []
    for directory in dict.fromkeys(Path(text).resolve() for text in args.data):
        disks.append(DiskSpec("image", str(ext4_image(directory)), mount=str(directory)))
    return replace(spec, disks=tuple(disks))


def _boot(
    spec: GuestSpec, args: argparse.Namespace, command: list[str], how: activation.Activation
) -> tuple[GuestResult, trial.Trial]:
    """Boot, and return what came of the guest and what it has measured."""
    progress(f"with FPR {how.text}")
    progress(f"booting the {args.kernel} kernel with {spec.cpus} CPUs ...")
    token = secrets.token_hex(16)
    reader = trial.Reader(token)
    told = 0

    def listen(chunk: bytes) -> None:
        nonlocal told
        reader(chunk)
        rounds = sum(sample.mode == trial.ON for sample in reader.found().samples)
        while told < rounds:
            what = "warmed up" if told == 0 else f"round {told} of {args.rounds} done"
            progress(f"{what}")
            told += 1

    plan = Plan(token, args.rounds, args.sort_output, how.limit, dict(how.variables), command)
    result = run_guest(spec, plan.words(), name="try", stdout=listen, limit=_OUTPUT_LIMIT)
    return result, reader.found()


def _tell(args: argparse.Namespace, result: GuestResult, found: trial.Trial, problem: str) -> None:
    emulated = result.accel == "tcg"
    crowded = emulated and args.cpus > (os.cpu_count() or 1)
    rows = trial.rows(found, relative=emulated, timed=not crowded)
    title = f"{args.rounds} rounds, median (least..greatest), {args.cpus} CPUs, "
    title += "emulated by QEMU" if emulated else "KVM"
    print_table(["", "without FPR", "with FPR", "compared"], rows, title=title)
    if emulated:
        say("The CPUs are emulated: only counts and ratios carry over to real ones.")
    if crowded:
        say("There are more virtual CPUs than real ones: runtimes would mean nothing.")
    if not found.spread(trial.ON, SKIPPED).greatest:
        why = ", ".join(trial.obstacles(found)) or "no file was mapped with it"
        say(f"FPR skipped nothing: {why}.")
    status = found.samples[0].status
    if status:
        say(f"The program ended with status {status} in the first run.")
    for text in found.texts:
        say(f"  {text}")
    if problem:
        sys.stdout.flush()
        progress(f"ceasefire try: the output differs: {problem}")
    else:
        say("The output is the same in all runs.")


def _record(
    args: argparse.Namespace,
    command: list[str],
    result: GuestResult,
    found: trial.Trial,
    problem: str,
    *,
    how: activation.Activation,
) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "command": command,
        "environment": {
            "kernel": args.kernel,
            "release": paths.kernel_release(args.kernel),
            "cpus": args.cpus,
            "host_cpus": os.cpu_count(),
            "memory": args.memory,
            "accel": result.accel,
            "way": "preload" if how.limit is None else "prctl",
            "data": args.data,
        },
        "same": not problem,
        "problem": problem,
        "summary": {
            "received_off": found.spread(trial.OFF, RECEIVED).median,
            "received_on": found.spread(trial.ON, RECEIVED).median,
            "skipped_on": found.spread(trial.ON, SKIPPED).median,
            "ratio_off_on": found.runtime(trial.OFF).median / found.runtime(trial.ON).median,
        },
        "samples": [asdict(sample) for sample in found.samples],
    }
