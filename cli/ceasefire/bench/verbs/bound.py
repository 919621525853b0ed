# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench bound`: is what LATR promises about time and memory kept?"""

import argparse
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ceasefire.bench.measure import bound
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Sample
from ceasefire.bench.verbs import options
from ceasefire.errors import Failure, UsageError
from ceasefire.output import progress
from ceasefire.tables import print_table

_MAX_ROUNDS = 1000000
_MAX_PAGES = 1048576
_MIB = 1 << 20
_MS = 1e6
# Windows that can be judged, of all: with fewer a run has shown nothing.
LEAST_SHARE = 0.1
PASS, FAIL, INFO = "pass", "fail", "info"


class Figure(NamedTuple):
    """A line of the table. must: what it has to be, "" where nothing is asked of it."""

    what: str
    found: str
    must: str = ""
    kept: bool = True

    @property
    def verdict(self) -> str:
        """What it says about the promise."""
        return (PASS if self.kept else FAIL) if self.must else INFO


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add(
        "--kinds",
        default=",".join(bound.KINDS),
        metavar="LIST",
        help="of CPUs: busy, idle, isolated; and memory (default: all)",
    )
    add("--rounds", default="1000", metavar="N", help="munmaps for each kind (default: 1000)")
    add("--cpus", default="2", metavar="N", help="CPUs of the guests, from 2 (default: 2)")
    add("--seconds", type=float, default=5.0, metavar="S", help="length of memory (default: 5)")
    add("--pages", default="512", metavar="N", help="pages of its munmaps (default: 512)")
    add(
        "--kernel",
        default="run",
        metavar="KIND",
        help="of the guest whose CPUs tick (default: run)",
    )
    add(
        "--isolated-kernel",
        default="debug",
        metavar="KIND",
        help="of the guest with an isolated CPU: debug, or one with NO_HZ_FULL (default: debug)",
    )
    add("--json", action="store_true", help="print JSON, an object a kind")
    add("--out", metavar="DIR", help="where results go (default: the build folder)")


def main(args: argparse.Namespace) -> int:
    """Measure; 1 when a promise is not kept, or nothing was shown."""
    plan = plan_of(args)
    folder = store.Folder(args.out, "bound", fresh=True)
    bound.measure(plan, folder)
    progress(f"raw lines: {folder.lines}")
    figures = figures_of(store.read(folder.path).samples)
    if args.json:
        print_json(figures, store.read(folder.path).samples)
    else:
        print_figures(figures)
    broken = [kind for kind, list_ in figures.items() if any(f.verdict == FAIL for f in list_)]
    if broken:
        progress(f"not as it must be: {', '.join(broken)}")
    return int(bool(broken))


def plan_of(args: argparse.Namespace) -> bound.Plan:
    """Return what the options ask for."""
    kinds = args.kinds.split(",")
    for kind in kinds:
        if kind not in bound.KINDS or kinds.count(kind) > 1:
            raise UsageError(f"--kinds {args.kinds}: name {', '.join(bound.KINDS)} once each")
    cpus = options.number("--cpus", args.cpus, options.MAX_CPUS)
    if cpus < 2:
        raise UsageError(
            "--cpus 1: one CPU unmaps, and another one has to use what it has unmapped"
        )
    return bound.Plan(
        kinds,
        options.number("--rounds", args.rounds, _MAX_ROUNDS),
        cpus,
        options.seconds(args.seconds),
        options.number("--pages", args.pages, _MAX_PAGES),
        args.kernel,
        args.isolated_kernel,
    )


def figures_of(samples: Iterable[Sample]) -> dict[str, list[Figure]]:
    """Return the lines of each kind."""
    found = {}
    for sample in samples:
        kind = sample.benchmark.removeprefix(bound.PREFIX)
        try:
            found[kind] = _of_memory(sample) if kind == bound.MEMORY else _of_cpu(sample)
        except KeyError as error:
            raise Failure(f"what the program said of {kind} has no {error}") from None
    return found


def _of_cpu(sample: Sample) -> list[Figure]:
    """Return what a kind of CPU has shown. A CPU that the host did not run proves nothing."""
    m = sample.metrics
    rounds, judged, limit = m["rounds"], m["judged"], m["bound_ns"]
    least = max(1, LEAST_SHARE * rounds)

    def times(name: str, of_bound: str) -> str:
        return f"{m[name] / _MS:.1f} ms (x {m[of_bound]:.2f})"

    quantiles = ", ".join(f"{sample.latency_ns[q] / _MS:.1f}" for q in ("p50", "p99"))
    figures = [
        Figure(
            "judged windows",
            f"{judged:,.0f} of {rounds:,.0f}",
            f"{least:,.0f} at least",
            judged >= least,
        ),
        Figure(
            "longest use",
            times("worst_judged_ns", "worst_judged_of_bound"),
            f"{limit / _MS:.1f} ms at most",
            m["worst_judged_ns"] <= limit,
        ),
        Figure(
            "uses after it was settled",
            f"{m['after_settled']:.0f}",
            "0",
            not m["after_settled"],
        ),
        Figure("wrong data", f"{sample.wrong}", "0", not sample.wrong),
        Figure("settle events seen", f"{m['settled_seen']:,.0f}"),
        Figure("p50, p99 of all uses", f"{quantiles} ms"),
        Figure("longest use of all", times("worst_ns", "worst_of_bound")),
        Figure("disturbed windows", f"{m['disturbed']:,.0f}"),
        Figure("late interrupts", f"{sample.counters.get('latr_late', 0):,}"),
    ]
    if sample.output:
        figures.append(Figure("without tick by", sample.output))
    return figures


def _of_memory(sample: Sample) -> list[Figure]:
    m = sample.metrics
    peak, left, limit = m["peak_bytes"], m["left_bytes"], m["limit_bytes"]
    skipped = sample.counters.get("latr_skip", 0)
    return [
        Figure(
            "lazy munmaps",
            f"{skipped:,} of {sample.operations:,.0f}",
            "1 at least",
            skipped > 0,
        ),
        Figure(
            "most that waited",
            f"{peak / _MIB:.1f} MiB",
            f"{limit / _MIB:.1f} MiB at most",
            peak <= limit,
        ),
        Figure(
            f"left after {m['left_after_ms']:.0f} ms",
            f"{left / _MIB:.1f} MiB",
            "0",
            not left,
        ),
    ]


def print_figures(figures: Mapping[str, Iterable[Figure]]) -> None:
    """Print all lines."""
    rows = [
        [kind, f.what, f.found, f.must or "-", f.verdict]
        for kind, list_ in figures.items()
        for f in list_
    ]
    columns = ("kind", "figure", "found", "must be", "verdict")
    print_table(columns, rows, numbers_from=len(columns), title="what a lazy munmap leaves")


def print_json(figures: Mapping[str, Iterable[Figure]], samples: Iterable[Sample]) -> None:
    """Print an object for each kind: its numbers, and each line of the table."""
    for sample in samples:
        kind = sample.benchmark.removeprefix(bound.PREFIX)
        lines = [{**f._asdict(), "verdict": f.verdict} for f in figures[kind]]
        record = {"kind": kind, "cpus": sample.cpus, "kernel": sample.kernel_kind}
        record |= {"metrics": dict(sample.metrics), "latency_ns": dict(sample.latency_ns)}
        record |= {"counters": dict(sample.counters), "figures": lines}
        print(json.dumps(record))
