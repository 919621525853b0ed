# SPDX-License-Identifier: GPL-2.0-only
"""What tables of a CPU's own cost it: the limits hold, and both modes are what they say."""

import json
from typing import Any

import pytest

from ceasefire.bench.cost import own_tables
from ceasefire.bench.cost.own_tables import LIMITS, Limit, Row
from ceasefire.bench.results import store
from ceasefire.bench.verbs import sharers as verb
from ceasefire.errors import Failure


def sample(case: str, mode: str, cost: float) -> store.Sample:
    record = {"type": "sample", "benchmark": case, "mode": mode, "round": 0}
    metrics = {"metrics": {"instructions": cost}}
    (found,) = store.parse([json.dumps({"schema": store.SCHEMA, **record, **metrics})]).samples
    return found


def test_rows_have_the_lowest_of_both_modes() -> None:
    costs = [("switch", "off", v) for v in (110.0, 100.0, 105.0)]
    costs += [("switch", "sharers", v) for v in (130.0, 125.0, 150.0)]
    rows = own_tables.rows_of(sample(*cost) for cost in costs)
    assert rows == [Row("switch", 100.0, 125.0, 20.0)]


@pytest.mark.parametrize("costs", [[], [("fill", "off", 1.0)], [("fill", "sharers", 1.0)]])
def test_a_mode_without_samples_is_a_failure(costs: list[tuple[str, str, float]]) -> None:
    with pytest.raises(Failure, match="no samples"):
        own_tables.rows_of(sample(*cost) for cost in costs)


@pytest.mark.parametrize(
    ("limit", "on", "kept"),
    [
        (Limit(percent=5), 1050.0, True),
        (Limit(percent=5), 1051.0, False),
        (Limit(instructions=30), 1030.0, True),
        (Limit(instructions=30), 1031.0, False),
        (Limit(percent=0.1), 900.0, True),
    ],
)
def test_limits(limit: Limit, on: float, kept: bool) -> None:
    assert limit.is_kept(1000.0, on) is kept


@pytest.mark.parametrize(
    ("mode", "fills", "good"),
    [("sharers", 256, True), ("sharers", 3, False), ("off", 0, True), ("off", 256, False)],
)
def test_a_mode_without_its_tables_is_a_failure(mode: str, fills: int, good: bool) -> None:
    line: dict[str, Any] = {
        "benchmark": "first-touch",
        "mode": mode,
        "operations": 256,
        "counters": {"sharers_fill": fills},
    }
    if good:
        assert list(own_tables.with_tables([line])) == [line]
    else:
        with pytest.raises(Failure, match="not the page tables of the mode"):
            list(own_tables.with_tables([line]))


def test_what_takes_too_much_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Row(case, 1000.0, 1000.5, 0.1) for case in LIMITS]
    rows.append(Row("fill", 4.0, 800.0, 0.1))
    assert verb.print_rows(rows) == []
    rows[0] = Row(rows[0].case, 1000.0, 1200.0, 0.1)
    assert verb.print_rows(rows) == [rows[0].case]
    line = next(s for s in capsys.readouterr().out.splitlines() if s.startswith("fill"))
    assert line.split() == ["fill", "4", "800", "+796", "-", "0.10", "%", "-"]
