# SPDX-License-Identifier: GPL-2.0-only
"""Shootdowns of a vector: a sample for each way, and what is too much is named."""

import json
from typing import Any

import pytest

from ceasefire.bench.measure import vectors
from ceasefire.bench.results import store
from ceasefire.bench.verbs import vectors as verb
from ceasefire.errors import Failure


def line(way: str, received: int, **more: Any) -> str:
    found = {"type": "vector", "way": way, "processes": 2, "mappings": 4, "rounds": 10}
    return json.dumps({**found, "received": received, **more})


def samples(*lines: str, cpus: int = 4) -> list[store.Sample]:
    host = {"schema": store.SCHEMA, "type": "host", "cpus": cpus}
    texts = [json.dumps(host)]
    texts += [json.dumps({"schema": store.SCHEMA, **s}) for s in vectors.samples_in(lines)]
    return list(store.parse(texts).samples)


def test_a_sample_is_what_one_call_of_all_sends() -> None:
    (found,) = vectors.samples_in(['{"type": "environment"}', line("vector", 30)])
    assert found["benchmark"] == "2x4" and found["mode"] == "vector"
    assert found["metrics"] == {"received": 3.0} and found["operations"] == 10


@pytest.mark.parametrize("text", ["no JSON", "{}", line("vector", 3, rounds=0)])
def test_damaged_lines_are_a_failure(text: str) -> None:
    with pytest.raises(Failure, match="damaged"):
        list(vectors.samples_in([text]))


def test_more_than_one_for_each_cpu_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert verb.print_samples(samples(line("vector", 30), line("punch", 7658))) == []
    shown = [text.split() for text in capsys.readouterr().out.splitlines()]
    assert ["4", "2", "4", "vector", "3.0", "1.00"] in shown
    assert ["4", "2", "4", "punch", "765.8", "255.27"] in shown
    assert verb.print_samples(samples(line("vector", 31))) == ["2x4 with 4 CPUs"]
