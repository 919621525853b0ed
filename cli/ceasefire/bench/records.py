# SPDX-License-Identifier: GPL-2.0-only
"""The JSON lines of the benchmark programs, and the record of what they were measured on.

Every results file is a list of such lines; `environment` and `host` lines say what the lines
behind them were measured on.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ceasefire import paths
from ceasefire.errors import Failure

SCHEMA = 1
# What a line raises that is JSON, and not ours.
_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, OverflowError)


@dataclass(frozen=True)
class Tally:
    """Operations of one kind in one sample, over all threads that did them."""

    threads: int
    ops: int
    rate: float


@dataclass(frozen=True)
class MunmapSample:
    """One sample of munmap-bench. `cpus` and `comparable` come from the host line before it."""

    case: int
    mode: str
    round: int
    processes: int
    threads: int
    pages: int
    cpus: int
    comparable: bool
    wrong: int
    seconds: float
    io: Tally
    compute: Tally
    counters: Mapping[str, int]


@dataclass(frozen=True)
class CycleSample:
    """One sample of cycle-bench."""

    kernel: str
    boot: int
    case: str
    variant: str
    ns_per_op: float


def host_record(command: str, **facts: object) -> dict[str, object]:
    """Return the line that the host writes before the lines of one guest or in-place run."""
    return {
        "schema": SCHEMA,
        "type": "host",
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "host_cpus": host_cpus(),
        **facts,
    }


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


def parse_lines(text: str) -> list[dict[str, Any]]:
    """Return the records of a results file; refuse what another version wrote."""
    records = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise Failure(f"this is not a line of a results file: {line[:60]}") from None
        if not isinstance(record, dict) or record.get("schema") != SCHEMA:
            raise Failure(f"the results are not of format {SCHEMA}: {line[:60]}")
        records.append(record)
    return records


def read_file(path: Path) -> list[dict[str, Any]]:
    """Return the records of a results file."""
    try:
        return parse_lines(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"cannot read {path}: {error}") from None


def munmap_samples(records: Iterable[Mapping[str, Any]]) -> list[MunmapSample]:
    """Return the samples of munmap-bench among the records."""
    try:
        return _munmap_samples(records)
    except _MALFORMED as error:
        raise Failure(f"the results of munmap-bench are damaged: {error}") from None


def _munmap_samples(records: Iterable[Mapping[str, Any]]) -> list[MunmapSample]:
    samples = []
    cpus, comparable = 0, False
    for record in records:
        if record["type"] == "host":
            cpus, comparable = int(record["cpus"]), bool(record["comparable"])
        elif record["type"] == "munmap":
            samples.append(
                MunmapSample(
                    case=int(record["case"]),
                    mode=str(record["mode"]),
                    round=int(record["round"]),
                    processes=int(record["processes"]),
                    threads=int(record["threads"]),
                    pages=int(record["pages"]),
                    cpus=cpus,
                    comparable=comparable,
                    wrong=int(record["wrong"]),
                    seconds=int(record["ns"]) / 1e9,
                    io=_tally(record["io"]),
                    compute=_tally(record["compute"]),
                    counters={str(k): int(v) for k, v in record["counters"].items()},
                )
            )
    return samples


def cycle_samples(records: Iterable[Mapping[str, Any]]) -> list[CycleSample]:
    """Return the samples of cycle-bench among the records."""
    try:
        return _cycle_samples(records)
    except _MALFORMED as error:
        raise Failure(f"the results of cycle-bench are damaged: {error}") from None


def _cycle_samples(records: Iterable[Mapping[str, Any]]) -> list[CycleSample]:
    samples = []
    kernel, boot = "", 0
    for record in records:
        if record["type"] == "host":
            kernel, boot = str(record["kernel_kind"]), int(record["boot"])
        elif record["type"] == "cycle":
            samples.append(
                CycleSample(
                    kernel=kernel,
                    boot=boot,
                    case=str(record["case"]),
                    variant=str(record["variant"]),
                    ns_per_op=float(record["ns_per_op"]),
                )
            )
    return samples


def _tally(record: Mapping[str, Any]) -> Tally:
    return Tally(int(record["threads"]), int(record["ops"]), float(record["rate"]))
