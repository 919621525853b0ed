# SPDX-License-Identifier: GPL-2.0-only
"""What `ceasefire try` says: the verdict, the table, why nothing was skipped, what is doubtful."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ceasefire import modes
from ceasefire.counters import RECEIVED, SENT
from ceasefire.trial import report
from ceasefire.trial.load import Load
from ceasefire.trial.samples import Sample, Trial

IDLE = Load(cpus=4, others=0.1, average=0.3)
SETTING = report.Setting(["off", "fpr"], rounds=4, cpus=2, emulated=True, load=IDLE)
REASONS: dict[str, Any] = {
    "fpr_skip": 0,
    "fpr_map": 9,
    "fpr_map_ineligible_exec": 3,
    "fpr_flush_local": 1,
    "fpr_flush_dirty": 7,
}


def trial(off: tuple[int, ...] = (1400, 1500, 1500, 1600), **counts: int) -> Trial:
    """Return a trial with these runtimes; counts: of mode fpr, in place of the usual ones."""
    fpr = (1000, 1000, 1000, 1000)
    values = {
        "off": {RECEIVED: 1000, SENT: 500, "fpr_skip": 0},
        "fpr": {RECEIVED: 4, SENT: 3, "fpr_skip": 998, **counts},
    }
    rounds = [
        Sample(mode, number, 0, usec, "0" * 16, values[mode])
        for number, usecs in enumerate([(900, 900), *zip(off, fpr, strict=True)])
        for mode, usec in zip(("off", "fpr"), usecs, strict=True)
    ]
    return Trial(tuple(rounds))


def changed(found: Trial, mode: str, number: int, **changes: object) -> Trial:
    """Return the trial with another sample."""
    wanted = [
        replace(s, **changes) if (s.mode, s.round) == (mode, number) else s  # type: ignore[arg-type]
        for s in found.samples
    ]
    return replace(found, samples=tuple(wanted))


def told(found: Trial, capsys: pytest.CaptureFixture[str], **setting: object) -> str:
    report.tell(found, replace(SETTING, **setting))  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_same_output_has_no_verdict() -> None:
    assert report.verdict(trial(), SETTING.modes) == ""


def test_different_output_in_a_mode() -> None:
    found = changed(trial(), "fpr", 2, digest="1" * 16)
    text = report.verdict(found, SETTING.modes)
    assert text == "in mode fpr the program printed something else in 1 of 5 runs"


def test_different_status_in_a_mode() -> None:
    found = changed(trial(), "fpr", 1, status=139)
    assert "ended with status 139, in off with 0" in report.verdict(found, SETTING.modes)


def test_program_that_never_prints_the_same() -> None:
    found = changed(trial(), "off", 1, digest="1" * 16)
    assert "--sort-output" in report.verdict(found, SETTING.modes)


def test_table_of_an_emulated_run_has_no_absolute_time() -> None:
    table = report.rows(trial(), SETTING, "fpr")
    assert table[0] == ["shootdowns received", "1,000 (1,000..1,000)", "4 (4..4)", "0.40 %"]
    assert table[2] == ["flushes skipped", "0 (0..0)", "998 (998..998)", ""]
    assert table[3] == [
        "runtime, off = 1",
        "1.00 (0.93..1.07)",
        "0.67 (0.67..0.67)",
        "1.50x (1.40..1.60)",
    ]


def test_table_without_times() -> None:
    table = report.rows(trial(), replace(SETTING, cpus=8), "fpr")
    assert not any(row[0].startswith("runtime") for row in table)


def test_no_ratio_where_nothing_was_skipped_but_why(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(trial(**REASONS), capsys)
    assert not re.search(r"\dx\b", out)
    assert "FPR skipped nothing, so there is no ratio" in out
    # Which mappings there were, and what flushed them.
    for counter, words, count in (
        ("fpr_map", "the mapping recycles", 9),
        ("fpr_map_ineligible_exec", "executable", 3),
        ("fpr_flush_local", "no other CPU ran the program", 1),
        ("fpr_flush_dirty", "pages were written through", 7),
    ):
        line = next(text for text in out.splitlines() if f" {counter} " in text)
        assert line.startswith(words) and line.endswith(f" {count}")
    assert report.summary(trial(fpr_skip=0), SETTING)["fpr"]["ratio"] is None  # type: ignore[index]
    assert report.summary(trial(), SETTING)["fpr"]["ratio"]["median"] == 1.5  # type: ignore[index]


def test_why_where_the_kernel_gives_no_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert "It mapped no file" in told(trial(fpr_skip=0), capsys)
    assert "It unmapped none of its mappings" in told(trial(fpr_skip=0, fpr_map=4), capsys)


NOTED = {
    "sharers_flush_local": 900,
    "sharers_flush_remote": 90,
    "sharers_flush_all": 1,
    "sharers_all_whole": 1,
    "sharers_all_long": 0,
    "sharers_defer": 0,
    "sharers_place": 3,
    "sharers_fill": 40,
    "sharers_fill_only": 30,
    "sharers_fill_race": 0,
    "sharers_leave": 0,
    "sharers_unconfine": 2,
}


def noted(counts: Mapping[str, int], mode: str = "sharers") -> Trial:
    """Return a trial of a mode with Sharers. counts: in it; in off nothing is counted."""
    found = trial(fpr_skip=0)
    return Trial(
        tuple(
            replace(s, mode=mode, counters={**s.counters, **counts})
            if s.mode == "fpr"
            else replace(s, counters={**s.counters, **dict.fromkeys(counts, 0)})
            for s in found.samples
        )
    )


def test_mode_that_skips_nothing_says_to_whom_flushes_went(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setting = replace(SETTING, modes=["off", "sharers"])
    table = report.rows(noted(NOTED), setting, "sharers")
    assert [row[0] for row in table] == [
        "shootdowns received",
        "shootdowns sent",
        "flushes to nobody else",
        "flushes to some CPUs",
        "flushes to all CPUs",
        "- of all memory",
        "mappings placed",
        "regions noted",
        "faults for that alone",
        "times without notes",
        "runtime, off = 1",
    ]
    assert table[2] == ["flushes to nobody else", "0 (0..0)", "900 (900..900)", ""]
    assert table[-1][-1] == "1.50x (1.40..1.60)"
    out = told(noted(NOTED), capsys, modes=["off", "sharers"])
    assert "narrowed nothing" not in out and "second thread" not in out
    assert max(map(len, out.splitlines())) <= 80
    summary: Any = report.summary(noted(NOTED), setting)
    assert (summary["sharers"]["skipped"], summary["sharers"]["narrowed"]) == (0, 990)
    assert summary["off"]["narrowed"] == 0


def test_what_the_first_mode_does_is_shown_too() -> None:
    base = replace(SETTING, modes=["sharers", "fpr"])
    found = noted(NOTED)
    found += Trial(tuple(s for s in trial().samples if s.mode == "fpr"))
    table = {row[0]: row[1:3] for row in report.rows(found, base, "fpr")}
    assert table["flushes to nobody else"] == ["900 (900..900)", "0 (0..0)"]
    assert table["flushes skipped"] == ["0 (0..0)", "998 (998..998)"]


@pytest.mark.parametrize("counter", modes.SHARERS.narrowed)
def test_one_kind_of_narrow_flush_is_enough_for_a_ratio(counter: str) -> None:
    counts = {**dict.fromkeys(NOTED, 0), counter: 1}
    summary: Any = report.summary(noted(counts), replace(SETTING, modes=["off", "sharers"]))
    assert summary["sharers"]["ratio"]["median"] == 1.5


def test_program_without_a_second_thread_has_no_ratio_but_a_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Its mappings are placed from the beginning on.
    found = noted({**dict.fromkeys(NOTED, 0), "sharers_place": 9})
    out = told(found, capsys, modes=["off", "sharers"])
    assert "Sharers narrowed nothing, so there is no ratio of runtimes." in out
    assert "It begins with a second thread, as one alone interrupts nobody" in out
    # What is about mappings is about other modes.
    assert "mapped no file" not in out
    assert not re.search(r"\dx\b", out)
    summary: Any = report.summary(found, replace(SETTING, modes=["off", "sharers"]))
    assert summary["sharers"]["ratio"] is None


def test_program_that_flushes_no_range_has_no_ratio_but_a_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts = {**NOTED, "sharers_flush_local": 0, "sharers_flush_remote": 0}
    out = told(noted(counts), capsys, modes=["off", "sharers"])
    assert "Sharers narrowed nothing, so there is no ratio of runtimes." in out
    assert re.search(r" sharers_flush_all +1$", out, re.MULTILINE)
    assert "the program did nothing that flushes a range" in out
    assert "second thread" not in out
    assert not re.search(r"\dx\b", out)


def test_two_mechanisms_of_which_one_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    mode, none = "fpr+sharers", dict.fromkeys(NOTED, 0)
    out = told(noted({**none, "fpr_skip": 9}, mode), capsys, modes=["off", mode])
    assert re.search(r"\dx\b", out) and re.search(r"^flushes skipped .* 9 \(9\.\.9\)", out, re.M)
    assert f"In mode {mode} Sharers narrowed nothing.\nIt begins with a second thread" in out
    out = told(noted(none, mode), capsys, modes=["off", mode])
    assert "FPR and Sharers did nothing, so there is no ratio of runtimes." in out
    assert out.count("second thread") == 1 and "mapped no file" in out
    # A flush of all memory says nothing about mappings.
    out = told(noted({**none, "sharers_flush_all": 1}, mode), capsys, modes=["off", mode])
    assert " sharers_flush_all " in out and "mapped no file" in out
    out = told(noted(NOTED, mode), capsys, modes=["off", mode])
    assert re.search(r"\dx\b", out) and "nothing" not in out


def test_program_that_fails_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    found = trial(fpr_skip=0)
    failed = tuple(replace(s, status=2) for s in found.samples)
    out = told(Trial(failed, (("error", "rg: no pattern"), ("differ", "> x"))), capsys)
    lines = out.splitlines()
    assert lines[:2] == [
        "The program ended with status 2:",
        "  rg: no pattern",
    ]
    assert report.verdict(Trial(failed), SETTING.modes) == ""
    assert not told(found, capsys).startswith("The program")


def test_busy_machine_is_said_with_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    busy = Load(cpus=2, others=1.4, average=6.2)
    found = trial(off=(670, 1000, 1000, 10090))
    setting = replace(SETTING, load=busy)
    assert report.rows(found, setting, "fpr")[3][3] == "unclear (0.67..10.09)"
    out = told(found, capsys, load=busy)
    line = next(text for text in out.splitlines() if "busy" in text)
    assert "other programs took 1.4 of its 2 CPUs, load 6.2" in line
    assert "from 0.67 to 10.09 times their median" in line
    assert "measure again when the machine is idle" in line


def test_wide_spread_of_an_idle_machine_is_said_too(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(trial(off=(1000, 1000, 1000, 3000)), capsys)
    assert "from 1.00 to 3.00 times their median. They mean little: take more --rounds" in out


def test_nothing_is_said_where_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    out = told(trial(), capsys)
    assert "mean little" not in out
    assert "busy" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_kernel_that_counts_interrupts_only() -> None:
    found = trial()
    plain = tuple(
        replace(s, counters={"tlb_interrupts": s.counters[RECEIVED]}) for s in found.samples
    )
    table = report.rows(Trial(plain), SETTING, "fpr")
    assert table[0][:3] == ["interrupts for shootdowns", "1,000 (1,000..1,000)", "4 (4..4)"]


def test_several_modes_are_each_compared_with_the_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = trial()
    stock = tuple(replace(s, mode="stock") for s in found.samples if s.mode == "off")
    out = told(found + Trial(stock), capsys, modes=["off", "fpr", "stock"])
    heads = [line.split() for line in out.splitlines() if line.endswith("compared")]
    assert heads == [["off", "fpr", "compared"], ["off", "stock", "compared"]]
    # Another kernel has nothing to skip, and is compared all the same.
    assert re.search(r"1\.00x\b", out)


@pytest.mark.parametrize(
    ("cpus", "others", "wanted", "busy"),
    [
        (2, 0.1, 2, False),
        (2, 0.5, 2, True),
        (64, 10.0, 2, False),
        (64, 63.5, 2, True),
        (2, 0, 8, 0),
    ],
)
def test_when_a_machine_is_busy(cpus: int, others: float, wanted: int, busy: int) -> None:
    assert Load(cpus, others, 1.0).busy(wanted) == busy
