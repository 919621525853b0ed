# SPDX-License-Identifier: GPL-2.0-only
"""Results that are kept in the repository: small, the same figures, nothing of the machine."""

import json
from pathlib import Path

import pytest

from ceasefire.__main__ import main
from ceasefire.bench import latency
from ceasefire.bench.figures import compare, ideal
from ceasefire.bench.results import keep, store
from ceasefire.bench.verbs import keep as verb

KEPT = Path(__file__).resolve().parents[2] / verb.FOLDER


def text_of(folder: Path) -> str:
    return (folder / store.LINES).read_text(encoding="utf-8")


def test_kept_results_give_the_same_figures(suite_results: Path, tmp_path: Path) -> None:
    assert main(["bench", "keep", str(suite_results), "some", "--to", str(tmp_path)]) == 0
    before, after = store.read(suite_results), store.read(tmp_path / "some")
    assert compare.comparisons(after) == compare.comparisons(before)
    assert [loss.shares.keys() for loss in ideal.lost(after)] == [
        loss.shares.keys() for loss in ideal.lost(before)
    ]
    for cpus in (2, 4):
        sums = [
            latency.added(s.histogram for s in r.samples if s.cpus == cpus and s.mode == "off")
            for r in (before, after)
        ]
        assert sums[0] == sums[1] is not None
    assert len(text_of(tmp_path / "some")) < 0.7 * len(text_of(suite_results))
    assert [p.name for p in (tmp_path / "some").iterdir()] == [store.LINES]


def test_what_is_kept_can_be_kept_again(suite_results: Path) -> None:
    once = keep.kept(text_of(suite_results).splitlines())
    assert keep.kept(once.splitlines()) == once


def test_only_what_is_needed_is_kept() -> None:
    sample = {"schema": 2, "type": "sample", "benchmark": "b", "mode": "off", "round": 0}
    good = {"metrics": {"rate": 1.23456789}, "operations": 5, "output": "x", "run_seconds": 1}
    lines = [
        {"schema": 2, "type": "suite", "benchmarks": {"a": {"verify": "same"}}},
        {
            "schema": 2,
            "type": "suite",
            "benchmarks": {"b": {"verify": "self", "paper": {"x": "1"}}},
        },
        {"schema": 2, "type": "host", "cpus": 2, "disks": ["made:/home/x"]},
        {"schema": 2, "type": "environment", "command_line": "root=/x", "fpr": True},
        {**sample, "failed": "lost"},
        {"schema": 2, "type": "host", "cpus": 2, "comparable": True, "kernel_kind": "/x/bzImage"},
        {**sample, **good, "counters": {"fpr_skip": 1, "nr_tlb_remote_flush_received": 2}},
    ]
    text = keep.kept([*(json.dumps(line) for line in lines), '{"cut of'])
    suite, host, last = (json.loads(line) for line in text.splitlines())
    assert suite["benchmarks"] == {"a": {"verify": "same"}, "b": {"verify": "self"}}
    assert host == {
        "schema": 2,
        "type": "host",
        "cpus": 2,
        "comparable": True,
        "kernel_kind": "bzImage",
    }
    assert last == {
        **sample,
        "metrics": {"rate": 1.23456789},
        "operations": 5,
        "counters": {"nr_tlb_remote_flush_received": 2},
    }


@pytest.mark.parametrize(
    "case",
    [("../x", 2, "small letters"), ("big", 1, "at most 1000 can be kept")],
)
def test_what_cannot_be_kept_is_one_line(
    suite_results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    case: tuple[str, int, str],
) -> None:
    name, status, why = case
    monkeypatch.setattr(verb, "MOST", 1000)
    assert main(["bench", "keep", str(suite_results), name, "--to", str(tmp_path)]) == status
    out, err = capsys.readouterr()
    assert not out and len(err.splitlines()) == 1 and why in err
    assert not (tmp_path / name / store.LINES).exists()


@pytest.mark.parametrize("folder", sorted(KEPT.iterdir()), ids=lambda folder: folder.name)
def test_results_of_the_repository_are_what_keep_makes(folder: Path) -> None:
    text = text_of(folder)
    assert keep.kept(text.splitlines()) == text, "use `ceasefire bench keep`"
    assert len(text) <= verb.MOST
    assert not [place for place in ("/root", "/home", "/work", "/tmp") if place in text]
