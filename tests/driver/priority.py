# SPDX-License-Identifier: GPL-2.0-only
"""Runs commands in the time that others leave: the scheduler's idle policy.

What has it runs when nobody else wants a CPU, and gives it back at once. It also has the largest
nice value: where the scheduler groups by session, a session weighs what that says (keep_nice()).
Called by host.py for jobs of the lane spare, and by lanes.py when that lane is as any other.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

_LEAST = 19
# A process may have started another one meanwhile: as often as that until nothing is found.
_PASSES = 10
_PARENT = 1
_SESSION = 3


def idle(command: list[str]) -> list[str]:
    """Return the words of a command that has only the time which others leave."""
    return ["nice", "-n", str(_LEAST), "chrt", "--idle", "0", *command]


def let_idle(process: "subprocess.Popen[bytes]") -> None:
    """Let a session that has just been started by such a command weigh as little as it."""
    _weigh(process.pid, _LEAST)


def restore() -> None:
    """Let all processes that idle() has started from here run as others do.

    Only root may do that; they stay as they are for others.
    """
    for _ in range(_PASSES):
        found = [pid for pid in _below(os.getpid()) if _is_idle(pid)]
        if not found:
            return
        for pid in found:
            _weigh(_stat(pid)[_SESSION], 0)
            for thread in _threads(pid):
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, thread, 0)
                    os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def _is_idle(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return os.sched_getscheduler(pid) == os.SCHED_IDLE
    return False


def _weigh(session: int, nice: int) -> None:
    # Not on every kernel, gone with a process that has ended, and not so often for every user.
    with contextlib.suppress(OSError):
        Path(f"/proc/{session}/autogroup").write_text(f"{nice}\n", encoding="ascii")


def _threads(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
    return []


def _stat(pid: int) -> list[int]:
    """Return what stands behind the name: state as 0, parent, group, session; nothing if gone."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_bytes().decode(errors="replace")
        return [0, *(int(word) for word in text.rpartition(") ")[2].split()[1:4])]
    return [0] * (_SESSION + 1)


def _below(ancestor: int) -> Iterator[int]:
    """Yield the processes that descend from one."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            pid = int(path.name)
            children.setdefault(_stat(pid)[_PARENT], []).append(pid)
    todo = [ancestor]
    while todo:
        found = children.get(todo.pop(), [])
        todo += found
        yield from found
