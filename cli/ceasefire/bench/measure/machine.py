# SPDX-License-Identifier: GPL-2.0-only
"""What only the host knows of a measurement: its CPUs, the commit, the accelerator, the day."""

import os
import subprocess
from datetime import UTC, datetime

from ceasefire import paths, remedies
from ceasefire.errors import EXIT_UNSUPPORTED, EXIT_USAGE, Failure, Unsupported, UsageError
from ceasefire.vm import GuestSpec
from ceasefire.vm.guest import accelerator


def host_record(command: str, **facts: object) -> dict[str, object]:
    """Return the line that the host writes before the lines of one guest or in-place run."""
    return {
        "type": "host",
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "host_cpus": host_cpus(),
        **facts,
    }


def guest_record(command: str, spec: GuestSpec) -> dict[str, object]:
    """Return that line for a guest that this machine emulates: its times compare with nothing."""
    return host_record(
        command,
        where=f"in a guest with {spec.cpus} CPUs",
        accel=accelerator(spec),
        kernel_kind=spec.kernel,
        cpus=spec.cpus,
        comparable=False,
    )


def host_cpus() -> int:
    """Return the number of CPUs this process may run on."""
    return len(os.sched_getaffinity(0))


def commit() -> str:
    """Return the commit of the checkout, '+' when files differ from it, '' when not known."""
    root = paths.checkout()
    if root is None:
        return ""
    git = ["git", "-c", f"safe.directory={root}", "-C", str(root)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changes = subprocess.run(
            [*git, "status", "--porcelain"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changes else "")


def judge(status: int, stderr: str) -> None:
    """Raise what the exit status of a benchmark program means; its own last line says why."""
    if status == 0:
        return
    line = next((text for text in reversed(stderr.split("\n")) if text.strip()), "")
    why = line or f"the benchmark failed with status {status}"
    if status == EXIT_UNSUPPORTED:
        # Where it is the machine that lacks something, no kernel helps.
        hint = f": {remedies.kernel('run')}" if "kernel has no" in why else ""
        raise Unsupported(f"{why}{hint}")
    if status == EXIT_USAGE:
        raise UsageError(why)
    raise Failure(why)
