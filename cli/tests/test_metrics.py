# SPDX-License-Identifier: GPL-2.0-only
"""Metrics: read by the parser of prometheus-client, on made-up kernels with all and with little."""

import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import parser as older
from prometheus_client.openmetrics import parser as newer

from ceasefire.__main__ import main
from ceasefire.metrics import families, text
from ceasefire.metrics.families import Family, Sample


def parsed(content: str) -> list[Any]:
    """Read OpenMetrics, as strictly as the parser can."""
    return list(newer.text_string_to_metric_families(content))  # type: ignore[no-untyped-call]


def parsed_older(content: str) -> list[Any]:
    """Read the older format."""
    return list(older.text_string_to_metric_families(content))


def samples(found: Iterable[Any]) -> dict[str, float]:
    """Return the values of all samples; each has a name of its own."""
    pairs = [
        (sample.name + "".join(f"[{value}]" for value in sample.labels.values()), sample.value)
        for family in found
        for sample in family.samples
    ]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["stat", "--openmetrics"]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("stock_kernel")
def test_stock_kernel_has_what_every_kernel_has(capsys: pytest.CaptureFixture[str]) -> None:
    found = samples(parsed(printed(capsys)))
    assert found == {
        "ceasefire_tlb_interrupts_total": 150,
        "ceasefire_page_tables_bytes": 3 * families._PAGE,
    }


@pytest.mark.usefixtures("whole_kernel")
def test_every_counter_of_the_kernel_is_there_once(
    kernel_events: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys)
    assert out.endswith("\n# EOF\n")
    found = parsed(out)
    values = [s.value for family in found if family.type == "counter" for s in family.samples]
    assert sorted(values) == sorted([150, *range(1, len(kernel_events) + 1)])
    assert all(family.name.startswith("ceasefire_") for family in found)
    assert all(family.type in ("counter", "gauge") for family in found)
    # What no words are known for has the counter's name in its place.
    assert [family.name for family in found if "/proc/vmstat" in family.documentation] == []
    assert {family.unit for family in found} == {"", "bytes", "pages", "seconds"}


