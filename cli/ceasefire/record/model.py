# SPDX-License-Identifier: GPL-2.0-only
"""What a recording holds: sums by cause, by program and by call site; and its JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ceasefire.errors import Failure

SCHEMA = 1
KIND = "ceasefire recording"


@dataclass
class Sum:
    """Shootdowns. saved: those that FPR would not send; of reclaim an estimate, so a fraction.

    wait_usec: from sending until the last CPU had flushed, of the `waits` where that was seen.
    """

    sent: int = 0
    received: int = 0
    saved: float = 0.0
    saved_received: float = 0.0
    waits: int = 0
    wait_usec: float = 0.0

    def add(self, received: int, share: float, wait_usec: float | None) -> None:
        """Count one shootdown that so many CPUs received, and FPR would spare by that share."""
        self.sent += 1
        self.received += received
        self.saved += share
        self.saved_received += share * received
        if wait_usec is not None:
            self.waits += 1
            self.wait_usec += wait_usec


@dataclass
class Calls:
    """System calls of one kind: those that sent shootdowns, and the others."""

    flushing: int = 0
    flushing_usec: float = 0.0
    quiet: int = 0
    quiet_usec: float = 0.0


@dataclass
class Site:
    """Shootdowns from one place. frames: of the program, outermost first."""

    program: str
    cause: str
    frames: list[str]
    sum: Sum


@dataclass
class Environment:
    """What was recorded, and on what."""

    command: list[str]
    release: str
    cpus: int
    emulated: bool
    fpr: bool
    seconds: float = 0.0


@dataclass
class Recording:
    """Everything that the page is made from.

    why_not: munmap() only: shootdowns that FPR would send all the same, by reason.
    by_source: of these, with MAP_FPR in the program's source they would be saved.
    files: shootdowns that FPR would save, by file, where it could be seen.
    machine_sent: what the kernel counted meanwhile, all programs; None if it does not.
    lost, unread: events that are missing.
    """

    environment: Environment
    causes: dict[str, Sum] = field(default_factory=dict)
    programs: dict[str, Sum] = field(default_factory=dict)
    why_not: dict[str, int] = field(default_factory=dict)
    by_source: int = 0
    files: dict[str, int] = field(default_factory=dict)
    calls: dict[str, Calls] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)
    machine_sent: int | None = None
    machine_received: int | None = None
    lost: int = 0
    unread: int = 0
    missing: list[str] = field(default_factory=list)

    def total(self) -> Sum:
        """Return the sum of all causes."""
        whole = Sum()
        for part in self.causes.values():
            whole.sent += part.sent
            whole.received += part.received
            whole.saved += part.saved
            whole.saved_received += part.saved_received
            whole.waits += part.waits
            whole.wait_usec += part.wait_usec
        return whole


def to_json(recording: Recording) -> dict[str, Any]:
    """Return a recording as an object for JSON."""
    return {"kind": KIND, "schema": SCHEMA, **asdict(recording)}


def from_json(record: Mapping[str, Any]) -> Recording:
    """Return the recording that an object of JSON holds. Raises KeyError and the like."""
    values = {name: value for name, value in record.items() if name not in ("kind", "schema")}
    return Recording(
        **{
            **values,
            "environment": Environment(**values["environment"]),
            "causes": {name: Sum(**value) for name, value in values["causes"].items()},
            "programs": {name: Sum(**value) for name, value in values["programs"].items()},
            "calls": {name: Calls(**value) for name, value in values["calls"].items()},
            "sites": [Site(**{**s, "sum": Sum(**s["sum"])}) for s in values["sites"]],
        }
    )


def load(path: Path) -> Recording:
    """Read a recording from a file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    except ValueError:
        record = None
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise Failure(f"{path} is not a recording: make one with `ceasefire record -o {path}`")
    if record.get("schema") != SCHEMA:
        raise Failure(f"{path} is from another version of ceasefire: record again")
    try:
        return from_json(record)
    except (KeyError, TypeError, AttributeError):
        raise Failure(f"{path} is damaged: record again") from None
