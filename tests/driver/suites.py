# SPDX-License-Identifier: GPL-2.0-only
"""Reads tests/suites/*.toml. docs/testing.md describes the format for those who add a job."""

import dataclasses
import fnmatch
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ceasefire.errors import UsageError
from ceasefire.vm.pulse import SILENCE
from ceasefire.vm.spec import STOCK_EMULATOR

KINDS = ("host", "guest")
FORMATS = ("ktap", "tap", "pytest", "meson", "status")
CONTROLS = ("always", "damaged", "never")
CLASSES = ("freed", "owner", "cache", "space", "flushed", "table", "armed", "old")
LANES = ("guests", "beside", "waits", "spare")
BUILD = "build"
CATCHES = ("fail", "log", "crash", "timeout")


@dataclass(frozen=True)
class Mutation:
    """One protection switched off and the test that has to notice.

    test: a shell command. catch: what counts as noticed: the test fails, the kernel log shows a
    complaint, the kernel crashes, the test does not end. control: run it unmutated first, "always",
    "never", or when the kernel is "damaged", which is when it has complained since. reported: the
    class of violation that an emulator which checks has to report, or unreported: why it reports
    none. Jobs on other emulators do not look; those on this one have to say one of both.
    damages: it may damage the kernel in ways that the kernel does not notice, so that the next pair
    needs a fresh guest. hangs: the test waits for what never comes, so it gets no more than ten
    times what it has taken unmutated in the same guest, which is then as if it were damaged.
    """

    name: str
    test: str
    catch: tuple[str, ...] = ("fail",)
    control: str = "always"
    reported: str = ""
    unreported: str = ""
    damages: bool = False
    hangs: bool = False


@dataclass(frozen=True)
class Job:
    """One entry of a suite. A command, or tests, mutations or both, say what it runs.

    files: boot from memory, with busybox and these programs on PATH only.
    emulator, check, cpu, qemu_args: which QEMU, properties of its checker, CPU model, more words
    for QEMU; see `ceasefire vm`.
    lane: what may run at the same time, see lanes. control: the job whose passes stand for
    the control runs of these mutations. after: builds that a host job waits for.
    silence: seconds without a sign of life after which its guest is dead.
    """

    name: str
    kind: str
    command: str = ""
    tests: tuple[str, ...] = ()
    mutations: tuple[Mutation, ...] = ()
    format: str = "ktap"
    kernel: str = "run"
    cpus: int = 2
    memory: str = "1G"
    numa: int = 1
    append: str = ""
    emulator: str = STOCK_EMULATOR
    check: str = ""
    cpu: str = ""
    qemu_args: tuple[str, ...] = ()
    disks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    timeout: float = 600.0
    test_timeout: int = 120
    silence: float = SILENCE
    expect: str = "pass"
    because: str = ""
    long: bool = False
    lane: str = LANES[0]
    control: str = ""
    after: tuple[str, ...] = ()
    skips: dict[str, str] = field(default_factory=dict)
    allow_log: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)

    @property
    def builds(self) -> bool:
        """Whether the job makes something for others: suite build."""
        return self.name.startswith(f"{BUILD}/")

    @property
    def needs(self) -> tuple[str, ...]:
        """The jobs that this one has to wait for, if they run at all: those of suite build."""
        if self.kind == "host":
            return self.after
        emulator = () if self.emulator == STOCK_EMULATOR else (f"{BUILD}/emulator",)
        return (f"{BUILD}/kernel-{self.kernel}", *emulator)


def load(folder: Path) -> list[Job]:
    """Read all suites; the name of a job is that of its file, a slash, and its own."""
    jobs: list[Job] = []
    tables: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{path.name}: {error}") from None
        for table in document.get("job", []):
            whole = _inherit(path, table, tables)
            tables[str(whole.get("name"))] = whole
            jobs.append(_job(path, whole))
        tables.clear()
    by_name = {job.name: job for job in jobs}
    names = [job.name for job in jobs]
    double = next((name for name in names if names.count(name) > 1), None)
    if double:
        raise UsageError(f"the suites have two jobs named {double}: rename one")
    for job in jobs:
        if job.control and job.control not in names:
            raise UsageError(f"{job.name}: control names no job: {job.control}")
        if job.control and by_name[job.control].env != job.env:
            raise UsageError(f"{job.name}: {job.control} has another env, and proves nothing here")
        if not set(job.after) <= {other.name for other in jobs if other.builds}:
            raise UsageError(f"{job.name}: after is of suite {BUILD}: {', '.join(job.after)}")
    return jobs


def select(
    jobs: Sequence[Job], patterns: Sequence[str], *, long: bool, build: bool = False
) -> list[Job]:
    """Return the jobs that match a pattern, or all; long ones only when asked for or named.

    One that is neither has one pair of each mutation. build: also those that build what the others
    need. Builds come first.
    """
    chosen = [
        job if long or job.name in patterns else _one_of_each(job)
        for job in _chosen(jobs, patterns, long=long)
    ]
    needed = {name for job in chosen for name in job.needs} if build else set()
    first = [j for j in jobs if j.builds and (j in chosen or j.name in needed)]
    return [*first, *(job for job in chosen if not job.builds)]


