# SPDX-License-Identifier: GPL-2.0-only
"""Judge a program on the patched kernel, in a virtual machine, without installing anything.

Boots the kernel in QEMU on this machine's files and runs the command in each mode in turn: off,
without ceasefire's mechanisms, and fpr. Checks that it prints the same and ends with the same
status, and shows the shootdowns received, the flushes skipped, or with Sharers to whom they went,
and how the runtimes compare, or why nothing was done. The exit status is 0 when all runs printed
the same, 1 when not, 70 when the guest's kernel complained, 77 when it lacks a mode.
"""

import argparse
import json
import secrets
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ceasefire import modes, paths
from ceasefire.cmdline import add_command, command_of
from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Failure, Unsupported, UsageError
from ceasefire.launch import activation
from ceasefire.launch.executable import missing
from ceasefire.output import progress, say
from ceasefire.text import lines_of
from ceasefire.trial import report, stdin
from ceasefire.trial.agent import Plan
from ceasefire.trial.life import Life
from ceasefire.trial.load import Meter
from ceasefire.trial.report import Setting
from ceasefire.trial.samples import Trial, complete
from ceasefire.vm import GuestResult, GuestSpec, klog, run_guest
from ceasefire.vm.command import masked
from ceasefire.vm.disks import ext4_image, require_directory
from ceasefire.vm.files import run_directory
from ceasefire.vm.spec import (
    ACCELERATORS,
    EMULATOR_HELP,
    STOCK_EMULATOR,
    DiskSpec,
    check_spec,
)

