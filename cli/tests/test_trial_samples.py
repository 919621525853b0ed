# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire try` without a guest: its samples, its verdict, its table."""

import pytest

from ceasefire.counters import RECEIVED
from ceasefire.trial import samples

COUNTS_OFF = f"{RECEIVED}=1000 nr_tlb_remote_flush=500 fpr_skip=0"
COUNTS_ON = f"{RECEIVED}=4 nr_tlb_remote_flush=3 fpr_skip=998"


TOKEN = "0123456789abcdef"


def read(some: list[str], token: str = TOKEN) -> samples.Trial:
    """Return what is found in these lines, each after the token."""
    reader = samples.Reader(TOKEN)
    for line in some:
        reader(f"{token} {line}\n".encode("utf-8", "surrogateescape"))
    return reader.found()


def lines(**changes: str) -> list[str]:
    """Return two rounds; a change like on1='sample ...' replaces the sample of that run."""
    runs = {
        "off0": f"sample off 0 0 900 1 {COUNTS_OFF}",
        "on0": f"sample on 0 0 900 1 {COUNTS_ON}",
        "off1": f"sample off 1 0 1400 1 {COUNTS_OFF}",
        "on1": f"sample on 1 0 1000 1 {COUNTS_ON}",
        "off2": f"sample off 2 0 1600 1 {COUNTS_OFF}",
        "on2": f"sample on 2 0 1000 1 {COUNTS_ON}",
    }
    return list({**runs, **changes}.values())


def test_warm_up_does_not_count() -> None:
    found = read(lines())
    assert len(found.measured(samples.OFF)) == 2
    assert found.runtime(samples.OFF) == samples.Spread(1500, 1400, 1600)
    assert found.spread(samples.ON, RECEIVED).median == 4
    assert found.ratio() == samples.Spread(1.5, 1.4, 1.6)


def test_same_output_has_no_verdict() -> None:
    assert samples.verdict(read(lines())) == ""


def test_different_output_with_fpr() -> None:
    found = read(lines(on2=f"sample on 2 0 1000 0 {COUNTS_ON}"))
    assert "printed something else in 1 of 3 runs" in samples.verdict(found)


def test_different_status_with_fpr() -> None:
    found = read(lines(on1=f"sample on 1 139 1000 1 {COUNTS_ON}"))
    assert "ended with status 139, without it with 0" in samples.verdict(found)


def test_program_that_never_prints_the_same() -> None:
    found = read(lines(off1=f"sample off 1 0 1400 0 {COUNTS_OFF}"))
    assert "--sort-output" in samples.verdict(found)


def test_other_lines_are_not_samples() -> None:
    found = read(["noise", "text hello  world", *lines(), "sampler x"])
    assert found.texts == ("hello  world",)
    assert len(found.samples) == 6


FORGED = "sample on 1 0 5 1 fpr_skip=99"


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_programs_forge_no_samples(end: str) -> None:
    token = "0123456789abcdef"
    reader = samples.Reader(token)
    for text in (f"{FORGED}{end}{FORGED}", f"x{end}{token}", f"{token}x {FORGED}", "\x00" * 9):
        reader(f"{text}{end}{FORGED}\n".encode())
        reader(f"{token} text {text}{end}{FORGED}\n".encode())
    found = reader.found()
    assert found.samples == ()
    assert all(text.isprintable() for text in found.texts)
    # With the token, but not in our form.
    for text in (
        f"{FORGED}x",
        "sample on 1 0 5 2",
        "sample on x 0 1 1",
        "sample a 1 1 1 1 b",
        f"sample on {'9' * 5000} 0 5 1",
        "sample",
    ):
        reader(f"{token} {text}\n".encode())
    assert reader.found().samples == ()
    reader(f"{token} {FORGED}\n".encode())
    assert len(reader.found().samples) == 1
    assert not samples.complete(reader.found(), 0)


def test_table_of_an_emulated_run_has_no_absolute_time() -> None:
    table = samples.rows(read(lines()), relative=True, timed=True)
    assert table[0] == [
        "shootdowns received",
        "1,000 (1,000..1,000)",
        "4 (4..4)",
        "0.40 %",
    ]
    assert table[-1][0] == "runtime, without FPR = 1"
    assert table[-1][1] == "1.00 (0.93..1.07)"
    assert table[-1][3] == "1.50x (1.40..1.60)"


def test_table_without_times() -> None:
    table = samples.rows(read(lines()), relative=True, timed=False)
    assert not any(row[0].startswith("runtime") for row in table)


def test_why_nothing_was_skipped_is_told_in_words() -> None:
    counts = "fpr_map=9 fpr_flush_local=1 fpr_flush_dirty=7 nr_tlb_remote_flush=1"
    found = read(lines(on1=f"sample on 1 0 9 1 {counts}", on2=f"sample on 2 0 9 1 {counts}"))
    assert samples.obstacles(found) == [
        "pages were written through the mapping (fpr_flush_dirty 7)",
        "no other CPU ran the program (fpr_flush_local 1)",
    ]
