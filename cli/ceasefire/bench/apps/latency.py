# SPDX-License-Identifier: GPL-2.0-only
"""Latencies of an application's operations, in the form in which the C programs print theirs.

A power of two has eight buckets of equal width; below 32 ns they are 4 ns wide (see
bench/common/latency.h).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

_PARTS = 8
_LEAST = 4
_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def fields(values: Iterable[tuple[float, int]]) -> dict[str, object]:
    """Return the fields `latency_ns` and `histogram` of a sample; nothing without operations.

    values: (nanoseconds, how many operations took that long).
    """
    counts: Counter[int] = Counter()
    most = 0
    for ns, count in values:
        least = bucket(int(ns))
        counts[least] += count
        most = max(most, int(ns))
    total = sum(counts.values())
    if not total:
        return {}
    ordered = sorted(counts.items())
    found = {name: quantile(ordered, total * share) for name, share in _QUANTILES.items()}
    return {
        "latency_ns": {**found, "max": most},
        "histogram": [[least, count] for least, count in ordered],
    }


def bucket(ns: int) -> int:
    """Return the least time of the bucket of a latency."""
    width = max(1 << max(ns.bit_length() - 1, 0), _PARTS * _LEAST) // _PARTS
    return ns // width * width


def quantile(ordered: Sequence[tuple[int, int]], wanted: float) -> int:
    """Return the least time of the bucket in which so many operations are reached."""
    seen = 0
    for least, count in ordered:
        seen += count
        if seen >= wanted:
            return least
    return ordered[-1][0]
