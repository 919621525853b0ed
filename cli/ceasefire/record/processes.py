# SPDX-License-Identifier: GPL-2.0-only
"""The processes that are recorded: starting one that waits for us, and looking at those there are.

A process may end at any time, so looking returns nothing then.
"""

import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Failure
from ceasefire.record.mappings import Region, parse_maps

# They send shootdowns for all programs: reclaim, compaction, huge pages, merging.
_KERNEL_THREADS = ("kswapd", "kcompactd", "khugepaged", "ksmd")
_MAX_PROCESSES = 64


class NotStarted(Failure):
    """The command cannot be executed."""

    def __init__(self, name: str, number: int) -> None:
        """number: errno."""
        missing = number == 2
        text = "command not found" if missing else os.strerror(number)
        super().__init__(f"{name}: {text}")
        self.status = EXIT_NOT_FOUND if missing else EXIT_NOT_EXECUTABLE


class Child:
    """The user's program, which waits to be released before it is executed."""

    def __init__(self, words: Sequence[str]) -> None:
        """Fork."""
        gate, self._gate = os.pipe()
        self._answer, answer = os.pipe()
        self.status = 0
        self._alive = True
        self.pid = os.fork()
        if self.pid == 0:
            _become(words, gate, answer, (self._gate, self._answer))
        os.close(gate)
        os.close(answer)

    def release(self) -> int:
        """Let it execute the program; return why it could not, an errno, or 0."""
        os.write(self._gate, b"x")
        os.close(self._gate)
        text = os.read(self._answer, 16)
        os.close(self._answer)
        return int(text) if text else 0

    def ended(self, signals: list[int]) -> bool:
        """Say whether it has ended. A signal to end us, other than Ctrl-C, is passed on to it."""
        while signals:
            number = signals.pop()
            if number != signal.SIGINT:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return False
        code = os.waitstatus_to_exitcode(status)
        self.status = code if code >= 0 else 128 - code
        self._alive = False
        return True

    def kill(self) -> None:
        """End it if it is still there."""
        if self._alive:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)


def _become(words: Sequence[str], gate: int, answer: int, others: Sequence[int]) -> None:
    """Wait, and execute the program; in the child."""
    try:
        for number in others:
            os.close(number)
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(name, signal.SIG_DFL)
        if os.read(gate, 1):
            os.execvp(words[0], list(words))
    except OSError as error:
        os.write(answer, str(error.errno).encode())
    finally:
        os._exit(EXIT_NOT_FOUND)


def kernel_threads() -> list[int]:
    """Return the threads of the kernel that take memory from programs."""
    return [pid for pid in _pids() if name_of(pid).startswith(_KERNEL_THREADS) and not _exe(pid)]


def _exe(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def name_of(pid: int) -> str:
    """Return the name of a process; empty if it has gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def alive(pid: int) -> bool:
    """Say whether a process is there, and has not just ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def threads(pid: int) -> list[int]:
    """Return the threads of a process."""
    try:
        return [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def maps_of(pid: int) -> list[Region]:
    """Return the mappings of a process; none if it has gone."""
    try:
        text = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return parse_maps(text)


def tree(roots: Sequence[int]) -> list[int]:
    """Return processes and what they have started, so many as are worth looking at."""
    found: list[int] = []
    for root in roots:
        found += [pid for pid in descendants(root) if pid not in found]
    return found[:_MAX_PROCESSES]


def descendants(pid: int) -> list[int]:
    """Return a process and its children of all generations."""
    found = [pid]
    for one in found:
        for tid in threads(one):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{one}/task/{tid}/children").read_text(encoding="ascii")
                found += [int(word) for word in text.split()]
    return found
