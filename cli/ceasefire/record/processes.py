# SPDX-License-Identifier: GPL-2.0-only
"""The processes that are recorded: starting one that waits for us, and looking at those there are.

A process may end at any time, so looking returns nothing then.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Failure
from ceasefire.record.mappings import Region, parse_maps
from ceasefire.text import decoded

# They send shootdowns for all programs: reclaim, compaction, huge pages, merging.
_KERNEL_THREADS = ("kswapd", "kcompactd", "khugepaged", "ksmd")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MAX_PROCESSES = 64
_MAX_MAPS = 8 << 20


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
        self._asked = False
        # A signal that comes before the child has its own actions is for the child, too.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _become(words, gate, answer, (self._gate, self._answer), before)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(gate)
        os.close(answer)

    def release(self, noted: int = -1) -> int:
        """Let it execute the program; return why it could not, an errno, or 0.

        noted: a file that can be read when a signal has come; then nobody waits any longer.
        """
        with contextlib.suppress(BrokenPipeError):
            os.write(self._gate, b"x")
        os.close(self._gate)
        poll = select.poll()
        for number in (self._answer, *([noted] if noted >= 0 else [])):
            poll.register(number, select.POLLIN)
        ready = [number for number, _ in poll.poll()]
        text = os.read(self._answer, 16) if self._answer in ready else b""
        os.close(self._answer)
        return int(text) if text else 0

    def ended(self, signals: list[int]) -> bool:
        """Say whether it has ended. A signal to end us, other than Ctrl-C, is passed on to it.

        The second one ends it: it did not listen to the first.
        """
        while signals:
            number = signals.pop()
            if number != signal.SIGINT:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL if self._asked else number)
                    # It may have stopped itself.
                    os.kill(self.pid, signal.SIGCONT)
                self._asked = True
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


def _become(
    words: Sequence[str],
    gate: int,
    answer: int,
    others: Sequence[int],
    mask: Iterable[signal.Signals | int],
) -> None:
    """Wait, and execute the program; in the child."""
    try:
        for number in others:
            os.close(number)
        signal.set_wakeup_fd(-1)
        for name in (*_SIGNALS, signal.SIGPIPE):
            signal.signal(name, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
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
        return decoded(Path(f"/proc/{pid}/comm").read_bytes()).removesuffix("\n")
    except OSError:
        return ""


def alive(pid: int) -> bool:
    """Say whether a process is there, and has not just ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2]
    except OSError:
        return False
    return text.split()[:1] not in ([b"Z"], [b"X"], [])


def threads(pid: int) -> list[int]:
    """Return the threads of a process."""
    try:
        return [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def maps_of(pid: int) -> list[Region]:
    """Return the mappings of a process, so many as are worth it; none if it has gone."""
    try:
        with Path(f"/proc/{pid}/maps").open("rb") as file:
            return parse_maps(decoded(file.read(_MAX_MAPS)))
    except OSError:
        return []


def tree(roots: Sequence[int]) -> list[int]:
    """Return processes and what they have started, so many as are worth looking at."""
    found: list[int] = []
    for root in roots:
        if len(found) < _MAX_PROCESSES:
            found += [pid for pid in descendants(root, _MAX_PROCESSES) if pid not in found]
    return found[:_MAX_PROCESSES]


def descendants(pid: int, most: int) -> list[int]:
    """Return a process and its children of all generations, at most so many: it may fork on."""
    found = [pid]
    for one in found:
        for tid in threads(one):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{one}/task/{tid}/children").read_text(encoding="ascii")
                found += [int(word) for word in text.split()]
            if len(found) >= most:
                return found[:most]
    return found
