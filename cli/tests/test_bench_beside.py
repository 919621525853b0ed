# SPDX-License-Identifier: GPL-2.0-only
"""What FPR costs programs beside: counts meet their lines, and too much is said."""

import json
import struct

import pytest

from ceasefire.bench import beside
from ceasefire.errors import Failure


def lines_of(*samples: tuple[str, str, int]) -> str:
    """Return what beside-bench prints for (case, mode, operations)."""
    lines: list[dict[str, object]] = [{"type": "environment"}]
    for case, mode, ops in samples:
        lines.append({"type": "beside", "case": case, "mode": mode, "ops": ops})
    return "".join(json.dumps(line) + "\n" for line in lines)


def totals_of(*counts: int) -> bytes:
    return b"".join(struct.pack("<Q", count) for count in counts)


def test_counts_belong_to_the_lines_in_their_order() -> None:
    text = lines_of(("malloc", "off", 10), ("malloc", "on", 20))
    samples = beside.samples_of(beside.with_counts(text, "beside", totals_of(1000, 3000)))
    assert [(s.mode, s.per_operation) for s in samples] == [("off", 100.0), ("on", 150.0)]


@pytest.mark.parametrize("counts", [(), (1,), (1, 2, 3)])
def test_a_count_that_is_missing_or_left_over_is_a_failure(counts: tuple[int, ...]) -> None:
    text = lines_of(("malloc", "off", 10), ("malloc", "on", 20))
    with pytest.raises(Failure, match="2 samples have"):
        beside.with_counts(text, "beside", totals_of(*counts))


@pytest.mark.parametrize("text", ["no JSON\n", "{}\n", "[1]\n", ""])
def test_other_output_is_a_failure(text: str) -> None:
    with pytest.raises(Failure):
        beside.with_counts(text, "beside", b"")


@pytest.mark.parametrize(("more", "verdict"), [(0.4, "pass"), (0.6, "fail")])
def test_the_worst_case_decides(
    more: float, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [
        beside.Sample(case, mode, cost)
        for case, cost in (("malloc", 1000.0), ("network", 500.0))
        for mode in (beside.OFF, beside.ON)
    ]
    samples.append(beside.Sample("page-fault", beside.OFF, 1000.0))
    samples.append(beside.Sample("page-fault", beside.ON, 1000.0 + 10 * more))
    worst = beside.print_samples(samples)
    assert worst == pytest.approx(more)
    rows = [line for line in capsys.readouterr().out.splitlines() if "page-fault" in line]
    assert len(rows) == 1
    assert rows[0].split()[-1] == verdict
