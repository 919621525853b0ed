# SPDX-License-Identifier: GPL-2.0-only
"""Takes the samples of one boot, inside the guest or in place; started by the runner.

Gets a Plan as JSON on standard input, prints a JSON line for each sample as it is done, and one
for what it runs on before them. Nothing else goes to standard output. A command that fails makes
a sample with `failed`, and the next one goes on.

What a sample counts: if the last line that a command prints is a JSON object with `counters`,
those, else what all counters moved by while the command ran. A metric may be a counter then. What
page tables took is seen from here, a few times a second.
"""

import contextlib
import hashlib
import json
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from ceasefire import counters, modes, paths
from ceasefire.bench.apps import limit
from ceasefire.bench.results.store import SCHEMA
from ceasefire.errors import EXIT_UNSUPPORTED
from ceasefire.text import lines_of, shown

_ERROR_LINES = 3
_KEPT = 1 << 20
# Seconds between two looks at what page tables take.
_LOOK_EVERY = 0.25
# Kept as they are printed, if they are.
_LATENCY = ("latency_ns", "histogram")


@dataclass(frozen=True)
class Task:
    """One sample to take. metrics: path of each in the JSON line, by name; see spec.Metric.

    runs_as: the mode that the machine is switched to.
    """

    benchmark: str
    mode: str
    round: int
    command: str
    metrics: Mapping[str, str]
    operations: str
    timeout: float
    runs_as: str = modes.OFF.name


@dataclass(frozen=True)
class Plan:
    """What to do in one boot.

    work: a folder on the disk under test, "" for one in memory. path: where programs are.
    """

    prepare: Sequence[str]
    tasks: Sequence[Task]
    work: str
    path: str

    def words(self) -> list[str]:
        """Return the command line that carries a plan out, which it reads from a file."""
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); "
            "from ceasefire.bench.measure.agent import main; sys.exit(main(sys.argv[2]))"
        )
        return [sys.executable, "-I", "-B", "-c", code, str(paths.package_root())]

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))


def main(path: str) -> int:
    """Carry out the plan in a file."""
    raw = json.loads(Path(path).read_text(encoding="utf-8"))
    plan = Plan(**{**raw, "tasks": [Task(**task) for task in raw["tasks"]]})
    os.environ["PATH"] = plan.path
    for mechanism in {m for task in plan.tasks for m in modes.parse(task.runs_as).mechanisms}:
        if not mechanism.present():
            print(f"this kernel has no {mechanism.title}", file=sys.stderr)
            return EXIT_UNSUPPORTED
        if why := mechanism.obstacle():
            print(f"{mechanism.title} does nothing here: {why}", file=sys.stderr)
            return EXIT_UNSUPPORTED
    base = Path(plan.work) if plan.work else Path(tempfile.gettempdir())
    work = base / "ceasefire-bench"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        emit(environment())
        for command in plan.prepare:
            done = run(command, work, 3600.0)
            if done.status != 0:
                print(f"preparing failed: {shown(done.why())}", file=sys.stderr)
                return 1
        for task in plan.tasks:
            modes.parse(task.runs_as).set_switches()
            emit(sample(task, work))
    finally:
        shutil.rmtree(work, ignore_errors=True)
        limit.remove_group()
    return 0


@dataclass(frozen=True)
class Done:
    """A command that has ended. status: None if it had to be killed.

    out, err: the ends of what it printed. digest: of all of the output.
    """

    status: int | None
    out: bytes
    err: bytes
    digest: str
    seconds: float
    counters: Mapping[str, int]

    def why(self) -> str:
        """Say why it failed."""
        lines = [t for t in lines_of(self.err) if t.strip()]
        ended = "no end in time" if self.status is None else f"exit status {self.status}"
        return "; ".join([*lines[-_ERROR_LINES:], ended])


