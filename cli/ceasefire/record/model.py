# SPDX-License-Identifier: GPL-2.0-only
"""What a recording holds: sums by cause, by program and by call site; and its JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from ceasefire.errors import Failure

SCHEMA = 1
KIND = "ceasefire recording"
_DEEPEST = 256
_LARGEST = {int: 1 << 62, float: 1e30}


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

    def join(self, other: "Sum") -> None:
        """Add another sum."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Calls:
    """System calls of one kind: those that sent shootdowns, and the others."""

    flushing: int = 0
    flushing_usec: float = 0.0
    quiet: int = 0
    quiet_usec: float = 0.0

    def join(self, other: "Calls") -> None:
        """Add the calls of another run."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Site:
    """Shootdowns from one place. frames: of the program, outermost first."""

    program: str
    cause: str
    frames: list[str]
    sum: Sum


@dataclass
class Run:
    """One of several runs that are recorded together. removed: of those received, by FPR."""

    sent: int
    received: int
    removed: float


@dataclass
class Environment:
    """What was recorded, and on what. load: of the machine before."""

    command: list[str]
    release: str
    cpus: int
    emulated: bool
    fpr: bool
    seconds: float = 0.0
    load: float = 0.0


@dataclass
class Recording:
    """Everything that the page is made from.

    why_not: munmap() only: shootdowns that FPR would send all the same, by reason.
    by_source: of these, with MAP_FPR in the program's source they would be saved.
    lazy: shootdowns received that LATR would remove.
    files: shootdowns that FPR would save, by file, where it could be seen.
    machine_sent: what the kernel counted meanwhile, all programs; None if it does not.
    runs: of the command; none of a process that ran already.
    lost, unread: events that are missing. remarks: what else the reader has to know, in sentences.
    nameless: files whose functions have no names, and why.
    """

    environment: Environment
    causes: dict[str, Sum] = field(default_factory=dict)
    programs: dict[str, Sum] = field(default_factory=dict)
    why_not: dict[str, int] = field(default_factory=dict)
    by_source: int = 0
    lazy: int = 0
    files: dict[str, int] = field(default_factory=dict)
    calls: dict[str, Calls] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)
    machine_sent: int | None = None
    machine_received: int | None = None
    lost: int = 0
    unread: int = 0
    missing: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    nameless: dict[str, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)

    def total(self) -> Sum:
        """Return the sum of all causes."""
        whole = Sum()
        for part in self.causes.values():
            whole.join(part)
        return whole


def merged(recordings: Sequence[Recording]) -> Recording:
    """Return all runs of a command as one recording."""
    first = recordings[0]
    if len(recordings) == 1:
        return first
    whole = Recording(replace(first.environment, seconds=0.0), missing=list(first.missing))
    why_not: Counter[str] = Counter()
    files: Counter[str] = Counter()
    remarks: dict[str, None] = {}
    for one in recordings:
        whole.environment.seconds += one.environment.seconds
        for parts, into in ((one.causes, whole.causes), (one.programs, whole.programs)):
            for name, part in parts.items():
                into.setdefault(name, Sum()).join(part)
        for name, call in one.calls.items():
            whole.calls.setdefault(name, Calls()).join(call)
        why_not.update(one.why_not)
        files.update(one.files)
        remarks |= dict.fromkeys(one.remarks)
        whole.by_source += one.by_source
        whole.lazy += one.lazy
        whole.lost += one.lost
        whole.unread += one.unread
        whole.runs += one.runs
    whole.why_not, whole.files, whole.remarks = dict(why_not), dict(files), list(remarks)
    whole.sites = merged_sites(site for one in recordings for site in one.sites)
    whole.machine_sent = _sum([one.machine_sent for one in recordings])
    whole.machine_received = _sum([one.machine_received for one in recordings])
    return whole


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def merged_sites(sites: Iterable[Site]) -> list[Site]:
    """Return each call site once, the most frequent first."""
    found: dict[tuple[str, str, tuple[str, ...]], Site] = {}
    for site in sites:
        key = (site.program, site.cause, tuple(site.frames))
        found.setdefault(key, Site(site.program, site.cause, site.frames, Sum())).sum.join(site.sum)
    return sorted(found.values(), key=lambda site: -site.sum.sent)


def to_json(recording: Recording) -> dict[str, Any]:
    """Return a recording as an object for JSON."""
    return {"kind": KIND, "schema": SCHEMA, **asdict(recording)}


def from_json(record: Mapping[str, Any]) -> Recording:
    """Return the recording that an object of JSON holds. Raises ValueError."""
    values = {name: value for name, value in record.items() if name not in ("kind", "schema")}
    recording = _typed(Recording, values)
    assert isinstance(recording, Recording)
    if not recording.environment.command or any(
        len(site.frames) > _DEEPEST for site in recording.sites
    ):
        raise ValueError
    return recording


def _typed(kind: Any, value: Any) -> Any:
    """Return a value of a type, whatever somebody has written into the file. Raises ValueError."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is list and isinstance(value, list):
        return [_typed(parts[0], one) for one in value]
    if origin is dict and isinstance(value, dict):
        return {name: _typed(parts[1], one) for name, one in value.items()}
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
        hints = get_type_hints(kind)
        needed = {f.name for f in fields(kind) if f.default is f.default_factory is MISSING}
        if not needed <= value.keys() <= hints.keys():
            raise ValueError
        return kind(**{name: _typed(hints[name], one) for name, one in value.items()})
    if value is None and type(None) in parts:
        return None
    if kind is float and type(value) is int:
        value = float(value)
    kinds = [part for part in parts if part is not type(None)] if parts else [kind]
    if not any(type(value) is one for one in kinds):
        raise ValueError
    # Counts, and sums of them.
    if type(value) in (int, float) and not 0 <= value < _LARGEST[type(value)]:
        raise ValueError
    return value


def load(path: Path) -> Recording:
    """Read a recording from a file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise Failure(f"{path} is not a recording: make one with `ceasefire record -o {path}`")
    if record.get("schema") != SCHEMA:
        raise Failure(f"{path} is from another version of ceasefire: record again")
    try:
        return from_json(record)
    except (ValueError, OverflowError):
        raise Failure(f"{path} is damaged: record again") from None
