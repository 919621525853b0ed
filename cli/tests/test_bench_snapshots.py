# SPDX-License-Identifier: GPL-2.0-only
"""Snapshots of a table: a sample for each way, and what is missed is named."""

import json

import pytest

from ceasefire.bench.measure import snapshots
from ceasefire.bench.results import store
from ceasefire.bench.verbs import snapshots as verb
from ceasefire.errors import Failure


def line(way: str, took: int, count: int = 10, writes: int = 1000) -> str:
    found = {"type": "snapshots", "way": way, "round": 1, "ns": 10**9, "writes": writes}
    counts = {"snapshots": count, "snapshot_ns": took, "longest_ns": 50 * took + 10}
    return json.dumps({**found, **counts, "faults": 20 * count, "received": 3 * count})


def samples(*lines: str) -> list[store.Sample]:
    texts = [json.dumps({"schema": store.SCHEMA, "type": "host", "cpus": 2})]
    texts += [json.dumps({"schema": store.SCHEMA, **s}) for s in snapshots.samples_in(lines)]
    return list(store.parse(texts).samples)


def test_a_sample_is_for_each_snapshot() -> None:
    (found,) = snapshots.samples_in(['{"type": "environment"}', line("morsel", 500)])
    assert found["mode"] == "morsel" and found["operations"] == 10
    assert found["metrics"] == {
        "rate": 1000.0,
        "snapshot": 500.0,
        "longest": 25010.0,
        "faults": 20.0,
        "received": 3.0,
    }


@pytest.mark.parametrize("text", ["no JSON", "{}", '{"type": "snapshots", "snapshots": 1}'])
def test_damaged_lines_are_a_failure(text: str) -> None:
    with pytest.raises(Failure, match="damaged"):
        list(snapshots.samples_in([text]))


def test_what_is_missed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    none = line("none", 0, count=0)
    good = [none, line("morsel", 100, writes=900), line("fork", 2000, writes=800)]
    assert verb.print_samples(samples(*good)) == []
    shown = [text.split() for text in capsys.readouterr().out.splitlines()]
    assert ["2", "morsel", "5.0%", "0.90", "(0.90..0.90)", "501.0", "20", "3.0"] in shown
    bad = [none, line("morsel", 2001), line("fork", 2000)]
    assert verb.print_samples(samples(*bad)) == ["2 CPUs: a copy takes longer to make than fork()"]
    with pytest.raises(Failure, match="no samples of: fork"):
        verb.print_samples(samples(none, line("morsel", 1)))
