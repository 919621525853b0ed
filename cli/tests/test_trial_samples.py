# SPDX-License-Identifier: GPL-2.0-only
"""The samples of `ceasefire try`: what counts as one, and their sums."""

import pytest

from ceasefire.counters import RECEIVED
from ceasefire.trial import samples

TOKEN = "0123456789abcdef"
SAME = "00112233aabbccdd"


def line(mode: str, number: int, usec: int, *, status: int = 0, digest: str = SAME) -> str:
    skipped, received = (998, 4) if mode == "fpr" else (0, 1000)
    values = f"{RECEIVED}={received} nr_tlb_remote_flush={received // 2} fpr_skip={skipped}"
    return f"sample {mode} {number} {status} {usec} {digest} {values}"


def read(some: list[str], token: str = TOKEN) -> samples.Trial:
    """Return what is found in these lines, each after the token."""
    reader = samples.Reader(TOKEN)
    for text in some:
        reader(f"{token} {text}\n".encode("utf-8", "surrogateescape"))
    return reader.found()


LINES = [
    line("off", 0, 900),
    line("fpr", 0, 900),
    line("fpr", 1, 1000),
    line("off", 1, 1400),
    line("off", 2, 1600),
    line("fpr", 2, 1000),
]


def test_warm_up_does_not_count() -> None:
    found = read(LINES)
    assert len(found.measured("off")) == 2
    assert found.runtime("off") == samples.Spread(1500, 1400, 1600)
    assert found.spread("fpr", RECEIVED).median == 4
    assert found.ratio("off", "fpr") == samples.Spread(1.5, 1.4, 1.6)


def test_median_of_the_ratios_is_one_of_them() -> None:
    times = {"off": (100, 100, 300), "fpr": (100, 300, 300)}
    found = read([line(mode, n + 1, times[mode][n]) for n in range(3) for mode in times])
    ratio = found.ratio("off", "fpr")
    # That of the medians is 0.33, and so it is where the pairs are 1, 0.33 and 1.
    assert ratio.median == 1.0
    assert ratio.least == pytest.approx(1 / 3)


def test_modes_take_turns_in_being_first() -> None:
    found = read(LINES)
    assert samples.complete(found, ["off", "fpr"], 2)
    assert not samples.complete(found, ["off", "fpr"], 3)
    assert not samples.complete(found, ["fpr", "off"], 2)
    always = sorted(found.samples, key=lambda s: (s.round, s.mode != "off"))
    assert not samples.complete(samples.Trial(tuple(always)), ["off", "fpr"], 2)


def test_skips_are_those_of_the_mechanisms() -> None:
    found = read(LINES)
    assert found.skipped("fpr").median == 998
    assert found.skipped("off").median == 0
    assert found.comparable("fpr")
    nothing = read([text.replace("fpr_skip=998", "fpr_skip=0") for text in LINES])
    assert not nothing.comparable("fpr")


def test_flushes_that_were_narrowed_count_like_those_that_were_skipped() -> None:
    texts = [text.replace("fpr ", "latr+sharers ").replace("fpr_skip", "other") for text in LINES]
    counted = ("sharers_flush_local=3", "sharers_flush_remote=4", "sharers_flush_all=5")
    found = read([f"{text} {' '.join(counted)}" for text in texts])
    assert found.narrowed("latr+sharers").median == 7
    assert found.skipped("latr+sharers").median == 0
    assert found.comparable("latr+sharers")
    assert found.narrowed("off").median == 0
    # A flush of everything is what there is without it, too.
    nothing = read([f"{text} {counted[2]}" for text in texts])
    assert not nothing.comparable("latr+sharers")


def test_runs_that_differ_from_the_first() -> None:
    other = line("fpr", 2, 1000, digest="f" * 16)
    failed = line("fpr", 1, 1000, status=139)
    found = read([LINES[0], other, failed])
    assert [s.round for s in found.differing("fpr")] == [2, 1]
    assert found.differing("off") == []


def test_other_lines_are_not_samples() -> None:
    found = read(["noise", "text hello  world", *LINES, "sampler x", "error e", "run fpr 3"])
    assert found.said("text") == ["hello  world"]
    assert found.said("error") == ["e"]
    assert len(found.samples) == 6


def test_run_that_has_begun_is_known() -> None:
    reader = samples.Reader(TOKEN)
    for text in (f"{TOKEN} run off 0\n", "run fpr 9\n", f"{TOKEN} run fpr x\n"):
        reader(text.encode())
    assert reader.now == ("off", 0)


FORGED = line("fpr", 1, 5)


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_programs_forge_no_samples(end: str) -> None:
    reader = samples.Reader(TOKEN)
    for text in (f"{FORGED}{end}{FORGED}", f"x{end}{TOKEN}", f"{TOKEN}x {FORGED}", "\x00" * 9):
        reader(f"{text}{end}{FORGED}\n".encode())
        reader(f"{TOKEN} text {text}{end}{FORGED}\n".encode())
    found = reader.found()
    assert found.samples == ()
    assert all(text.isprintable() for _, text in found.texts)
    # With the token, but not in our form.
    for text in (
        f"{FORGED}x",
        f"sample fpr 1 0 5 {SAME}0",
        f"sample fpr x 0 1 {SAME}",
        f"sample fpr 1 1 1 {SAME} b",
        f"sample fpr {'9' * 5000} 0 5 {SAME}",
        f"sample FPR 1 0 5 {SAME}",
        "sample",
    ):
        reader(f"{TOKEN} {text}\n".encode())
    assert reader.found().samples == ()
    reader(f"{TOKEN} {FORGED}\n".encode())
    assert len(reader.found().samples) == 1
    assert not samples.complete(reader.found(), ["off", "fpr"], 0)
