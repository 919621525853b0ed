# SPDX-License-Identifier: GPL-2.0-only
"""The figures of `ceasefire bench`: planning, ratios, tables, plots, from made-up samples."""

import argparse
import json
import struct
from pathlib import Path

import pytest

from ceasefire.bench import instructions, munmap, plan, records, report, steps, store
from ceasefire.bench.analyze import figures_of
from ceasefire.errors import Failure, Unsupported, UsageError


def host(cpus: int = 2, comparable: bool = True) -> dict[str, object]:
    """Return a host line."""
    where = "in a guest with emulated CPUs (TCG)"
    return {
        "schema": 1,
        "type": "host",
        "where": where,
        "host_cpus": 2,
        "cpus": cpus,
        "comparable": comparable,
    }


def sample(
    mode: str,
    number: int,
    io: float,
    compute: float,
    received: int,
    *,
    case: int = 2,
    wrong: int = 0,
) -> dict[str, object]:
    """Return a line of munmap-bench with a window of one second."""
    return {
        "schema": 1,
        "type": "munmap",
        "case": case,
        "mode": mode,
        "round": number,
        "processes": 1,
        "threads": 2,
        "pages": 1,
        "wrong": wrong,
        "ns": 10**9,
        "io": {"threads": 1, "ops": int(io), "rate": io},
        "compute": {"threads": 1, "ops": int(compute), "rate": compute},
        "counters": {
            "nr_tlb_remote_flush_received": received,
            "fpr_drain_age": received,
            "fpr_drain_flush": received,
        },
    }


# The second round is twice as slow for everybody.
LINES = [
    host(),
    sample("off", 0, 100, 1000, 100),
    sample("on", 0, 200, 1200, 0),
    sample("ideal-compute", 0, 200, 1200, 0),
    sample("on", 1, 80, 660, 1),
    sample("ideal-compute", 1, 100, 600, 0),
    sample("off", 1, 50, 500, 50),
]