def _one_of_each(job: Job) -> Job:
    """Return the job with the first pair of each mutation: more say that other tests can fail."""
    names = [pair.name for pair in job.mutations]
    pairs = enumerate(job.mutations)
    return replace(job, mutations=tuple(p for n, p in pairs if names.index(p.name) == n))


def _chosen(jobs: Sequence[Job], patterns: Sequence[str], *, long: bool) -> list[Job]:
    if not patterns:
        return [job for job in jobs if not job.builds and (long or not job.long)]
    chosen = []
    for pattern in patterns:
        found = [j for j in jobs if fnmatch.fnmatch(j.name, pattern)]
        found = found or [j for j in jobs if j.name.startswith(f"{pattern}/")]
        if not found:
            raise UsageError(f"no job is named {pattern}: see `tests/run --list`")
        chosen += [
            j for j in found if j not in chosen and (long or not j.long or j.name == pattern)
        ]
    return chosen


def _inherit(
    path: Path, table: dict[str, Any], earlier: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the table with what it leaves out taken from the job that it is like."""
    if "like" not in table:
        return table
    model = earlier.get(table["like"])
    if model is None:
        raise UsageError(f"{path.name}: job {table.get('name')}: no job {table['like']} above it")
    return {**model, **{key: value for key, value in table.items() if key != "like"}}


def _job(path: Path, table: dict[str, Any]) -> Job:
    where = f"{path.name}: job {table.get('name', '(no name)')}"
    known = {f.name for f in dataclasses.fields(Job)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise UsageError(f"{where}: unknown key {', '.join(unknown)}")
    values = dict(table)
    for key in ("tests", "disks", "files", "qemu_args", "allow_log", "after"):
        values[key] = tuple(values.get(key, ()))
    values["mutations"] = tuple(_mutation(where, m) for m in values.get("mutations", ()))
    if "name" not in values or values.get("kind") not in KINDS:
        raise UsageError(f"{where}: it needs a name and a kind, {' or '.join(KINDS)}")
    values.setdefault("lane", "guests" if values["kind"] == "guest" else "beside")
    job = Job(**{**values, "name": f"{path.stem}/{values['name']}"})
    if bool(job.command) == bool(job.tests or job.mutations):
        raise UsageError(f"{where}: it needs a command, or tests, mutations or both")
    if job.tests and job.mutations and job.emulator != STOCK_EMULATOR:
        raise UsageError(f"{where}: what an emulator reports is counted for each pair: no tests")
    if job.format not in FORMATS:
        raise UsageError(f"{where}: the format is one of {', '.join(FORMATS)}")
    if job.kind == "host" and not job.command:
        raise UsageError(f"{where}: a host job needs a command")
    if job.lane not in LANES:
        raise UsageError(f"{where}: the lane is one of {', '.join(LANES)}")
    if job.lane == "spare" and job.kind != "host":
        raise UsageError(f"{where}: a guest does not live from spare time: lane beside")
    if job.after and job.kind != "host":
        raise UsageError(f"{where}: after is for host jobs; a guest waits for its kernel")
    if job.control and not job.mutations:
        raise UsageError(f"{where}: control is for jobs with mutations")
    if job.expect not in ("pass", "fail") or (job.expect == "fail") != bool(job.because):
        raise UsageError(f"{where}: expect is pass or fail; fail goes with a pattern in because")
    silent = [m.name for m in job.mutations if not m.reported and not m.unreported]
    if job.emulator == "checking" and silent:
        raise UsageError(f"{where}: {silent[0]} is reported, or has a reason in unreported")
    return job


def _mutation(where: str, table: dict[str, Any]) -> Mutation:
    values = dict(table)
    catch = values.pop("catch", ["fail"])
    values["catch"] = tuple([catch] if isinstance(catch, str) else catch)
    try:
        mutation = Mutation(**values)
    except TypeError as error:
        raise UsageError(f"{where}: mutation {table.get('name', '')}: {error}") from None
    if mutation.control not in CONTROLS:
        raise UsageError(f"{where}: mutation {mutation.name}: control is of {', '.join(CONTROLS)}")
    if mutation.hangs and (mutation.control != "always" or "timeout" not in mutation.catch):
        raise UsageError(f"{where}: mutation {mutation.name}: hangs needs control and a timeout")
    if mutation.reported and mutation.reported not in CLASSES:
        raise UsageError(f"{where}: mutation {mutation.name}: reported is of {', '.join(CLASSES)}")
    if mutation.reported and mutation.unreported:
        raise UsageError(f"{where}: mutation {mutation.name}: reported, or unreported")
    if not set(mutation.catch) <= set(CATCHES):
        raise UsageError(f"{where}: mutation {mutation.name}: catch is of {', '.join(CATCHES)}")
    return mutation
