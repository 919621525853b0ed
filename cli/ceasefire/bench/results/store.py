# SPDX-License-Identifier: GPL-2.0-only
"""Results: a folder with JSON lines, written as they come, so that an interrupted run keeps what it
has and goes on with the rest.

Lines, by `type`: `suite` (what was to be measured; first of each start), `host` (one boot: guest
and machine), `environment` (what the agent found in it), `sample`. docs/benchmark.md has the
fields.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ceasefire import modes, paths
from ceasefire.errors import Failure, UsageError

LINES = "samples.jsonl"
# Of all lines; raised when a field changes.
SCHEMA = 2
# What modes were called before there were several mechanisms.
_RENAMED = {"on": modes.FPR.name}
# What a line raises that is JSON, and not ours.
MALFORMED = (ValueError, TypeError, KeyError, AttributeError, OverflowError)

Key = tuple[str, int, str, int]
"""What a sample is of: benchmark, CPUs, mode, round."""


def works(mode: str) -> bool:
    """Say whether a mechanism works in a mode; none does in those that are used instead."""
    try:
        return bool(modes.parse(mode).mechanisms)
    except UsageError:
        return False


@dataclass(frozen=True)
class Sample:
    """One sample with the boot it was taken in. metrics are empty when it failed.

    histogram: operations by the least time of their bucket in nanoseconds, empty if the benchmark
    has none; see latency.py. kernel_kind: of the guest, "" in place.
    """

    benchmark: str
    mode: str
    round: int
    cpus: int
    comparable: bool
    metrics: Mapping[str, float]
    operations: float
    wrong: int
    output: str
    counters: Mapping[str, int]
    latency_ns: Mapping[str, float]
    failed: str
    histogram: Mapping[int, int] = field(default_factory=dict)
    kernel_kind: str = ""

    @property
    def key(self) -> Key:
        """What it is a sample of."""
        return (self.benchmark, self.cpus, self.mode, self.round)


@dataclass(frozen=True)
class Results:
    """All that a folder has. Of samples that were taken twice, the last one counts."""

    suite: Mapping[str, Any]
    hosts: tuple[Mapping[str, Any], ...]
    environments: tuple[Mapping[str, Any], ...]
    samples: tuple[Sample, ...]

    def done(self) -> set[Key]:
        """Return what need not be measured again."""
        return {sample.key for sample in self.samples if not sample.failed}


class Folder:
    """A folder of results that is written to."""

    def __init__(self, chosen: str | None, name: str, *, fresh: bool = False) -> None:
        """Make it. chosen: the --out of the user, None for a new folder of that name.

        fresh: results that are there are no beginning of these.
        """
        if chosen is None:
            stamp = time.strftime("%Y%m%d-%H%M%S")
            self.path = paths.build_dir() / "bench" / f"{name}-{stamp}"
        else:
            self.path = Path(chosen).absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--out {self.path}: {error.strerror}") from None
        self.lines = self.path / LINES
        if fresh and self.exists():
            raise UsageError(f"--out {self.path}: there are results already, choose another folder")

    def exists(self) -> bool:
        """Say whether there are results already."""
        return self.lines.is_file()

    def add(self, record: Mapping[str, Any]) -> None:
        """Append one line."""
        with self.lines.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"schema": SCHEMA, **record}) + "\n")


def read(folder: Path) -> Results:
    """Read a folder."""
    path = folder / LINES
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise UsageError(f"{folder} has no results: {path.name}: {error.strerror}") from None
    return parse(text.split("\n"), str(path))


def parse(lines: Iterable[str], where: str = "results") -> Results:
    """Read the lines of a results file. A last line that was cut off is left out."""
    suite: dict[str, Any] = {}
    hosts: list[dict[str, Any]] = []
    environments: list[dict[str, Any]] = []
    samples: dict[Key, Sample] = {}
    texts = [line for line in lines if line.strip()]
    for number, line in enumerate(texts, 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(texts):
                break
            raise Failure(f"{where}: line {number} is not JSON") from None
        if not isinstance(record, dict) or record.get("schema") != SCHEMA:
            raise Failure(f"{where}: line {number} is not of format {SCHEMA}")
        if not isinstance(record.get("type"), str):
            raise Failure(f"{where}: line {number} has no type")
        if record["type"] == "suite":
            suite = record
        elif record["type"] == "host":
            hosts.append(record)
        elif record["type"] == "environment":
            environments.append(record)
        elif record["type"] == "sample":
            try:
                sample = _sample(record, hosts[-1] if hosts else {})
            except MALFORMED as error:
                raise Failure(f"{where}: line {number} is damaged: {error}") from None
            samples[sample.key] = sample
    return Results(suite, tuple(hosts), tuple(environments), tuple(samples.values()))


def well_formed(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line that an agent may have printed; None if it is no such line."""
    try:
        record = json.loads(line)
        if record["schema"] != SCHEMA or record["type"] not in ("sample", "environment"):
            return None
        if record["type"] == "sample":
            _sample(record, {})
    except (*MALFORMED, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _sample(record: Mapping[str, Any], host: Mapping[str, Any]) -> Sample:
    return Sample(
        benchmark=str(record["benchmark"]),
        mode=_RENAMED.get(record["mode"], str(record["mode"])),
        round=int(record["round"]),
        cpus=int(host.get("cpus", 0)),
        comparable=bool(host.get("comparable", False)),
        metrics={str(k): float(v) for k, v in record.get("metrics", {}).items()},
        operations=float(record.get("operations", 0)),
        wrong=int(record.get("wrong", 0)),
        output=str(record.get("output", "")),
        counters={str(k): int(v) for k, v in record.get("counters", {}).items()},
        latency_ns={str(k): float(v) for k, v in record.get("latency_ns", {}).items()},
        failed=str(record.get("failed", "")),
        histogram={int(ns): int(count) for ns, count in record.get("histogram", [])},
        kernel_kind=str(record.get("kernel_kind", host.get("kernel_kind", ""))),
    )