def write(folder: Path, lines: list[dict[str, object]]) -> None:
    """Write a results file."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / store.LINES).write_text(text, encoding="utf-8")


def test_ratios_compare_samples_of_the_same_round() -> None:
    (figure,) = figures_of(records.munmap_samples(LINES))
    assert figure.io_vs_off is not None and figure.compute_vs_off is not None
    assert (figure.io_vs_off.low, figure.io_vs_off.high) == pytest.approx((1.6, 2.0))
    assert figure.io_vs_off.median == pytest.approx(1.8)
    assert figure.compute_vs_off.median == pytest.approx((1.2 + 1.32) / 2)
    assert figure.compute_vs_ideal is not None
    assert figure.compute_vs_ideal.median == pytest.approx(1.05)
    assert figure.io_vs_ideal is None


def test_received_is_summed_over_the_rounds() -> None:
    (figure,) = figures_of(records.munmap_samples(LINES))
    assert figure.received_off == pytest.approx(1.0)
    assert figure.received_on == pytest.approx(1 / 280)
    assert figure.received_percent == pytest.approx(100 / 280)


def test_no_ratios_with_more_cpus_than_the_host() -> None:
    lines = [host(8, comparable=False), *LINES[1:]]
    (figure,) = figures_of(records.munmap_samples(lines))
    assert figure.io_vs_off is None and figure.compute_vs_ideal is None
    assert figure.received_off == pytest.approx(1.0)
    assert any("more CPUs than the host" in note for note in report.notes([figure], lines))


def test_report_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [*LINES, sample("off", 0, 10, 0, 5, case=1), sample("on", 0, 20, 0, 0, case=1)])
    words = {"html": None, "markdown": None, "template": None}
    assert report.main(argparse.Namespace(folder=[str(tmp_path)], **words)) == 0
    out = capsys.readouterr().out
    assert "1 flushes settled what was owed in 3 s: age 1." in out
    assert "1.80" in out and "(1.60..2.00)" in out and "emulated" in out.lower()
    assert (tmp_path / report.TABLE).read_text(encoding="utf-8").splitlines()[0] in out
    for name in ("case-1.svg", "case-1.png", "case-2.svg", "case-2.png"):
        assert (tmp_path / name).stat().st_size > 1000


def test_wrong_data_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [*LINES, sample("on", 2, 1, 1, 0, wrong=3)])
    assert report.show(tmp_path) == 1
    assert "WRONG DATA" in capsys.readouterr().out


def test_results_of_another_format_are_refused(tmp_path: Path) -> None:
    write(tmp_path, [{"schema": 99, "type": "munmap"}])
    with pytest.raises(Failure, match="not of format 1"):
        report.show(tmp_path)
    (tmp_path / store.LINES).write_text("no json\n", encoding="utf-8")
    with pytest.raises(Failure, match="not a line"):
        report.show(tmp_path)


def test_results_are_never_overwritten(tmp_path: Path) -> None:
    write(tmp_path, LINES)
    with pytest.raises(UsageError, match="results already"):
        store.ResultFolder("munmap", str(tmp_path))


@pytest.mark.parametrize(
    ("text", "numbers"), [("1-5", [1, 2, 3, 4, 5]), ("2,8,16", [2, 8, 16]), ("3,1-3", [3, 1, 2])]
)
def test_lists_of_numbers(text: str, numbers: list[int]) -> None:
    assert plan.parse_numbers("--cpus", text, 1, 64) == numbers


@pytest.mark.parametrize("text", ["", "0", "65", "5-1", "a", "1-", "-3", "1,,2"])
def test_bad_lists_of_numbers(text: str) -> None:
    with pytest.raises(UsageError):
        plan.parse_numbers("--cpus", text, 1, 64)


@pytest.mark.parametrize(
    ("case", "cpus", "processes", "threads"),
    [(1, 2, 1, 2), (2, 16, 8, 2), (1, 2, 8, 2), (4, 6, 2, 2), (1, 6, 2, 3), (5, 8, 1, 8)],
)
def test_threads_are_divided_between_processes(
    case: int, cpus: int, processes: int, threads: int
) -> None:
    assert plan.Run(case, cpus, processes, ("off",)).threads == threads


def test_modes_of_the_cases() -> None:
    modes = {r.case: r.modes for r in plan.runs_of([1, 2, 5], 2, [1], fpr=True, ideal=True)}
    assert modes[1] == ("off", "on", "ideal-io")
    assert modes[2] == ("off", "on", "ideal-compute", "ideal-io")
    assert modes[5] == ("off", "on", "ideal-io")
    assert plan.runs_of([2], 8, [1], fpr=False, ideal=False)[0].modes == ("off",)


def test_the_limit_is_ten_times_the_usual_length() -> None:
    settings = plan.Settings(pages=1, offsets=1, rounds=5, seconds=2)
    runs = plan.runs_of([1, 2], 2, [1], fpr=True, ideal=True)
    assert plan.time_limit(runs, settings) == pytest.approx(10 * plan.duration(runs, settings))


def test_output_in_pieces_is_kept_whole(tmp_path: Path) -> None:
    folder = store.ResultFolder("munmap", str(tmp_path / "out"))
    sink = munmap.LineSink(folder, "2 CPUs", 6)
    text = "".join(json.dumps(line) + "\n" for line in LINES).encode()
    for at in range(0, len(text), 17):
        sink(text[at : at + 17])
    assert sink.seen == 6
    assert folder.lines.read_bytes() == text


def test_what_a_failed_program_means() -> None:
    munmap.judge(0, "")
    with pytest.raises(Unsupported, match="no FPR"):
        munmap.judge(77, "munmap-bench: this kernel has no FPR\n")
    with pytest.raises(UsageError):
        munmap.judge(2, "munmap-bench: wrong\n")
    with pytest.raises(Failure, match="status 9"):
        munmap.judge(9, "")


def cycle(case: str, variant: str, ns: float) -> dict[str, object]:
    """Return a line of cycle-bench."""
    return {"schema": 1, "type": "cycle", "case": case, "variant": variant, "ns_per_op": ns}


def test_costs_are_against_the_stock_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"schema": 1, "type": "host", "kernel_kind": "stock", "boot": 0},
        *(cycle("mmap", "plain", ns) for ns in (1000.0, 1010.0, 1001.0)),
        {"schema": 1, "type": "host", "kernel_kind": "run", "boot": 0},
        *(cycle("mmap", "fpr", ns) for ns in (900.0, 901.0, 899.0)),
    ]
    costs = instructions.costs_of(records.cycle_samples(lines))
    assert costs["mmap", "stock", "plain"] == instructions.Cost(1000.0, 1001.0)
    instructions.print_costs(costs)
    out = capsys.readouterr().out
    assert "89.91 %" in out and out.index("stock") < out.index("fpr")


@pytest.mark.parametrize(("more", "verdict"), [(1.004, "pass"), (1.006, "fail")])
def test_idle_cost_has_a_limit(
    more: float, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = {}
    for case in instructions.IDLE_CASES:
        costs[case, "stock", "plain"] = instructions.Cost(1000, 1000)
        costs[case, "run", "plain"] = instructions.Cost(1000, 1000)
    costs["page-fault", "run", "plain"] = instructions.Cost(1000, 1000 * more)
    worst = instructions.print_idle(costs)
    assert worst == pytest.approx(100 * more - 100)
    assert (worst > instructions.IDLE_LIMIT_PERCENT) == (verdict == "fail")
    assert verdict in capsys.readouterr().out


def test_steps_are_counted_by_function() -> None:
    start = 0xFFFFFFFF81000000
    names = "\n".join(
        f"{start + offset:x} {kind} {name}"
        for offset, kind, name in ((0, "T", "entry"), (0x100, "t", "work"), (0x200, "D", "data"))
    )
    symbols = steps.Symbols(names)
    blocks = [(0x400000, 3), (start, 5), (start + 0x100, 7), (start + 0x110, 1), (start + 8, 2)]
    data = b"".join(struct.pack("<QQ", *block) for block in blocks)
    # What a guest that was stopped in the middle has left is no block.
    profile = steps.profile_of(steps.read_blocks(data + b"half"), symbols)
    assert profile.own == {steps.PROGRAM: 3, "entry": 7, "work": 8}
    assert profile.whole == {steps.PROGRAM: 18, "entry": 15, "work": 8}
    assert profile.total == 18


def test_steps_need_functions() -> None:
    with pytest.raises(Failure, match="names no function"):
        steps.Symbols("ffffffff81000200 D data\n")


def test_profile_is_of_a_case_that_there_is() -> None:
    with pytest.raises(UsageError, match="plain or fpr"):
        instructions.parse_profile("page-fault:fast")
    assert instructions.parse_profile("page-fault") == ("page-fault", "plain")
    assert instructions.parse_profile("mmap-munmap:fpr") == ("mmap-munmap", "fpr")
