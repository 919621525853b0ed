# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire stat`: why flushes were not skipped, in words, with shares and hints."""

import argparse
import io
import json
import re
from pathlib import Path

import pytest

from ceasefire import counters, modes, reasons, stat

VALUES = {
    "nr_tlb_remote_flush": 12,
    "fpr_map": 90,
    "fpr_map_ineligible_exec": 10,
    "fpr_skip": 970,
    "fpr_skip_pages": 4000,
    "fpr_flush_local": 0,
    "fpr_flush_dirty": 20,
    "fpr_flush_something_new": 10,
    "fpr_evict_skip": 3,
    "fpr_evict_flush_young": 0,
    "fpr_evict_flush": 1,
    "fpr_evict_later": 5,
    "fpr_drain_flush": 6,
}


@pytest.fixture
def no_gauges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel have no sysfs of ours."""
    monkeypatch.setattr(counters, "gauges", dict)


def report(*, everything: bool = False, as_json: bool = False) -> str:
    stream = io.StringIO()
    args = argparse.Namespace(pid=None, json=as_json, all=everything)
    stat._report(args, VALUES, 2.0, stream)
    return stream.getvalue()


def test_every_reason_of_the_kernel_has_words(root: Path) -> None:
    header = (root / "kernel/src/include/linux/ceasefire_events.h").read_text(encoding="utf-8")
    counted = re.findall(r'E\((?:FPR|LATR|SHARERS|ABIS|MORSEL)_\w+,\s+"(\w+)"\)', header)
    assert len(counted) > 40
    in_groups = [name for name in counted if reasons.is_reason(name)]
    assert set(in_groups) == set(reasons.WORDS)
    # Those that a group does not have are no answer to its question.
    others = set(counted) - set(in_groups)
    assert {n for n in others if re.match("(fpr|latr|sharers)_(map|flush|evict)", n)} == {
        "fpr_evict_later",
        "fpr_evict_settle",
    }


@pytest.mark.parametrize("mechanism", [modes.SHARERS, modes.ABIS])
def test_every_counter_has_words(root: Path, mechanism: modes.Mechanism) -> None:
    header = (root / "kernel/src/include/linux/ceasefire_events.h").read_text(encoding="utf-8")
    upper = mechanism.name.upper()
    counted = set(re.findall(rf'E\({upper}_\w+,\s+"(\w+)"\)', header))
    assert counted == {
        name for name in (*reasons.WORDS, *reasons.NAMES) if name.startswith(mechanism.prefix)
    }
    assert {*mechanism.narrowed, mechanism.skipped} - {""} < counted


def test_to_whom_flushes_went(no_gauges: None, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "sharers_flush_remote": 30,
        "sharers_flush_local": 969,
        "sharers_flush_all": 1,
        "sharers_all_whole": 1,
        "sharers_all_long": 0,
        "sharers_fill": 40,
        "sharers_fill_only": 0,
    }
    monkeypatch.setattr("test_reasons.VALUES", values)
    text = report()
    title, _, table = text.partition(
        "flushes of programs whose CPUs note what they use (Sharers)\n"
    )
    assert re.search(
        r"^regions of 2 MiB that a CPU has noted \(sharers_fill\) +40 +20$", title, re.M
    )
    assert "sharers_fill_only" not in title
    for name, share in (("remote", "3.0"), ("local", "96.9"), ("all", "0.1")):
        assert re.search(rf" sharers_flush_{name} +\d+ +{share} %$", table, re.MULTILINE)
    # Why it was all is a question of its own.
    _, _, table = table.partition("why such flushes went to all CPUs\n")
    assert re.search(r"^all memory, as at fork .* sharers_all_whole +1 +100\.0 %$", table, re.M)
    assert "sharers_all_long" not in table
    assert max(map(len, text.splitlines())) <= 80
    record = json.loads(report(as_json=True))
    assert [r["counter"] for r in record["reasons"]] == [
        *(f"sharers_flush_{n}" for n in ("remote", "local", "all")),
        "sharers_all_whole",
    ]


def test_bad_answers_say_what_to_do() -> None:
    good = {group.good for group in reasons.GROUPS}
    for name, (meaning, hint) in reasons.WORDS.items():
        assert meaning
        assert bool(hint) == (name not in good), name


def test_groups_share_nothing() -> None:
    for name in reasons.WORDS:
        assert len([group for group in reasons.GROUPS if group.has(name)]) == 1


def test_shares_are_those_of_the_group(no_gauges: None) -> None:
    lines = report().splitlines()
    title = lines.index("munmap of mappings with FPR")
    columns = re.split(" {2,}", lines[title + 1])
    assert columns == ["what happened, and what to do", "counter", "count", "share"]
    rows = [re.split(" {2,}", line) for line in lines[title + 2 : title + 6]]
    assert rows == [
        ["no flush: nobody was interrupted", "fpr_skip", "970", "97.0 %"],
        ["pages were written through the mapping", "fpr_flush_dirty", "20", "2.0 %"],
        ["- nothing to do, or write with write(2)"],
        ["fpr_flush_something_new", "fpr_flush_something_new", "10", "1.0 %"],
    ]


def test_each_counter_is_shown_once(no_gauges: None) -> None:
    text = report(everything=True)
    for name in VALUES:
        # One without words is its own meaning.
        assert len(re.findall(rf"\b{name}\b", text)) == 1 + (
            name not in reasons.WORDS and reasons.is_reason(name)
        )


def test_what_did_not_happen_is_left_out(no_gauges: None) -> None:
    assert "fpr_flush_local" not in report()
    assert re.search(r"fpr_flush_local +0 +0\.0 %", report(everything=True))


def test_json_has_the_reasons(no_gauges: None) -> None:
    record = json.loads(report(as_json=True))
    assert record["counters"] == VALUES
    dirty = next(r for r in record["reasons"] if r["counter"] == "fpr_flush_dirty")
    assert dirty == {
        "group": "unmap",
        "counter": "fpr_flush_dirty",
        "count": 20,
        "share": 0.02,
        "meaning": "pages were written through the mapping",
        "hint": "nothing to do, or write with write(2)",
    }


def test_kernel_without_fpr_has_no_reasons(no_gauges: None) -> None:
    assert list(reasons.reasons(reasons.GROUPS[0], {"nr_tlb_remote_flush": 4})) == []
