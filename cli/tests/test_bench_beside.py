# SPDX-License-Identifier: GPL-2.0-only
"""What FPR costs programs beside: counts meet their lines, and too much is said."""

import json
import struct

import pytest

from ceasefire.bench.cost import beside, marked
from ceasefire.bench.results import store
from ceasefire.bench.verbs import beside as verb
from ceasefire.errors import Failure


def lines_of(*samples: tuple[str, str, int]) -> str:
    """Return what beside-bench prints for (case, mode, operations)."""
    lines: list[dict[str, object]] = [{"type": "environment"}]
    for case, mode, ops in samples:
        lines.append({"type": "beside", "case": case, "mode": mode, "repeat": 2, "ops": ops})
    return "".join(json.dumps(line) + "\n" for line in lines)


def totals_of(*counts: int) -> bytes:
    return b"".join(struct.pack("<Q", count) for count in counts)


def test_counts_belong_to_the_lines_in_their_order() -> None:
    text = lines_of(("malloc", "off", 10), ("malloc", "fpr", 20))
    lines = marked.with_counts(text, "beside", totals_of(1000, 3000))
    samples = list(beside.samples_of(lines, 10))
    costs = [(s["mode"], s["round"], s["metrics"]["instructions"]) for s in samples]
    assert costs == [("off", 12, 100.0), ("fpr", 12, 150.0)]
    for line in samples:
        record = json.dumps({"schema": store.SCHEMA, **line})
        assert store.well_formed(record.encode()) is not None
    with pytest.raises(Failure, match="damaged"):
        list(beside.samples_of([{**lines[0], "ops": 0}], 0))


@pytest.mark.parametrize("counts", [(), (1,), (1, 2, 3)])
def test_a_count_that_is_missing_or_left_over_is_a_failure(counts: tuple[int, ...]) -> None:
    text = lines_of(("malloc", "off", 10), ("malloc", "fpr", 20))
    with pytest.raises(Failure, match="2 samples have"):
        marked.with_counts(text, "beside", totals_of(*counts))


@pytest.mark.parametrize("text", ["no JSON\n", "{}\n", "[1]\n", ""])
def test_other_output_is_a_failure(text: str) -> None:
    with pytest.raises(Failure):
        marked.with_counts(text, "beside", b"")


def sample(case: str, mode: str, cost: float) -> store.Sample:
    record = {"type": "sample", "benchmark": case, "mode": mode, "round": 0}
    metrics = {"metrics": {"instructions": cost}}
    (found,) = store.parse([json.dumps({"schema": store.SCHEMA, **record, **metrics})]).samples
    return found


def test_cycles_that_flush_are_no_skips() -> None:
    line = {"case": "c", "variant": "latr", "repeat": 1, "ops": 100, "instructions": 700}
    lines = [{**line, "counters": {"nr_tlb_remote_flush": flushes}} for flushes in (5, 6)]
    (found,) = beside.skips_of(lines[:1])
    assert found["mode"] == "latr, skip" and found["metrics"] == {"instructions": 7.0}
    with pytest.raises(Failure, match="sent, not skipped"):
        list(beside.skips_of(lines))
    assert not list(beside.skips_of([{**lines[1], "repeat": 0}]))


@pytest.mark.parametrize(("more", "verdict"), [(0.4, "pass"), (0.6, "fail")])
def test_the_worst_case_decides(
    more: float, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [
        sample(case, mode, cost)
        for case, cost in (("malloc", 1000.0), ("network", 500.0))
        for mode in ("off", "fpr")
    ]
    samples.append(sample("page-fault", "off", 1000.0))
    samples.append(sample("page-fault", "fpr", 1000.0 + 10 * more))
    worst = verb.print_samples(samples)
    assert worst == pytest.approx(more)
    rows = [line for line in capsys.readouterr().out.splitlines() if "page-fault" in line]
    assert len(rows) == 1
    assert rows[0].split()[-1] == verdict
