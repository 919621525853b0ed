# SPDX-License-Identifier: GPL-2.0-only
"""What the page of a suite's results has: histograms, lost compute, curves over CPUs, the paper,
the stock kernel.
"""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ceasefire.bench.catalog import spec
from ceasefire.bench.figures import compare, ideal, paper
from ceasefire.bench.latency import Histogram, added
from ceasefire.bench.measure import agent
from ceasefire.bench.report import axes, charts, page
from ceasefire.bench.results import store


@pytest.fixture
def made(suite_results: Path) -> store.Results:
    return store.read(suite_results)


def test_agent_keeps_a_histogram(tmp_path: Path) -> None:
    line = '{"rate": 5, "histogram": [[32, 1], [36, 2]], "latency_ns": {"p50": 36}}'
    task = agent.Task("b", "off", 0, f"echo '{line}'", {"rate": "rate"}, "rate", 60.0)
    record = agent.sample(task, tmp_path)
    assert record["histogram"] == [[32, 1], [36, 2]]
    assert record["latency_ns"] == {"p50": 36}
    suite = '{"schema": 2, "type": "suite"}'
    (found,) = store.parse([suite, json.dumps(record)]).samples
    assert found.histogram == {32: 1, 36: 2}


def test_histograms_of_all_rounds_are_added(made: store.Results) -> None:
    own = [s for s in made.samples if (s.benchmark, s.cpus) == ("apache", 2)]
    found = added(s.histogram for s in own if s.mode == "off")
    assert found is not None
    assert found.total == 5 * 200_001
    assert found.median == pytest.approx(40_000, rel=0.1)
    assert added([]) is None


def test_steps_have_the_shares_of_what_is_in_them() -> None:
    steps = Histogram({1024: 3, 1152: 1, 4096: 4}).steps()
    assert [(s.low, s.high) for s in steps] == [(1024, 1280), (4096, 5120)]
    # A bucket of a uniform density over a doubling has a quarter of it, whatever its width.
    even = {1024 + 128 * n: 1 for n in range(8)}
    assert sum(s.share for s in Histogram(even).steps()) == pytest.approx(1.0, rel=0.05)
    assert all(s.low < s.high for s in Histogram({0: 1, 4: 1, 28: 1, 32: 1}).steps())


def test_lost_is_against_the_ideal_of_the_same_round(made: store.Results) -> None:
    found = ideal.lost(made)
    assert [(loss.benchmark, loss.cpus) for loss in found] == [
        ("munmap-other", 2),
        ("munmap-other", 4),
    ]
    assert found[0].shares["off"].middle == pytest.approx(0.22, abs=0.04)
    assert found[0].shares["fpr"].middle == pytest.approx(0.03, abs=0.04)
    assert found[0].shares["off"].low < found[0].shares["off"].middle


def test_stock_is_one_more_mode_with_a_note(made: store.Results) -> None:
    compared = compare.comparisons(made)
    stock = next(c for c in compared if (c.benchmark, c.mode) == ("apache", "stock"))
    assert stock.rounds == 5
    assert stock.ratios["requests"].middle == pytest.approx(1.01, abs=0.05)
    kinds = {s.kernel_kind for s in made.samples if s.mode == "stock"}
    assert kinds == {"stock"}
    text = page.render([made])
    assert "in boots of its own" in text
    assert "2 CPUs, stock (another boot): 1.02 times the shootdowns of off" in text


def test_page_has_it_all(made: store.Results) -> None:
    text = page.render([made])
    for title in (
        "Shootdowns received for each operation, over CPUs",
        "requests: ratio to off, over CPUs",
        "Compute lost to shootdowns",
        "Latency, 2 CPUs: share of the operations by times the median of off",
        "Beside the FPR paper",
    ):
        assert title in text
    # No times, where CPUs are emulated; none at all where there are more than the host has.
    assert "µs" not in text and "Latency, 16 CPUs" not in text
    for svg in text.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + svg.partition("</svg>")[0] + "</svg>")


