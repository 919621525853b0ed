# SPDX-License-Identifier: GPL-2.0-only
"""Runs a command while NUMA balancing looks at its memory many times a second.

The kernel begins a second after a program has, and then looks once a second at most: a sample would
be over. What is changed here is changed back when the command has ended. A machine with one node,
and a command of which no page was looked at, are failures: they would measure nothing. It needs
root.
"""

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ceasefire import counters
from ceasefire.errors import Failure
from ceasefire.text import shown

_SWITCH = Path("/proc/sys/kernel/numa_balancing")
_NODES = Path("/sys/devices/system/node")
_DEBUG = Path("/sys/kernel/debug")
_PERIODS = _DEBUG / "sched/numa_balancing"
# The kernel's counter of entries that it has made hints.
_HINTS = "numa_pte_updates"


def main(args: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    if not args.command:
        raise Failure("which command? Give it after --")
    if args.period < 1:
        raise Failure("--period is at least 1 ms")
    if nodes() < 2:
        raise Failure("this machine has one NUMA node: there is nothing to balance")
    with settings(args.period):
        before = counters.of_samples().get(_HINTS, 0)
        status = subprocess.run(args.command, check=False).returncode
        if not status and counters.of_samples().get(_HINTS, 0) == before:
            raise Failure("NUMA balancing has not looked at a page: the command was too short")
    return status if status >= 0 else 128 - status


def nodes() -> int:
    """Return the number of NUMA nodes of this machine."""
    return max(1, len(list(_NODES.glob("node[0-9]*"))))


@contextlib.contextmanager
def settings(period: int) -> Iterator[None]:
    """Balance, with a look at all memory every so many milliseconds, until the end."""
    if not _PERIODS.is_dir():
        subprocess.run(["mount", "-t", "debugfs", "none", str(_DEBUG)], check=True)
    wanted = {
        _SWITCH: 1,
        # Each of them is at most the next one at any time.
        _PERIODS / "scan_delay_ms": period,
        _PERIODS / "scan_period_min_ms": period,
        _PERIODS / "scan_period_max_ms": 4 * period,
    }
    old = {path: path.read_text(encoding="ascii") for path in wanted}
    try:
        for path, value in wanted.items():
            path.write_text(f"{value}\n", encoding="ascii")
        yield
    finally:
        for path, text in reversed(old.items()):
            path.write_text(text, encoding="ascii")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    options.add_argument("--period", type=int, default=20, metavar="MS", help="(default: 20)")
    options.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    return options


def _run() -> int:
    args = _options().parse_args()
    args.command = args.command[1:] if args.command[:1] == ["--"] else args.command
    try:
        return main(args)
    except (Failure, OSError, subprocess.SubprocessError) as error:
        print(shown(f"balancing: {error}"), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(_run())