SCHEMA = 2
_MAX_ROUNDS = 1000
# A sample is a line of two KiB at most.
_OUTPUT_LIMIT = 16 << 20
_BOOT_ATTEMPTS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire try`."""
    add = parser.add_argument
    add(
        "--modes",
        default="off,fpr",
        metavar="LIST",
        help=f"{modes.known()}; the others are compared with the first (default: off,fpr)",
    )
    add(
        "--latr",
        dest="modes",
        action="store_const",
        const="off,latr",
        help="the same as --modes off,latr",
    )
    add(
        "--sharers",
        dest="modes",
        action="store_const",
        const="off,sharers",
        help="the same as --modes off,sharers",
    )
    parser.add_argument(
        "--abis",
        dest="modes",
        action="store_const",
        const="off,abis",
        help="the same as --modes off,abis",
    )
    activation.add_arguments(parser)
    add(
        "--data",
        action="append",
        default=[],
        metavar="DIR",
        help="give the guest a copy of DIR on ext4, at the same place; may be repeated",
    )
    add(
        "--rounds", type=int, default=8, metavar="N", help="measured runs of each mode (default: 8)"
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
    """Check what can be checked here, boot, run all rounds, and tell what came of it."""
    command = command_of(args, "ceasefire try --data DIR -- rg --mmap PATTERN DIR")
    if not 1 <= args.rounds <= _MAX_ROUNDS:
        raise UsageError(f"--rounds {args.rounds}: it is 1 to {_MAX_ROUNDS}")
    chosen = modes.parse_list(args.modes)
    if len(chosen) < 2:
        raise UsageError(f"--modes {args.modes}: give two or more, such as off,fpr")
    if problem := missing(command[0]):
        progress(f"ceasefire try: {problem[0]}")
        return problem[1]
    _require_visible(args, command[0])
    how = _activation(args, chosen, command[0])
    specs = _guests(args, chosen)
    with run_directory("try") as folder:
        given = folder / "stdin"
        plan = Plan(
            token=secrets.token_hex(16),
            rounds=args.rounds,
            modes=[],
            sort=args.sort_output,
            limit=how.limit,
            variables=dict(how.variables),
            input=str(given) if stdin.keep(given) else "",
            command=command,
        )
        if any(modes.FPR in mode.mechanisms for mode in chosen):
            progress(f"with FPR {how.text}")
        meter = Meter()
        found = Trial()
        for spec, names in specs:
            result, part = _measure(spec, replace(plan, modes=names))
            status = result.check()
            if status == Unsupported.status:
                reason = next(iter(part.said("text")), "the guest's kernel lacks what it takes")
                raise Unsupported(reason)
            if status != 0 or not complete(part, names, args.rounds):
                raise Failure(_why_incomplete(result, part, status))
            found += part
    first = found.samples[0].status
    if first in (EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND):
        reason = next(iter(found.said("error")), f"exit status {first}")
        progress(f"ceasefire try: the command cannot be run in the guest: {reason}")
        return first
    setting = Setting(
        modes=[mode.name for mode in chosen],
        rounds=args.rounds,
        cpus=args.cpus,
        emulated=result.accel == "tcg",
        load=meter.read(),
    )
    return _tell(args, command, how, found, setting)


def _require_visible(args: argparse.Namespace, program: str) -> None:
    """Refuse a program that the guest does not see: it has empty file systems in some places."""
    path = Path(shutil.which(program) or program).absolute()
    seen = [Path.cwd(), *paths.needed_dirs(), *(Path(text).resolve() for text in args.data)]
    if masked([path]) and not any(path.is_relative_to(folder) for folder in seen):
        raise UsageError(
            f"{path}: the guest has a folder of its own there: call the program from its folder,"
            " or copy it to another place such as /tmp"
        )


def _activation(
    args: argparse.Namespace, chosen: Sequence[modes.Mode], program: str
) -> activation.Activation:
    """Return what makes the program ask for FPR, in the modes that have it."""
    if not any(modes.FPR in mode.mechanisms for mode in chosen):
        return activation.without(args, args.modes, switch=True)
    # The kernel in the guest is ours, and has the switch.
    how = activation.chosen(args, switch=True)
    if why := activation.obstacle(how, program):
        raise UsageError(f"{why}: leave --path and --exclude out")
    return how


def _guests(
    args: argparse.Namespace, chosen: Sequence[modes.Mode]
) -> list[tuple[GuestSpec, list[str]]]:
    """Return the guests, one for each kernel, and the modes that are measured in each.

    Images of data are made once all else is right.
    """
    kernels: dict[str, list[str]] = {}
    for mode in chosen:
        kernels.setdefault(mode.kernel or args.kernel, []).append(mode.name)
    spec = GuestSpec(
        cpus=args.cpus,
        memory=args.memory,
        append=tuple(word for text in args.append for word in text.split()),
        timeout=args.timeout,
        accel=args.accel,
        emulator=args.emulator,
    )
    folders = dict.fromkeys(Path(text).resolve() for text in args.data)
    for directory in folders:
        require_directory(directory)
    for kernel in kernels:
        check_spec(replace(spec, kernel=kernel))
    disks = tuple(
        DiskSpec("image", str(ext4_image(directory)), mount=str(directory)) for directory in folders
    )
    return [(replace(spec, kernel=k, disks=disks), names) for k, names in kernels.items()]


def _measure(spec: GuestSpec, plan: Plan) -> tuple[GuestResult, Trial]:
    """Boot, and return what came of the guest and what it has measured.

    A guest that the emulator has lost is booted again: nothing of it is kept.
    """
    for _ in range(_BOOT_ATTEMPTS - 1):
        result, found = _boot(spec, plan)
        if result.accel != "tcg" or not klog.lost_patch(result.verdict):
            return result, found
        progress(f"the emulator lost a code patch of the guest, once more (log: {result.log})")
    return _boot(spec, plan)


def _boot(spec: GuestSpec, plan: Plan) -> tuple[GuestResult, Trial]:
    progress(f"booting the {spec.kernel} kernel with {spec.cpus} CPUs ...")
    with Life(plan) as life:
        result = run_guest(spec, plan.words(), name="try", stdout=life, limit=_OUTPUT_LIMIT)
    return result, life.reader.found()


def _why_incomplete(result: GuestResult, found: Trial, status: int) -> str:
    words = [*found.said("text"), *lines_of(result.stderr)[-1:]]
    reason = next((word for word in words if word), f"exit status {status}")
    return f"the runs in the guest failed: {reason}; kernel log {result.log}"


def _tell(
    args: argparse.Namespace,
    command: list[str],
    how: activation.Activation,
    found: Trial,
    setting: Setting,
) -> int:
    problem = report.verdict(found, setting.modes)
    if args.json:
        print(json.dumps(_record(args, command, how, found, setting), indent=2))
    else:
        report.tell(found, setting)
        if problem:
            for text in found.said("differ"):
                say(f"  {text}")
            sys.stdout.flush()
            progress(f"ceasefire try: the output differs: {problem}")
        else:
            say("The output is the same in all runs.")
    return 1 if problem else 0


def _record(
    args: argparse.Namespace,
    command: list[str],
    how: activation.Activation,
    found: Trial,
    setting: Setting,
) -> dict[str, object]:
    problem = report.verdict(found, setting.modes)
    return {
        "schema": SCHEMA,
        "command": command,
        "status": found.samples[0].status,
        "environment": {
            "kernel": args.kernel,
            "release": paths.kernel_release(args.kernel),
            "cpus": args.cpus,
            "host_cpus": setting.load.cpus,
            "host_others": round(setting.load.others, 2),
            "host_load": round(setting.load.average, 2),
            "memory": args.memory,
            "accel": "tcg" if setting.emulated else "kvm",
            "way": "preload" if how.variables else "prctl" if how.limit else "",
            "data": args.data,
        },
        "modes": list(setting.modes),
        "same": not problem,
        "problem": problem,
        "doubts": report.doubts(found, setting),
        "summary": report.summary(found, setting),
        "samples": [
            {**asdict(s), "same": s.digest == found.samples[0].digest} for s in found.samples
        ],
    }