def test_times_are_shown_where_they_mean_something(suite_results: Path) -> None:
    path = suite_results / "samples.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("in a guest with emulated CPUs (TCG)", "in place"), "utf-8")
    shown = page.render([store.read(suite_results)])
    assert "Latency, 2 CPUs: share of the operations by time" in shown
    assert "100 µs" in shown and "median of off" not in shown


def test_old_results_have_no_histogram(made: store.Results) -> None:
    assert charts.latency_plot("b", 2, {}, relative=True) == ""
    assert charts.latency_plot("b", 2, {"fpr": Histogram({32: 1})}, relative=True) == ""


def test_the_paper_is_quoted_as_the_suites_have_it(made: store.Results) -> None:
    compared = compare.comparisons(made)
    facts = paper.facts(made.suite)
    line = paper.beside("apache", facts["apache"], compared)
    assert line is not None
    assert "+22 %" in line.paper[0] and line.note
    assert line.ours[0].startswith("requests, 2 CPUs: +18 % (+1")
    # One that the suites do not have keeps what was recorded.
    other = paper.beside("munmap-other", facts["munmap-other"], compared)
    assert other is not None and other.paper == ("compute: +21 %",)
    assert paper.beside("x", {}, compared) is None
    # Nobody measured the mode that it is about.
    assert paper.beside("apache", facts["apache"], compared, paper.LATR) is None


def test_each_paper_is_beside_the_mode_that_it_is_about(made: store.Results) -> None:
    lazy = [replace(s, mode="latr") for s in made.samples if s.mode == "fpr"]
    both = replace(made, samples=(*made.samples, *lazy))
    compared = compare.comparisons(both)
    facts = paper.facts(both.suite)
    lines = {p: paper.beside("apache", facts["apache"], compared, p) for p in paper.PAPERS}
    told = {p.mode: line.paper for p, line in lines.items() if line is not None}
    assert "+22 %" in told["fpr"][0] and "+59.9 %" in told["latr"][0]
    only = [c for c in compared if c.mode != "fpr"]
    assert paper.beside("apache", facts["apache"], only) is None
    text = page.render([both])
    for each in paper.PAPERS:
        assert text.count(f'<h2 id="{each.anchor}">') == 1
        assert f'<a href="#{each.anchor}">' in text
    # No heading where nothing is below it.
    assert 'id="paper-latr"' not in page.render([made])


def test_every_figure_of_the_paper_has_a_word_on_what_it_is_worth() -> None:
    benchmarks, _ = spec.load_all()
    for bench in benchmarks.values():
        assert not bench.paper or bench.paper_note, bench.name
        assert not bench.paper_latr or bench.paper_latr_note, bench.name


def test_few_rounds_are_no_interval() -> None:
    one = compare.interval([2.0])
    assert paper.change(one) == "+100 % in one round only"
    assert page.said_of(one, "more") == "2.00 of off, in one round only"
    assert page.said_of(compare.interval([2.0, 3.0]), "more") == "2.50 of off, in 2 rounds only"


def test_a_machine_is_named_once(made: store.Results) -> None:
    (line,) = page.machines([made, made])
    assert line.endswith("6.12-run, made up, 4 CPUs in the host; commit 0123456789ab of 2026-01-01")


def test_changes_are_in_percent() -> None:
    assert paper.change(compare.Interval(1.215, 1.1, 1.3, ())) == "+22 % (+10..+30)"
    assert paper.change(compare.Interval(1.004, 0.995, 1.02, ())) == "+0.4 % (-0.5..+2.0)"


@pytest.mark.parametrize(
    ("values", "log", "first", "last"),
    [
        ([1.0, 2.0], False, "0", "2"),
        ([0.001, 5.0], True, "0.001", "10"),
        ([0.0, 5.0], True, "0", "10"),
        ([0.0, 0.0], False, "0", "1"),
        ([7.3], False, "0", "8"),
    ],
)
def test_axes(values: list[float], log: bool, first: str, last: str) -> None:
    axis = axes.counts_axis(values)
    assert axis.log is log
    assert (axis.ticks[0][1], axis.ticks[-1][1]) == (first, last)
    assert [axis.share(axis.low), axis.share(axis.high)] == [0.0, 1.0]
    assert all(0 <= axis.share(value) <= 1 for value in values)
