# SPDX-License-Identifier: GPL-2.0-only
"""A pool that evicts: a sample for each way, and what is missed is named."""

import json
from typing import Any

import pytest

from ceasefire.bench.measure import pool
from ceasefire.bench.results import store
from ceasefire.bench.verbs import pool as verb
from ceasefire.errors import Failure


def line(way: str, uses: int, received: int, **more: Any) -> str:
    found = {"type": "pool", "way": way, "round": 1, "ns": 10**9, "evicted": 1000, "processes": 1}
    return json.dumps({**found, "uses": uses, "received": received, **more})


def samples(*lines: str, cpus: int = 2) -> list[store.Sample]:
    host = {"schema": store.SCHEMA, "type": "host", "cpus": cpus}
    texts = [json.dumps(host)]
    texts += [json.dumps({"schema": store.SCHEMA, **s}) for s in pool.samples_in(lines)]
    return list(store.parse(texts).samples)


def test_a_sample_has_rates_and_shootdowns_of_a_page() -> None:
    (found,) = pool.samples_in(['{"type": "environment"}', line("lazy", 500, 3)])
    assert found["mode"] == "lazy" and found["operations"] == 1000
    assert found["metrics"] == {"rate": 500.0, "received": 0.003}


def test_samples_of_a_tree_are_numbered_for_each_way(capsys: pytest.CaptureFixture[str]) -> None:
    def tree(way: str, ops: int, received: int) -> str:
        counters = {"nr_tlb_remote_flush_received": received}
        found = {"type": "ycsb", "evict": way, "ns": 10**9, "ops": ops, "counters": counters}
        return json.dumps({**found, "evicted": 100})

    lines = [tree(way, 600, 6 if way == "lazy" else 600) for way in pool.WAYS[pool.TREE]]
    found = list(pool.samples_in([*lines, *lines]))
    assert [sample["round"] for sample in found] == [1, 1, 1, 2, 2, 2]
    assert {sample["benchmark"] for sample in found} == {pool.TREE}
    assert verb.print_samples(samples(*lines)) == []
    shown = capsys.readouterr().out
    assert "a B+ tree" in shown


@pytest.mark.parametrize("text", ["no JSON", "{}", line("lazy", 1, 1, evicted=0)])
def test_damaged_lines_are_a_failure(text: str) -> None:
    with pytest.raises(Failure, match="damaged"):
        list(pool.samples_in([text]))


def test_what_is_missed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    remove = line("remove", 400, 1000)
    good = [line("lazy", 600, 1), line("vector", 600, 100), remove, line("dontneed", 500, 1000)]
    assert verb.print_samples(samples(*good)) == []
    shown = [text.split() for text in capsys.readouterr().out.splitlines()]
    assert ["2", "lazy", "0.00100", "1.00%"] in shown
    assert ["2", "dontneed", "1.00000", "1000.00%", "1.20", "(1.20..1.20)"] in shown
    bad = [line("lazy", 590, 2), line("vector", 600, 100), remove, line("dontneed", 500, 1000)]
    assert verb.print_samples(samples(*bad)) == [
        "2 CPUs: lazy has more than 1% of the shootdowns",
        "2 CPUs: lazy has less than 1.0 of the uses of vector",
        "2 CPUs: lazy has less than 1.2 of the uses of dontneed",
    ]
    # More emulated CPUs than the host has say nothing about rates.
    assert len(verb.print_samples(samples(*bad, cpus=8))) == 1
    with pytest.raises(Failure, match="no samples of: vector, remove, dontneed"):
        verb.print_samples(samples(line("lazy", 1, 1)))


def test_processes_have_no_anonymous_memory(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line(way, 1, 1, processes=2) for way in ("lazy", "vector", "remove")]
    assert verb.print_samples(samples(*lines)) == [
        "2 CPUs: lazy has more than 1% of the shootdowns"
    ]
    assert "a pool of several processes" in capsys.readouterr().out