@pytest.mark.usefixtures("whole_kernel")
def test_causes_debts_and_states(
    kernel_events: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    number = {name: index for index, name in enumerate(kernel_events, 1)}
    found = samples(parsed(printed(capsys)))
    for metric, counter in {
        "ceasefire_shootdowns_sent_total": "nr_tlb_remote_flush",
        "ceasefire_shootdowns_received_total": "nr_tlb_remote_flush_received",
        "ceasefire_local_flushes_total[one]": "nr_tlb_local_flush_one",
        "ceasefire_fpr_skip_pages_total": "fpr_skip_pages",
        "ceasefire_fpr_flush_total[dirty]": "fpr_flush_dirty",
        "ceasefire_fpr_map_ineligible_total[file]": "fpr_map_ineligible_file",
        "ceasefire_fpr_evict_flush_total[young]": "fpr_evict_flush_young",
        "ceasefire_fpr_drain_total[cgroup]": "fpr_drain_cgroup",
        "ceasefire_fpr_drain_tables_total": "fpr_drain_tables",
        "ceasefire_debts_paid_total[tick]": "fpr_tick_flush",
        "ceasefire_debts_paid_total[drain]": "fpr_drain_flush",
        "ceasefire_debts_paid_total[hints]": "latr_hint_settle",
        "ceasefire_latr_flush_total[limit]": "latr_flush_limit",
        "ceasefire_latr_late_cpus_total": "latr_late",
        "ceasefire_sharers_flush_total[remote]": "sharers_flush_remote",
        "ceasefire_sharers_all_total[whole]": "sharers_all_whole",
    }.items():
        assert found[metric] == number[counter], metric
    for metric, value in {
        "ceasefire_mechanism_enabled[latr]": 1,
        "ceasefire_mechanism_for_all[latr]": 0,
        "ceasefire_mechanism_for_all[sharers]": 1,
        "ceasefire_fpr_parked_bytes": 300 * families._PAGE,
        "ceasefire_fpr_contexts": 2,
        "ceasefire_fpr_tag_bytes": 8192,
        "ceasefire_fpr_debt_age_limit_seconds": 1,
        "ceasefire_latr_settle_seconds": 0.012,
        "ceasefire_mechanism_enabled[morsel]": 0,
        "ceasefire_morsel_bytes": 20 * families._PAGE,
        "ceasefire_morsel_limit_bytes": 40 * families._PAGE,
    }.items():
        assert found[metric] == value, metric


def test_counter_of_a_newer_kernel_is_there(
    stock_kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stock_kernel / "vmstat").write_text(
        "fpr_new_thing 7\nfpr_flush_mars 8\nfpr_flush_ 9\nfpr_a-b 1\n"
    )
    found = samples(parsed(printed(capsys)))
    assert found["ceasefire_fpr_new_thing_total"] == 7
    assert found["ceasefire_fpr_flush_total[mars]"] == 8
    assert found["ceasefire_fpr_flush__total"] == 9
    assert not any("a-b" in name for name in found)


def test_counters_are_not_rounded(stock_kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stock_kernel / "vmstat").write_text(f"fpr_skip {2**64 - 1}\n")
    assert f"ceasefire_fpr_skip_total {2**64 - 1}\n" in printed(capsys)


def test_text_of_others_cannot_break_a_line() -> None:
    words = 'a "b" \\ c\nd'
    odd = Family("ceasefire_odd", families.COUNTER, words, (Sample(1, ("cause", words)),))
    for found in (parsed(text.openmetrics([odd])), parsed_older(text.prometheus([odd]))):
        (family,) = found
        assert family.documentation == f"{words}."
        assert family.samples[0].labels == {"cause": words}


def test_textfile_has_the_same_as_counters(
    whole_kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = parsed(printed(capsys))
    path = whole_kernel / "ceasefire.prom"
    assert main(["stat", "--textfile", str(path)]) == 0
    assert capsys.readouterr().out == ""
    content = path.read_text(encoding="utf-8")
    found = parsed_older(content)
    assert samples(found) == samples(expected)
    assert {f.name: f.type for f in found} == {f.name: f.type for f in expected}
    # A type that is not of the older format, or a type twice, would make node_exporter refuse all.
    declared = re.findall(r"^# TYPE (\S+) (\S+)$", content, re.MULTILINE)
    assert len(dict(declared)) == len(declared)
    assert {kind for _, kind in declared} == {"counter", "gauge"}


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_textfile_is_for_everybody_and_replaced_as_a_whole(
    mask: int, stock_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stock_kernel / "collector"
    folder.mkdir()
    path = folder / "ceasefire.prom"
    path.write_text("before\n")
    seen = []

    def replace(source: Path, target: Path) -> Path:
        # Complete before it has the name, in the folder, and no file for node_exporter until then.
        seen.append((source.parent, source.suffix == ".prom", source.read_text()[-1]))
        assert target.read_text() == "before\n"
        source.rename(target)
        return target

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr("os.umask", lambda _: mask)
    assert main(["stat", "--textfile", str(path)]) == 0
    assert seen == [(folder, False, "\n")]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [p.name for p in folder.iterdir()] == ["ceasefire.prom"]


def test_nothing_is_left_when_it_fails(
    stock_kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stock_kernel / "collector"
    folder.mkdir()
    path = folder / "ceasefire.prom"
    path.write_text("before\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert main(["stat", "--textfile", str(path)]) == 1
    says = f"ceasefire stat: cannot write {path}: No space left on device\n"
    assert capsys.readouterr().err == says
    assert [(p.name, p.read_text()) for p in folder.iterdir()] == [("ceasefire.prom", "before\n")]


@pytest.mark.parametrize(
    "words",
    [
        ["--openmetrics", "--json"],
        ["--openmetrics", "-p", "1"],
        ["--openmetrics", "-I", "100"],
        ["--openmetrics", "--", "true"],
        ["--openmetrics", "--textfile", "a.prom"],
        ["--textfile", "a.prom", "-n", "1"],
        ["--textfile", "a.prom", "--", "true"],
        ["--textfile", "a.txt"],
        ["--textfile", ".prom"],
        ["--textfile", ""],
    ],
)
def test_wrong_use_is_one_line_and_leaves_no_file(
    words: list[str],
    stock_kernel: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(stock_kernel)
    assert main(["stat", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert not (stock_kernel / "a.prom").exists()


def test_kernel_that_counts_nothing_is_status_77_and_leaves_the_file(
    stock_kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stock_kernel / "interrupts").write_text("  CPU0\n")
    path = stock_kernel / "ceasefire.prom"
    path.write_text("before\n")
    assert main(["stat", "--openmetrics"]) == 77
    assert main(["stat", "--textfile", str(path)]) == 77
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), path.read_text()) == ("", 2, "before\n")


def test_missing_folder_is_named(stock_kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = stock_kernel / "nosuch" / "a.prom"
    assert main(["stat", "--textfile", str(path)]) == 1
    assert f"cannot write {path}: No such file" in capsys.readouterr().err
