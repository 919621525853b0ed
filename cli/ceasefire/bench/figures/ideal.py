# SPDX-License-Identifier: GPL-2.0-only
"""What is possible without shootdowns, where a benchmark has modes that have none by construction.

  ideal-compute   as `off`, but those who map and unmap are another process: the machine has the
                  same load, and nobody who computes is shot down
  ideal-io        as `off`, but each thread that maps and unmaps is alone in its process

What a mode computes less than `ideal-compute` in the same round is lost to shootdowns.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ceasefire.bench.catalog.spec import BASELINE
from ceasefire.bench.figures.compare import Interval, comparisons, interval, paired
from ceasefire.bench.results.store import Results, works

COMPUTE = "ideal-compute"
IO = "ideal-io"
METRIC = "compute"


@dataclass(frozen=True)
class Lost:
    """What a benchmark lost on guests of one size.

    shares: by mode, of what the ideal computes, 1 for all of it. Below 0 is noise: the mode
    computed more than the ideal.
    """

    benchmark: str
    cpus: int
    shares: Mapping[str, Interval]


@dataclass(frozen=True)
class Reached:
    """The ratio of a metric, in a mode with a mechanism, to the ideal for it."""

    benchmark: str
    cpus: int
    mode: str
    metric: str
    ideal: str
    ratio: Interval


def lost(results: Results) -> list[Lost]:
    """Return one for each benchmark and number of CPUs with an ideal and times that count."""
    groups = dict.fromkeys((s.benchmark, s.cpus) for s in results.samples)
    found = []
    for name, cpus in groups:
        own = [
            s
            for s in results.samples
            if (s.benchmark, s.cpus) == (name, cpus)
            and not s.failed
            and s.comparable
            and s.metrics.get(METRIC)
        ]
        shares = {}
        for mode in (m for m in dict.fromkeys(s.mode for s in own) if m == BASELINE or works(m)):
            pairs = paired(own, mode, COMPUTE)
            if pairs:
                shares[mode] = interval(
                    [1 - some.metrics[METRIC] / ideal.metrics[METRIC] for ideal, some in pairs]
                )
        if shares:
            found.append(Lost(name, cpus, shares))
    return found


def reached(results: Results) -> list[Reached]:
    """Return how near each metric comes to its ideal, where that was measured.

    A thread that does both and is alone in its process is its own ideal for both.
    """
    compared = {i: comparisons(results, i) for i in (COMPUTE, IO)}
    has = {(c.benchmark, c.cpus) for c in compared[COMPUTE]}
    found = []
    for ideal, c in ((i, c) for i in compared for c in compared[i] if works(c.mode)):
        for metric, ratio in c.ratios.items():
            own = COMPUTE if metric == METRIC and (c.benchmark, c.cpus) in has else IO
            if ideal == own:
                found.append(Reached(c.benchmark, c.cpus, c.mode, metric, ideal, ratio))
    return sorted(found, key=lambda r: (r.cpus, r.benchmark))
