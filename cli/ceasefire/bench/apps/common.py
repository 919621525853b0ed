# SPDX-License-Identifier: GPL-2.0-only
"""What all applications need: their options, files with known contents, the measured window."""

import argparse
import contextlib
import hashlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ceasefire import counters, remedies
from ceasefire.errors import Failure
from ceasefire.text import shown

_ENDED_AFTER = 30.0


@dataclass
class Window:
    """What happened while something ran."""

    seconds: float = 0.0
    counters: Mapping[str, int] = field(default_factory=dict)


@contextlib.contextmanager
def window() -> Iterator[Window]:
    """Measure what is done inside: time, and how far the kernel's counters go."""
    found = Window()
    before = counters.of_samples()
    begin = time.monotonic()
    yield found
    found.seconds = time.monotonic() - begin
    found.counters = counters.difference(before, counters.of_samples())


def result(operations: int, found: Window, wrong: int, **more: object) -> None:
    """Print the line of the sample."""
    record = {
        "operations": operations,
        "seconds": found.seconds,
        "rate": operations / found.seconds if found.seconds else 0.0,
        "wrong": wrong,
        "counters": found.counters,
        **more,
    }
    print(json.dumps(record))


def parser(text: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of all applications."""
    options = argparse.ArgumentParser(description=(text or "").partition("\n\n")[0])
    options.add_argument("--seconds", type=float, default=5.0, help="length of the sample")
    options.add_argument("--cpus", type=int, default=2, help="CPUs, and threads of the program")
    options.add_argument("--with", dest="words", default="", help="words in front of the program")
    return options


def add_allocator(options: argparse.ArgumentParser) -> None:
    """Declare the option of programs that are measured with other allocators than their own."""
    add = options.add_argument
    add("--allocator", default="", metavar="FILE", help="a library in place of its own malloc()")


def with_allocator(args: argparse.Namespace, command: Sequence[str]) -> list[str]:
    """Return a command line in which a program gets its allocator, if it is not its own."""
    return [*(["env", f"LD_PRELOAD={args.allocator}"] if args.allocator else []), *command]


def check_allocator(pid: int, args: argparse.Namespace) -> None:
    """Fail if a program does without it: of a library that is not there the linker only warns."""
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    if args.allocator not in maps:
        raise Failure(f"the program runs without {args.allocator}: {remedies.applications()}")


def prefixed(args: argparse.Namespace, command: Sequence[str]) -> list[str]:
    """Return the command line of the program under test."""
    return [*shlex.split(args.words), *command]


def run_python(args: argparse.Namespace, program: str, *words: str) -> None:
    """Run a Python program that prints a list, operations and how many were wrong."""
    command = [sys.executable, "-I", "-c", program, str(args.cpus), str(args.seconds), *words]
    with window() as found:
        done = subprocess.run(prefixed(args, command), capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise Failure(f"python failed with status {done.returncode}: {lines[-1]}")
    operations, wrong = json.loads(done.stdout)
    result(operations, found, wrong)


def make_files(folder: Path, count: int, size: int) -> list[Path]:
    """Make files with pseudo-random contents, the same in each run; quick if they are there."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number:05}" for number in range(count)]
    chance = random.Random(count * 1000003 + size)
    for path in paths:
        data = chance.randbytes(size)
        if not path.is_file() or path.stat().st_size != size:
            path.write_bytes(data)
    return paths


def digest(data: bytes) -> str:
    """Return a short name for some contents."""
    return hashlib.sha256(data).hexdigest()[:16]


@contextlib.contextmanager
def server(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in a process group of its own, which is gone afterwards."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDED_AFTER)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_until(ready: Callable[[], bool], limit: float, why: Callable[[], str]) -> None:
    """Wait for something; fail with a reason when it does not come."""
    end = time.monotonic() + limit
    while not ready():
        if time.monotonic() > end:
            raise Failure(why())
        time.sleep(0.05)


def tail(path: Path) -> str:
    """Return the last lines of a log in one."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "; ".join(line.strip() for line in lines[-3:]) or "it printed nothing"


def run_main(main: Callable[[argparse.Namespace], None], options: argparse.ArgumentParser) -> None:
    """Carry out a module; what fails is one line."""
    try:
        main(options.parse_args())
    except (Failure, OSError, subprocess.SubprocessError) as error:
        print(shown(f"{Path(sys.argv[0]).stem}: {error}"), file=sys.stderr)
        sys.exit(1)
