# SPDX-License-Identifier: GPL-2.0-only
"""Runs a user's program as a child, with the exit status a shell would give it."""

import signal
import subprocess
from collections.abc import Sequence

from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND
from ceasefire.output import progress


def run_command(command: Sequence[str], who: str) -> int:
    """Run a command to its end. Ctrl-C is for the command; we wait for it to decide."""
    # A handler, not SIG_IGN: the command starts with the default action again.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        status = subprocess.Popen(command).wait()
    except FileNotFoundError:
        progress(f"{who}: {command[0]}: command not found")
        return EXIT_NOT_FOUND
    except OSError as error:
        progress(f"{who}: {command[0]}: {error.strerror}")
        return EXIT_NOT_EXECUTABLE
    finally:
        signal.signal(signal.SIGINT, before)
    return status if status >= 0 else 128 - status
