# SPDX-License-Identifier: GPL-2.0-only
"""Reads bench/suites/*.toml: benchmarks, and the suites that choose among them.

A benchmark is measured in several modes that alternate: those of ceasefire.modes, in which its
command is the same, and what one would use instead, each with a command of its own. What a command
measured it prints as JSON, in its last line. The benchmark programs are in its PATH. `{name}` in a
command is a parameter: those of the benchmark, and these:

  {with}     words in front of a program that has it run in the mode; so that all are started alike,
             there are such words for `off`, too
  {mode}     the name of the mode, for programs that know it themselves
  {command}  the command of the benchmark, for those that are used instead
  {disk}     mount point or device of the first disk
  {work}     an empty folder on the first disk that holds a file system, else in memory
  {cpus}     number of CPUs
  {seconds}  length of a sample
  {python}   Python with this package

docs/benchmark.md describes the format for those who add one.
"""

import itertools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ceasefire import modes, paths
from ceasefire.errors import Failure, UsageError
from ceasefire.modes import Mode

GROUPS = ("micro", "application", "overhead")
BETTER = ("more", "less")
BASELINE = modes.OFF.name
# What is measured if nothing else is said, beside what is used instead.
DEFAULT = (BASELINE, modes.FPR.name)
_BUILT_IN = {"with", "mode", "command", "disk", "work", "cpus", "seconds", "python"}
# Beside the code, as the templates of pages are.
_INSTALLED = Path(__file__).resolve().parents[1] / "suites"
# Parameters in parameters in parameters.
_DEPTH = 4
_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Metric:
    """One figure of a sample.

    path: where it is in the JSON line, keys joined by dots; "seconds" without a line is the run
    time of the command. better: "more" or "less". unit: for the report.
    """

    name: str
    path: str
    better: str = "more"
    unit: str = ""


@dataclass(frozen=True)
class Benchmark:
    """One entry. The first metric is the one that is compared first.

    instead: modes with commands of their own, in which no mechanism works. operations: the
    path of the number that shootdowns are divided by, "" for one a run. cpus: guests of these
    sizes. numa: nodes of such a guest. disks: see data. needs: programs that must be there.
    prepare: a command before all samples of a boot. verify: "same" compares what all samples
    printed as `output`, "self" trusts `wrong`. paper: figures of the FPR paper, by metric.
    paper_note: in a sentence or two, may they be compared with ours. paper_latr and its note: the
    same of the LATR paper.
    """

    name: str
    group: str
    title: str
    command: str
    metrics: tuple[Metric, ...]
    operations: str
    cpus: tuple[int, ...] = (2,)
    memory: str = "1G"
    numa: int = 1
    disks: tuple[str, ...] = ()
    append: str = ""
    needs: tuple[str, ...] = ()
    prepare: str = ""
    verify: str = "self"
    parameters: Mapping[str, str] | None = None
    paper: Mapping[str, str] | None = None
    paper_note: str = ""
    paper_latr: Mapping[str, str] | None = None
    paper_latr_note: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)

    def modes(self, chosen: Sequence[str] = ()) -> list[str]:
        """Return the modes that are measured. chosen: only these, and what they are compared with.

        A mode that is for another kernel is among them only if it is chosen.
        """
        if not chosen:
            return [*DEFAULT, *self.instead]
        own = [name for name in chosen if name in self.instead or is_of_kernel(name)]
        return list(dict.fromkeys([BASELINE, *own]))

    def runs_as(self, mode: str) -> Mode:
        """Return with what the command of a mode runs: with nothing what is used instead."""
        return modes.OFF if mode in self.instead else modes.parse(mode)

    def shell_command(self, mode: str, values: Mapping[str, str]) -> str:
        """Return the shell command of a mode."""
        # On another kernel it is that of `off`.
        runs = "+".join(m.name for m in self.runs_as(mode).mechanisms) or BASELINE
        own = {
            "with": f"mode-run {runs}",
            "mode": mode if mode in self.instead else runs,
            "command": self.command,
        }
        text = self.instead.get(mode, self.command)
        return fill(text, {**(self.parameters or {}), **values, **own})