def run(command: str, work: Path, timeout: float) -> Done:
    """Run a shell command in a process group of its own, of which nothing is left afterwards."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        before = counters.of_samples()
        begin = time.monotonic()
        process = subprocess.Popen(
            ["sh", "-c", command],
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        status: int | None = None
        tables = Tables()
        try:
            status = _wait(process, timeout, tables)
        finally:
            seconds = time.monotonic() - begin
            after = counters.of_samples()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        out.seek(0)
        digest = hashlib.file_digest(out, "sha256").hexdigest()[:16]
        moved = {**counters.difference(before, after), counters.TABLES: tables.most()}
        return Done(status, _end_of(out), _end_of(err), digest, seconds, moved)


class Tables:
    """What page tables take at most while something runs, beyond what they took before."""

    def __init__(self) -> None:
        self._before = self._most = counters.page_tables_kib()

    def look(self) -> None:
        """Look how much it is now."""
        self._most = max(self._most, counters.page_tables_kib())

    def most(self) -> int:
        """Return the most that was seen, in KiB."""
        return self._most - self._before


def _wait(process: subprocess.Popen[bytes], timeout: float, tables: Tables) -> int | None:
    """Wait for the end of a command; return its status, None if it did not end in time."""
    end = time.monotonic() + timeout
    while (left := end - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(left, _LOOK_EVERY))
        tables.look()
    return None


def _end_of(file: IO[bytes]) -> bytes:
    file.seek(max(file.seek(0, os.SEEK_END) - _KEPT, 0))
    return file.read(_KEPT)


def sample(task: Task, work: Path) -> dict[str, Any]:
    """Take one sample and return its record."""
    done = run(task.command, work, task.timeout)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "type": "sample",
        "benchmark": task.benchmark,
        "mode": task.mode,
        "round": task.round,
    }
    if done.status != 0:
        return {**record, "failed": done.why()}
    line = last_object(done.out)
    values = {"seconds": done.seconds, "counters": done.counters, **line}
    try:
        metrics = {name: number(values, path) for name, path in task.metrics.items()}
        operations = number(values, task.operations) if task.operations else 1.0
        wrong = int(number({"wrong": 0, **line}, "wrong"))
        counted = {n: int(number(line, f"counters.{n}")) for n in line.get("counters") or {}}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        return {**record, "failed": f"the command printed no {error} in its last line"}
    return {
        **record,
        "metrics": metrics,
        "operations": operations,
        "wrong": wrong,
        "output": str(values.get("output", done.digest)),
        "run_seconds": round(done.seconds, 6),
        "counters": {**done.counters, **counted},
        **{name: values[name] for name in _LATENCY if name in values},
    }


def last_object(out: bytes) -> dict[str, Any]:
    """Return the JSON object in the last line of an output; an empty one if there is none."""
    try:
        found = json.loads(out.strip().rpartition(b"\n")[2] or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def number(values: Mapping[str, Any], path: str) -> float:
    """Return the number at a path of keys; raise KeyError with the path if there is none."""
    found: Any = values
    for key in path.split("."):
        if not isinstance(found, Mapping) or key not in found:
            raise KeyError(path)
        found = found[key]
    value = float(found)
    if not math.isfinite(value):
        raise ValueError(path)
    return value


def environment() -> dict[str, Any]:
    """Return the record of what the samples behind it are taken on."""
    cpu = "unknown"
    for text in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if text.startswith("model name"):
            cpu = text.partition(":")[2].strip()
            break
    return {
        "schema": SCHEMA,
        "type": "environment",
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "command_line": Path("/proc/cmdline").read_text(encoding="utf-8").strip(),
        "cpu": cpu,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_kib": counters.parse_status(
            Path("/proc/meminfo").read_text(encoding="ascii"), "MemTotal"
        ),
        "mechanisms": [m.name for m in modes.MECHANISMS if m.present()],
    }


def emit(record: Mapping[str, Any]) -> None:
    """Print a record for the runner."""
    print(json.dumps(record), flush=True)
