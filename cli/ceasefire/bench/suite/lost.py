# SPDX-License-Identifier: GPL-2.0-only
"""Compute that is lost to shootdowns, where a benchmark has a mode that loses none.

In the mode `ideal-compute` those who map and unmap are another process: the machine has the same
load, and nobody who computes is shot down. What `off` and `on` compute less than that in the same
round is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ceasefire.bench.suite.compare import Interval, interval, paired
from ceasefire.bench.suite.results import Results
from ceasefire.bench.suite.spec import BASELINE

IDEAL = "ideal-compute"
METRIC = "compute"
_MODES = (BASELINE, "on")


@dataclass(frozen=True)
class Lost:
    """What a benchmark lost on guests of one size.

    shares: by mode, of what the ideal computes, 1 for all of it. Below 0 is noise: the mode
    computed more than the ideal.
    """

    benchmark: str
    cpus: int
    shares: Mapping[str, Interval]


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
        for mode in _MODES:
            pairs = paired(own, mode, IDEAL)
            if pairs:
                shares[mode] = interval(
                    [1 - some.metrics[METRIC] / ideal.metrics[METRIC] for ideal, some in pairs]
                )
        if shares:
            found.append(Lost(name, cpus, shares))
    return found
