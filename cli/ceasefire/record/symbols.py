# SPDX-License-Identifier: GPL-2.0-only
"""Finds names of places in files, whatever the files are: each in a process of its own with limits.

A file is read if it is regular and the very one that was mapped. What is at its path may have been
put there by the program that was recorded. The process that reads opens the file, gives up its
rights, and has a limit for memory and for time; it may hang where nothing ends it (in a file
system that does not answer), so nobody waits for it after that. What goes wrong costs the names of
one file and is told; the recording has been written by then.
"""

import contextlib
import ctypes
import json
import mmap
import os
import resource
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from ceasefire import remedies
from ceasefire.files import NotRegular, open_regular
from ceasefire.record.mappings import parse_maps
from ceasefire.record.stacks import Module, Place
from ceasefire.text import decoded

_NOBODY = 65534
_MAX_ANSWER = 32 << 20
_MAX_PLACES = 20000


@dataclass(frozen=True)
class Limits:
    """What reading may take. cpu, seconds: CPU time and time of one file. The others: of all.

    memory: beside what this process has already.
    """

    cpu: int = 15
    seconds: float = 60.0
    all_seconds: float = 180.0
    modules: int = 200
    memory: int = 1 << 30


@dataclass
class Found:
    """Names of places, and of files without names why they have none."""

    names: dict[Place, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def resolve(places: Iterable[Place], limits: Limits | None = None) -> Found:
    """Return the names of places. Ctrl-C ends it early, with what there is."""
    limits = limits or Limits()
    found = Found()
    wanted: dict[Module, set[int]] = {}
    for place in places:
        if place.module is not None:
            wanted.setdefault(place.module, set()).add(place.number)
    end = time.monotonic() + limits.all_seconds
    if not wanted:
        return found
    try:
        # Not where the command line starts, and before anybody gives up rights.
        from ceasefire.record import elf  # noqa: PLC0415
    except ImportError:
        how = remedies.module("python3-pyelftools")
        found.problems["all files"] = f"the Python package pyelftools is missing: {how}"
        return found
    # Those with many places first: they matter most.
    ordered = sorted(wanted.items(), key=lambda item: (-len(item[1]), item[0]))
    try:
        for number, (module, offsets) in enumerate(ordered):
            left = end - time.monotonic()
            if left <= 0 or number >= limits.modules:
                found.problems[module.path] = "there are too many files, or they took too long"
                continue
            some = sorted(offsets)[:_MAX_PLACES]
            own = replace(limits, seconds=min(limits.seconds, left))
            _read_one(elf.read, module, some, own, found)
    except KeyboardInterrupt:
        found.problems["all other files"] = "interrupted"
    return found


Read = Callable[[BinaryIO, Iterable[int]], Iterable[tuple[str, Mapping[int, str]]]]


def _read_one(read: Read, module: Module, offsets: list[int], limits: Limits, found: Found) -> None:
    """Read one file and keep what comes of it."""
    answer, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(answer)
        _read_in_child(read, module, offsets, limits, write)
    os.close(write)
    try:
        text, in_time = _collect(answer, limits.seconds)
    finally:
        os.close(answer)
        _end(pid)
    functions: dict[int, str] = {}
    lines: dict[int, str] = {}
    problem = "" if in_time else "reading it took too long"
    ended = False
    for line in text.split(b"\n"):
        try:
            kind, value = json.loads(line)
        except ValueError:
            continue
        if kind == "problem":
            problem = value
        elif kind == "end":
            ended = True
        else:
            kept = functions if kind == "functions" else lines
            kept.update((int(offset), name) for offset, name in value.items())
    if not problem and not ended:
        problem = "reading it took too much time or memory, or crashed"
    if problem:
        found.problems[module.path] = problem
    for offset, function in functions.items():
        place = Place(module, offset)
        found.names[place] = f"{function} ({lines.get(offset) or module.name})"


def _collect(answer: int, seconds: float) -> tuple[bytes, bool]:
    """Read until the other end is closed; say whether that was in time and of a bearable size."""
    end = time.monotonic() + seconds
    parts: list[bytes] = []
    size = 0
    poll = select.poll()
    poll.register(answer, select.POLLIN)
    while (left := end - time.monotonic()) > 0 and size <= _MAX_ANSWER:
        if not poll.poll(left * 1000):
            break
        chunk = os.read(answer, 1 << 16)
        if not chunk:
            return b"".join(parts), True
        parts.append(chunk)
        size += len(chunk)
    return b"".join(parts), False


def _end(pid: int) -> None:
    """End a process. One that hangs in the kernel is left to it."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    # Only a child that the kernel does not let go of takes longer.
    end = time.monotonic() + 10.0
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < end:
            time.sleep(0.001)


def _read_in_child(
    read: Read, module: Module, offsets: list[int], limits: Limits, write: int
) -> None:
    """Read a file and write lines of JSON; in the child, which ends here."""
    try:
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGALRM):
            signal.signal(name, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        # If nobody is there any more to end us.
        signal.alarm(int(limits.seconds) + 2)
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)

        def say(kind: str, value: object) -> None:
            text = json.dumps([kind, value]).encode() + b"\n"
            while text:
                text = text[os.write(write, text) :]

        try:
            with _opened(module) as file:
                _give_up_rights(limits)
                for kind, values in read(file, offsets):
                    say(kind, dict(_readable(values)) if kind == "functions" else dict(values))
            say("end", 0)
        except MemoryError:
            say("problem", "reading it takes too much memory")
        except RecursionError:
            say("problem", "it is damaged: it leads in circles")
        except OSError as error:
            say("problem", str(error) if error.errno is None else str(error.strerror))
        except Exception as error:
            text = str(error).split("\n")[0][:200] or type(error).__name__
            say("problem", text if type(error).__name__ == "NotReadable" else f"damaged: {text}")
    finally:
        os._exit(0)


def _opened(module: Module) -> BinaryIO:
    """Open the very file that was mapped. Raises OSError with what is wrong."""
    file = None
    # The kernel writes a line feed as \012, and so may be the name itself.
    for path in dict.fromkeys((module.path, module.path.replace("\\012", "\n"))):
        try:
            file = open_regular(path, follow=False)
        except NotRegular:
            raise OSError("another one is there now, no regular file") from None
        except FileNotFoundError:
            continue
        if identity(file) == (module.device, module.inode):
            return file
        file.close()
    if file is None:
        raise OSError("it is not there any more")
    raise OSError("it is not the file that was mapped: replaced, or in another container")


def identity(file: BinaryIO) -> tuple[str, int]:
    """Return device and inode of a file as /proc/PID/maps has them.

    Not all file systems tell the same numbers by stat(). So it is mapped, and not looked at.
    """
    if not os.fstat(file.fileno()).st_size:
        raise OSError("it is empty")
    with mmap.mmap(file.fileno(), 1, access=mmap.ACCESS_COPY) as mapping:
        byte = ctypes.c_char.from_buffer(mapping)
        address = ctypes.addressof(byte)
        del byte
        regions = parse_maps(decoded(Path("/proc/self/maps").read_bytes()))
    found = next((r for r in regions if r.start <= address < r.end), None)
    return (found.device, found.inode) if found is not None else ("", 0)


def _give_up_rights(limits: Limits) -> None:
    for name, wanted in (
        (resource.RLIMIT_AS, _address_space() + limits.memory),
        (resource.RLIMIT_CPU, limits.cpu),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        _, hard = resource.getrlimit(name)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(name, (most, most))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def _address_space() -> int:
    """Return what this process has, in bytes. Of a child that is what its parent had."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * resource.getpagesize()


def _readable(functions: Mapping[int, str]) -> Mapping[int, str]:
    """Return the names of functions of C++ and Rust as the programmer wrote them, if we can."""
    mangled = sorted({name for name in functions.values() if name.startswith(("_Z", "_R"))})
    tool = shutil.which("c++filt")
    if tool is None or not mangled:
        return functions
    lines = [name for name in mangled if name.isprintable() and " " not in name]
    try:
        done = subprocess.run(
            [tool],
            input="".join(f"{name}\n" for name in lines).encode("utf-8", "surrogateescape"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return functions
    texts = decoded(done.stdout).split("\n")[:-1]
    if done.returncode != 0 or len(texts) != len(lines):
        return functions
    plain = dict(zip(lines, texts, strict=True))
    return {offset: plain.get(name, name) for offset, name in functions.items()}
