# SPDX-License-Identifier: GPL-2.0-only
"""What morsels take: waits are taken off, and what takes too much is said."""

import argparse
import json
from typing import Any

import pytest

from ceasefire.bench.cost import morsels
from ceasefire.bench.results import store
from ceasefire.bench.verbs import morsels as verb
from ceasefire.errors import Failure, UsageError


def line(case: str, variant: str, size: int, cost: float, **more: Any) -> dict[str, Any]:
    found = {"case": case, "variant": variant, "size": size, "instructions": cost}
    return {**found, "calls": 1, "faults": 0, "repeat": 0, **more}


def rows_of(*lines: dict[str, Any]) -> list[morsels.Row]:
    texts = [json.dumps({"schema": store.SCHEMA, **s}) for s in morsels.samples_of(lines)]
    return morsels.rows_of(store.parse(texts).samples)


def test_waits_are_taken_off_and_calls_divide() -> None:
    costs = enumerate((500.0, 540.0, 580.0))
    takes = [line("take", "morsel", 4096, cost, calls=4, repeat=n) for n, cost in costs]
    rows = rows_of(*takes, line("wait", "-", 4096, 100.0), line("wait", "-", 65536, 510.0))
    assert rows == [morsels.Row("take", 4096, "morsel", 110.0, 100 * 20 / 110)]
    # There is no wait in the others.
    assert rows_of(line("map", "shm", 4096, 500.0), line("wait", "-", 1, 90.0))[0].cost == 500.0


def test_calls_that_take_less_than_the_wait_are_missed() -> None:
    rows = rows_of(line("take", "morsel", 4096, 80.0), line("wait", "-", 4096, 90.0))
    assert rows == [morsels.Row("take", 4096, "morsel", 0.0, 0.0)]
    (missed,) = morsels.missed(rows)
    assert "the wait took more" in missed
    with pytest.raises(Failure, match="no samples"):
        rows_of(line("wait", "-", 4096, 90.0))


def test_damaged_lines_are_a_failure() -> None:
    with pytest.raises(Failure, match="damaged"):
        rows_of({"case": "take", "variant": "morsel", "size": 4096, "instructions": 1})


@pytest.mark.parametrize(
    ("case", "size", "ways", "good"),
    [
        ("take", 4096, {"morsel": 100, "shm-remove": 100}, True),
        ("take", 4096, {"morsel": 101, "shm-remove": 100}, False),
        # Below 512 KiB nothing is asked but for single pages.
        ("take", 65536, {"morsel": 200, "shm-remove": 100}, True),
        ("take", 1 << 19, {"morsel": 10, "shm-remove": 150}, True),
        ("take", 1 << 19, {"morsel": 10.1, "shm-remove": 150}, False),
        ("take", 1 << 30, {"morsel-faults": 10, "shm-remove-faults": 60}, True),
        ("take", 1 << 30, {"morsel-faults": 10, "shm-remove-faults": 59}, False),
        ("map", 1 << 30, {"morsel": 1, "shm": 1000}, True),
        ("map", 1 << 30, {"morsel": 1, "shm": 999}, False),
        ("map", 1 << 21, {"morsel": 1, "shm": 9}, True),
        ("copy", 1 << 30, {"morsel": 1, "fork": 50}, True),
        ("copy", 1 << 30, {"morsel": 1, "fork": 49}, False),
        ("copy", 1 << 21, {"morsel": 1, "fork": 2}, True),
    ],
)
def test_limits(case: str, size: int, ways: dict[str, float], good: bool) -> None:
    rows = rows_of(*(line(case, way, size, cost) for way, cost in ways.items()))
    assert len(morsels.missed(rows)) == (0 if good else 1)


@pytest.mark.parametrize("largest", ["1K", "2G", "much"])
def test_sizes_that_are_none(largest: str) -> None:
    with pytest.raises(UsageError):
        verb.main(argparse.Namespace(repeats="1", largest=largest, out=None))


def test_all_rows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    verb.print_rows(rows_of(line("map", "shm", 1 << 21, 371749.0)))
    shown = capsys.readouterr().out.splitlines()[-1]
    assert shown.split() == ["map", "2,097,152", "shm", "371,749", "0.0", "%"]


@pytest.mark.parametrize(
    ("size", "mode", "cost", "good"),
    [
        (4096, "unit-1G", 4100, True),
        (4096, "unit-1G", 4101, False),
        # 128 pages, one table, and 512 tables; or all their pages.
        (1 << 19, "unit-1G", 16_800, True),
        (1 << 19, "unit-1G", 16_801, False),
        (1 << 21, "unit-1G", 4101, False),
        (1 << 21, "unit-2M", 55_200, True),
        (1 << 30, "unit-1G", 55_200, True),
        # As before below 1 GiB, then one entry for each.
        (1 << 29, "unit-512G", 29_600, True),
        (1 << 30, "unit-512G", 4100, True),
        (1 << 30, "unit-512G", 4101, False),
        (1 << 36, "unit-512G", 10_400, True),
        (1 << 36, "unit-512G", 10_401, False),
    ],
)
@pytest.mark.parametrize("case", [morsels.CALL, morsels.SPARSE])
def test_a_call_alone_is_so_much_for_each_cut(
    case: str, size: int, mode: str, cost: float, good: bool
) -> None:
    found = morsels.missed(rows_of(line(case, mode, size, cost)))
    assert (not found) == good and all("must be" in text for text in found)
