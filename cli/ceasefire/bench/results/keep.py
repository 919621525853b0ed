# SPDX-License-Identifier: GPL-2.0-only
"""Makes results small enough for the repository, for docs/results.md.

What is kept is what `bench run` writes, without what nobody reads again: command lines,
counters that are no shootdowns, samples that were measured anew. Histograms of all rounds of a
mode are added up in one of its samples. Kept results can be shown like others, and kept again.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ceasefire.counters import FAULTS, FILLS, INTERRUPTS, RECEIVED, TABLES

_HOST = (
    "date",
    "commit",
    "host_cpus",
    "where",
    "accel",
    "kernel_kind",
    "memory",
    "numa",
    "cpus",
    "comparable",
)
_SUITE = ("name", "title", "rounds", "seconds", "benchmarks")
# What the paper says is read from the suites when it is shown.
_BENCHMARK = ("group", "title", "metrics", "verify")
_ENVIRONMENT = ("kernel", "cpu", "cpus", "memory_kib", "fpr", "mechanisms")
_SAMPLE = ("benchmark", "mode", "round", "metrics", "operations", "wrong", "output", "latency_ns")
# The first of them that a kernel has is what it says of shootdowns received.
_COUNTERS = (RECEIVED, INTERRUPTS, "interrupts_tlb")
# What sharers cost, of benchmarks in which they did something.
_COSTS = (FILLS, FAULTS, TABLES)
_REASON = 200

Record = dict[str, Any]


def kept(lines: Iterable[str]) -> str:
    """Return the lines that are kept. lines: those of a file that store.read() accepts."""
    suite: Record = {}
    boots: list[tuple[Record, Record, list[Record]]] = []
    for line in lines:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            break  # cut off
        kind = record["type"]
        if kind == "suite":
            known = {**suite.get("benchmarks", {}), **record.get("benchmarks", {})}
            suite = {**record, "benchmarks": known}
        elif kind == "host":
            boots.append((record, {}, []))
        elif kind == "environment" and boots:
            boots[-1] = (boots[-1][0], record, boots[-1][2])
        elif kind == "sample" and boots:
            boots[-1][2].append(record)
    last = {
        (s["benchmark"], host.get("cpus"), s["mode"], s["round"]): s
        for host, _, samples in boots
        for s in samples
    }
    counting = {id(sample) for sample in last.values()}
    filled = {s["benchmark"] for s in last.values() if s.get("counters", {}).get(FILLS)}
    suite = _picked(suite, _SUITE)
    suite["benchmarks"] = {
        name: {key: about[key] for key in _BENCHMARK if key in about}
        for name, about in suite["benchmarks"].items()
    }
    found = [suite]
    added = _histograms(boots, counting)
    for host, environment, samples in boots:
        own = [s for s in samples if id(s) in counting]
        if not own:
            continue
        kind = str(host.get("kernel_kind", ""))
        found.append({**_picked(host, _HOST), **({"kernel_kind": Path(kind).name} if kind else {})})
        found += [_picked(environment, _ENVIRONMENT)] if environment else []
        found += [_sample(s, added.get(id(s), []), suite, filled) for s in own]
    return "".join(json.dumps(record) + "\n" for record in found)


def _histograms(
    boots: Iterable[tuple[Record, Record, list[Record]]], counting: set[int]
) -> dict[int, list[list[int]]]:
    """Return the sums of the histograms of a mode, by the id of its first sample that has one."""
    first: dict[tuple[Any, ...], int] = {}
    sums: dict[int, Counter[int]] = {}
    for host, _, samples in boots:
        for s in samples:
            if id(s) in counting and s.get("histogram") and not s.get("failed"):
                key = (s["benchmark"], host.get("cpus"), s["mode"])
                own = sums.setdefault(first.setdefault(key, id(s)), Counter())
                own.update({int(ns): int(count) for ns, count in s["histogram"]})
    return {sample: [[ns, n] for ns, n in sorted(own.items())] for sample, own in sums.items()}


def _picked(record: Mapping[str, Any], names: Iterable[str]) -> Record:
    head = {"schema": record["schema"], "type": record["type"]}
    return {**head, **{name: record[name] for name in names if name in record}}


def _sample(
    sample: Record, histogram: list[list[int]], suite: Mapping[str, Any], filled: set[str]
) -> Record:
    found = _picked(sample, _SAMPLE)
    if "failed" in sample:
        return {**found, "failed": str(sample["failed"])[:_REASON]}
    if suite.get("benchmarks", {}).get(sample["benchmark"], {}).get("verify") != "same":
        found.pop("output", None)  # nobody compares it
    counters = sample.get("counters", {})
    names = [name for name in _COUNTERS if name in counters][:1]
    names += [name for name in _COSTS if name in counters and sample["benchmark"] in filled]
    found["counters"] = {name: counters[name] for name in names}
    return {**found, "histogram": histogram} if histogram else found