@dataclass(frozen=True)
class Suite:
    """A choice of benchmarks and how long to measure.

    rounds: samples of each mode. seconds: length of a sample. cpus: only guests of these sizes, if
    any are given. modes: only these, if any are given and the user chooses none.
    """

    name: str
    title: str
    benchmarks: tuple[Benchmark, ...]
    rounds: int
    seconds: float
    modes: tuple[str, ...] = ()


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace parameters until none is left."""
    for _ in range(_DEPTH):
        if not any(name in values for name in _PARAMETER.findall(text)):
            return text
        text = _PARAMETER.sub(lambda found: values.get(found[1], found[0]), text)
    raise Failure(f"parameters that name each other: {text}")


def folder() -> Path:
    """Return where the suites are: in the checkout, else installed."""
    root = paths.checkout()
    return _INSTALLED if root is None else root / "bench" / "suites"


def load_all(where: Path | None = None) -> tuple[dict[str, Benchmark], dict[str, Suite]]:
    """Read all files; return benchmarks and suites by name."""
    where = folder() if where is None else where
    benchmarks: dict[str, Benchmark] = {}
    tables: list[tuple[str, dict[str, Any]]] = []
    for path in sorted(where.glob("*.toml")):
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise Failure(f"{path.name}: {error}") from None
        for entry in table.pop("benchmark", []):
            for bench in _variants(path.name, entry):
                if bench.name in benchmarks:
                    raise Failure(f"{path.name}: there are two benchmarks named {bench.name}")
                benchmarks[bench.name] = bench
        tables += [(path.name, entry) for entry in table.pop("suite", [])]
        if table:
            raise Failure(f"{path.name}: unknown table {next(iter(table))}")
    if not benchmarks:
        raise Failure(f"there are no suites in {where}")
    suites = [_suite(file, entry, benchmarks) for file, entry in tables]
    return benchmarks, {suite.name: suite for suite in suites}


def _variants(file: str, entry: Mapping[str, Any]) -> list[Benchmark]:
    """One entry makes a benchmark for each of its `variant`, and for each value of a list in it."""
    entry = dict(entry)
    variants = entry.pop("variant", None)
    if variants is None:
        return [_benchmark(file, entry)]
    found = []
    for variant in variants:
        own = variant.get("parameters", {})
        values = [value if isinstance(value, list) else [value] for value in own.values()]
        for chosen in itertools.product(*values):
            parameters = {**entry.get("parameters", {}), **dict(zip(own, chosen, strict=True))}
            merged = {**entry, **variant, "parameters": parameters}
            for key in ("name", "title"):
                merged[key] = fill(str(variant.get(key, entry.get(key))), _texts(parameters))
            found.append(_benchmark(file, merged))
    return found


def _benchmark(file: str, entry: Mapping[str, Any]) -> Benchmark:
    name = str(entry.get("name", "?"))
    known = set(Benchmark.__dataclass_fields__)
    unknown = sorted(set(entry) - known)
    missing = sorted({"name", "group", "title", "command", "metrics", "operations"} - set(entry))
    if unknown or missing:
        what = f"unknown key {unknown[0]}" if unknown else f"{missing[0]} is missing"
        raise Failure(f"{file}: benchmark {name}: {what}")
    metrics = tuple(_metric(file, name, m) for m in entry["metrics"])
    bench = Benchmark(
        **{
            **entry,
            "metrics": metrics,
            "parameters": _texts(entry.get("parameters", {})),
            **{k: tuple(entry[k]) for k in ("cpus", "disks", "needs") if k in entry},
        }
    )
    if bench.group not in GROUPS:
        raise Failure(f"{file}: benchmark {name}: group is one of {', '.join(GROUPS)}")
    if not metrics:
        raise Failure(f"{file}: benchmark {name}: it has no metric")
    if taken := sorted(_BUILT_IN & set(bench.parameters or {})):
        raise Failure(f"{file}: benchmark {name}: the parameter {taken[0]} is built in")
    if taken := [mode for mode in bench.instead if is_of_kernel(mode)]:
        raise Failure(f"{file}: benchmark {name}: instead: {taken[0]} is a mode of the kernel")
    if not isinstance(bench.numa, int) or not 1 <= bench.numa <= min(bench.cpus):
        raise Failure(f"{file}: benchmark {name}: numa: each node needs a CPU")
    if bench.verify not in ("self", "same"):
        raise Failure(f"{file}: benchmark {name}: verify is 'self' or 'same'")
    for text in (bench.command, *bench.instead.values(), bench.prepare):
        have = _BUILT_IN | set(bench.parameters or {})
        lost = [p for p in _PARAMETER.findall(text) if p not in have]
        if lost:
            raise Failure(f"{file}: benchmark {name}: there is no parameter {lost[0]}")
    return bench


def is_of_kernel(name: str) -> bool:
    """Say whether a mode is one of ceasefire.modes, and none that is used instead."""
    try:
        modes.parse(name)
    except UsageError:
        return False
    return True


def _metric(file: str, name: str, entry: Mapping[str, Any]) -> Metric:
    try:
        metric = Metric(**entry)
    except TypeError as error:
        raise Failure(f"{file}: benchmark {name}: metric: {error}") from None
    if metric.better not in BETTER:
        raise Failure(f"{file}: benchmark {name}: better is 'more' or 'less'")
    return metric


def _suite(file: str, entry: Mapping[str, Any], benchmarks: Mapping[str, Benchmark]) -> Suite:
    name = str(entry.get("name", "?"))
    try:
        chosen = tuple(benchmarks[b] for b in entry["benchmarks"])
        cpus = tuple(entry.get("cpus", ()))
        limited = tuple(_limited(b, cpus) for b in chosen)
        suite = Suite(name, entry["title"], limited, entry["rounds"], float(entry["seconds"]))
        words = tuple(str(mode) for mode in entry.get("modes", ()))
        there = {mode for bench in chosen for mode in bench.modes()}
        if lost := [mode for mode in words if mode not in there and not is_of_kernel(mode)]:
            raise Failure(f"{file}: suite {name}: modes: no benchmark has {lost[0]}")
        return replace(suite, modes=words)
    except KeyError as error:
        raise Failure(f"{file}: suite {name}: there is no {error}") from None


def _limited(bench: Benchmark, cpus: Sequence[int]) -> Benchmark:
    own = tuple(n for n in bench.cpus if n in cpus) or bench.cpus[:1]
    return replace(bench, cpus=own) if cpus else bench


def choose(names: Sequence[str], where: Path | None = None) -> Suite:
    """Return the suite of that name, or one that is made of benchmarks by name."""
    benchmarks, suites = load_all(where)
    if len(names) == 1 and names[0] in suites:
        return suites[names[0]]
    lost = [name for name in names if name not in benchmarks]
    if lost:
        raise UsageError(f"there is no benchmark or suite '{lost[0]}': see `ceasefire bench list`")
    default = suites.get("default")
    rounds, seconds = (default.rounds, default.seconds) if default else (5, 2.0)
    chosen = tuple(benchmarks[name] for name in dict.fromkeys(names))
    return Suite("-".join(names)[:40], "chosen by name", chosen, rounds, seconds)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(k): str(v) for k, v in values.items()}
