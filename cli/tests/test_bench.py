# SPDX-License-Identifier: GPL-2.0-only
"""The parts of `ceasefire bench` that are no suites: `munmap`, made of options, and `instructions`;
and how the rooms of the package lie.
"""

import argparse
import ast
import json
import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ceasefire import modes
from ceasefire.__main__ import main
from ceasefire.bench.catalog import spec
from ceasefire.bench.cost import count, profile
from ceasefire.bench.figures import compare, ideal
from ceasefire.bench.measure import machine, runner, schedule
from ceasefire.bench.results import store
from ceasefire.bench.verbs import instructions, munmap, options, run
from ceasefire.errors import Failure, Unsupported, UsageError

# As ceasefire/bench/__init__.py has them: each knows those before it only.
ROOMS = [
    "latency",
    "results",
    "catalog",
    "apps",
    "measure",
    "cost",
    "figures",
    "report",
    "verbs",
    "cli",
]


def test_rooms_know_those_before_them_only(root: Path) -> None:
    folder = root / "cli" / "ceasefire" / "bench"
    seen = set()
    for path in folder.rglob("*.py"):
        room = path.relative_to(folder).with_suffix("").parts[0]
        if room == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            names = [f"{module}.{a.name}" for a in getattr(node, "names", [])]
            for name in names if module.startswith("ceasefire.bench") else ():
                other = name.split(".")[2]
                seen.add((room, other))
                assert ROOMS.index(other) <= ROOMS.index(room), f"{path}: {name}"
    assert {("verbs", "measure"), ("report", "figures"), ("measure", "results")} <= seen


def munmap_options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    munmap.add_arguments(parser)
    return parser.parse_args(words)


VALUES = {"cpus": "8", "seconds": "2", "disk": "/disk", "work": "/work"}


def test_munmap_is_the_benchmark_of_the_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "host_cpus", lambda: 8)
    words = ["--cases", "2", "--rounds", "3", "--cpus", "8"]
    suite = munmap.suite_of(munmap_options(*words))
    (bench,) = suite.benchmarks
    known = spec.load_all()[0]["munmap-2"]
    assert (suite.rounds, suite.seconds) == (3, 2.0)
    assert bench.name == "munmap-2" and bench.metrics == known.metrics
    for mode in ("off", "fpr"):
        assert bench.shell_command(mode, VALUES) == known.shell_command(mode, VALUES)
    assert bench.shell_command("ideal-io", VALUES).endswith("--file /disk --fill --mode ideal-io")


def test_munmap_takes_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "host_cpus", lambda: 2)
    words = ["--cpus", "2,8", "--processes", "1,4", "--pages", "3", "--cases", "4,5"]
    suite = munmap.suite_of(munmap_options(*words, "--disk", "brd-ext4"))
    boots = schedule.boots(suite)
    assert [(b.guest.cpus, b.guest.memory) for b in boots] == [(2, "832M"), (8, "1024M")]
    assert [bench.name for bench in boots[1].benchmarks] == [
        "munmap-4-pages-3",
        "munmap-5-pages-3",
        "munmap-4-processes-4-pages-3",
        "munmap-5-processes-4-pages-3",
    ]
    command = boots[1].benchmarks[2].shell_command("fpr", VALUES)
    assert "--case 4 --threads 2 --processes 4" in command
    assert "--pages 3 --dir /work --mode fpr" in command
    assert boots[1].guest.disks == ("brd-ext4",)


def test_modes_of_the_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "host_cpus", lambda: 2)
    suite = munmap.suite_of(munmap_options("--cases", "1,2,5"))
    modes = {bench.name: tuple(bench.modes()) for bench in suite.benchmarks}
    assert modes["munmap-1"] == ("off", "fpr", "ideal-io")
    assert modes["munmap-2"] == ("off", "fpr", "ideal-compute", "ideal-io")
    assert modes["munmap-5"] == ("off", "fpr", "ideal-io")
    args = munmap_options("--cases", "2", "--cpus", "8", "--kernel", "stock")
    suite = munmap.suite_of(args)
    (boot,) = schedule.boots(suite, chosen=run.chosen_modes(suite, args))
    assert {mode for _, mode, _ in boot.samples} == {"off"}


@pytest.mark.parametrize(
    ("case", "cpus", "processes", "threads"),
    [(1, 2, 1, 2), (2, 16, 8, 2), (1, 2, 8, 2), (4, 6, 2, 2), (1, 6, 2, 3), (5, 8, 1, 8)],
)
def test_threads_are_divided_between_processes(
    case: int, cpus: int, processes: int, threads: int
) -> None:
    assert munmap.threads(case, cpus, processes) == threads


def test_in_place_needs_fpr_and_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "host_cpus", lambda: 2)
    monkeypatch.setattr(modes.Mechanism, "enabled", lambda _: False)
    with pytest.raises(Unsupported, match="no FPR"):
        munmap.check_in_place([2])
    monkeypatch.setattr(modes.Mechanism, "enabled", lambda _: True)
    munmap.check_in_place([2])
    with pytest.raises(UsageError, match="only 2 CPUs"):
        munmap.check_in_place([2, 4])
    (bench,) = munmap.suite_of(munmap_options("--cases", "2", "--in-place")).benchmarks
    assert bench.disks == () and "ideal-io" in bench.modes()


@pytest.mark.parametrize(
    "words",
    [
        ["--cases", "6"],
        ["--cpus", "1"],
        ["--pages", "1,2"],
        ["--seconds", "0"],
        ["--rounds", "0"],
        ["--dir", "/tmp"],
    ],
)
def test_wrong_options_of_munmap(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "munmap", *words]) == 2
    out, err = capsys.readouterr()
    assert not out and len(err.splitlines()) == 1


HOST = {
    "type": "host",
    "where": "in a guest with emulated CPUs (TCG)",
    "host_cpus": 2,
    "cpus": 2,
    "comparable": True,
}


def sample(mode: str, number: int, io: float, compute: float, received: int) -> dict[str, Any]:
    """Return a sample with a window of one second."""
    return {
        "type": "sample",
        "benchmark": "munmap-2",
        "mode": mode,
        "round": number,
        "metrics": {"I/O": io, "compute": compute},
        "operations": io,
        "counters": {
            "nr_tlb_remote_flush_received": received,
            "fpr_drain_age": received,
            "fpr_drain_flush": received,
        },
    }


# The second round is twice as slow for everybody.
LINES = [
    HOST,
    sample("off", 0, 100, 1000, 100),
    sample("fpr", 0, 200, 1200, 0),
    sample("ideal-compute", 0, 200, 1200, 0),
    sample("fpr", 1, 80, 660, 1),
    sample("ideal-compute", 1, 100, 600, 0),
    sample("off", 1, 50, 500, 50),
]


def write(folder: Path, lines: list[dict[str, Any]]) -> store.Results:
    """Write results and read them."""
    text = "".join(json.dumps({"schema": 2, **line}) + "\n" for line in lines)
    (folder / store.LINES).write_text(text, encoding="utf-8")
    return store.read(folder)


def test_what_is_reached_is_against_the_ideal_of_the_same_round(tmp_path: Path) -> None:
    found = write(tmp_path, LINES)
    (near,) = ideal.reached(found)
    assert (near.metric, near.ideal) == ("compute", "ideal-compute")
    assert near.ratio.middle == pytest.approx((1.0 + 1.1) / 2)
    alone = [{**line, "mode": "ideal-io"} for line in LINES if line.get("mode") == "off"]
    near_both = ideal.reached(write(tmp_path, [*LINES, *alone]))
    assert [(r.metric, r.ideal) for r in near_both] == [
        ("compute", "ideal-compute"),
        ("I/O", "ideal-io"),
    ]
    without = [line for line in [*LINES, *alone] if line.get("mode") != "ideal-compute"]
    assert {r.ideal for r in ideal.reached(write(tmp_path, without))} == {"ideal-io"}


def test_both_tables_and_what_was_settled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, LINES)
    assert main(["bench", "compare", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "1 flushes settled what was owed, of 280 operations: age 1." in out
    for words in ("1.80", "(1.60..2.00)", "1.05", "(1.00..1.10)"):
        assert words in out
    assert "compute" in out and "I/O" in out
    assert compare.settled(store.read(tmp_path).samples[:1]) == ""


def test_one_mode_alone_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = write(tmp_path, [line for line in LINES if line.get("mode") in (None, "off")])
    assert compare.comparisons(found) == []
    assert main(["bench", "compare", str(tmp_path)]) == 0
    rows = [line.split()[:6] for line in capsys.readouterr().out.splitlines()]
    assert ["munmap-2", "2", "off", "1.00000", "1.00000", "100.00"] in rows
    assert main(["bench", "compare", "--against", "fpr", str(tmp_path)]) == 1


def test_results_of_another_format_are_refused(tmp_path: Path) -> None:
    (tmp_path / store.LINES).write_text('{"schema": 1, "type": "munmap"}\n', encoding="utf-8")
    with pytest.raises(Failure, match="not of format 2"):
        store.read(tmp_path)


def test_results_are_continued_or_refused_but_never_overwritten(tmp_path: Path) -> None:
    write(tmp_path, LINES)
    with pytest.raises(UsageError, match="results already"):
        store.Folder(str(tmp_path), "instructions", fresh=True)
    store.Folder(str(tmp_path), "munmap").add(sample("fpr", 2, 1, 1, 1))
    assert len(store.read(tmp_path).samples) == len(LINES)


@pytest.mark.parametrize(
    ("text", "numbers"), [("1-5", [1, 2, 3, 4, 5]), ("2,8,16", [2, 8, 16]), ("3,1-3", [3, 1, 2])]
)
def test_lists_of_numbers(text: str, numbers: list[int]) -> None:
    assert options.numbers("--cpus", text, 1, 64) == numbers


@pytest.mark.parametrize("text", ["", "0", "65", "5-1", "a", "1-", "-3", "1,,2"])
def test_bad_lists_of_numbers(text: str) -> None:
    with pytest.raises(UsageError):
        options.numbers("--cpus", text, 1, 64)


def test_output_in_pieces_is_kept_whole(tmp_path: Path) -> None:
    folder = store.Folder(str(tmp_path / "out"), "munmap")
    told = runner.Progress(6, 1.0)
    sink = runner.Lines(folder, 2, told)
    lines = [json.dumps({"schema": 2, **line}) + "\n" for line in LINES[1:]]
    text = "noise\n".join(lines).encode()
    for at in range(0, len(text), 17):
        sink(text[at : at + 17])
    assert told.done == 6
    assert folder.lines.read_text(encoding="utf-8") == "".join(lines)


def test_what_a_failed_program_means() -> None:
    machine.judge(0, "")
    with pytest.raises(Unsupported, match="no FPR: run `make kernel`"):
        machine.judge(77, "munmap-bench: this kernel has no FPR\n")
    with pytest.raises(UsageError):
        machine.judge(2, "munmap-bench: wrong\n")
    with pytest.raises(Failure, match="status 9"):
        machine.judge(9, "")


def cycle(case: str, variant: str, repeat: int, ns: float) -> str:
    """Return a line of cycle-bench."""
    line = {"schema": 1, "type": "cycle", "case": case, "variant": variant, "repeat": repeat}
    return json.dumps({**line, "ops": 5, "ns_per_op": ns, "counters": {"fpr_skip": 1}})


def test_costs_are_against_the_stock_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stock = [cycle("mmap", "plain", n, ns) for n, ns in enumerate((1000.0, 1010.0, 1001.0))]
    fpr = [cycle("mmap", "fpr", n, ns) for n, ns in enumerate((900.0, 901.0, 899.0))]
    noise = ["noise", '{"type": "environment"}', '{"type": "cycle", "case": "x"}']
    boots: list[tuple[str, list[str]]] = [("stock", [*noise, *stock]), ("run", fpr)]
    lines: list[Mapping[str, Any]] = []
    for number, (kernel, printed) in enumerate(boots):
        lines.append({**HOST, "kernel_kind": kernel, "cpus": 1})
        lines += count.samples_in(printed, 3 * number)
    found = write(tmp_path, [dict(line) for line in lines])
    assert [s.round for s in found.samples] == [0, 1, 2, 3, 4, 5]
    costs = count.costs_of(found.samples)
    assert costs["mmap", "stock", "plain"] == count.Cost(1000.0, 1001.0)
    instructions.print_costs(costs)
    out = capsys.readouterr().out
    assert "89.91 %" in out and out.index("stock") < out.index("fpr")


def test_every_other_boot_has_the_other_order() -> None:
    plan = count.Plan("x", ["run", "stock"], 3, 5, 100, [])
    assert plan.order() == ["run", "stock", "stock", "run", "run", "stock"]


@pytest.mark.parametrize("variant", ["plain", "latr"])
@pytest.mark.parametrize(("more", "verdict"), [(1.004, "pass"), (1.006, "fail")])
def test_idle_cost_has_a_limit(
    variant: str, more: float, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = {
        (case, kernel, which): count.Cost(1000, 1000)
        for case in instructions.IDLE_CASES
        for kernel, which in (("stock", "plain"), ("run", "plain"), ("run", "latr"))
    }
    costs["page-fault", "run", variant] = count.Cost(1000, 1000 * more)
    if variant == "plain":
        costs["page-fault", "run", "latr"] = costs["page-fault", "run", "plain"]
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
    symbols = profile.Symbols(names)
    blocks = [(0x400000, 3), (start, 5), (start + 0x100, 7), (start + 0x110, 1), (start + 8, 2)]
    data = b"".join(struct.pack("<QQ", *block) for block in blocks)
    # What a guest that was stopped in the middle has left is no block.
    found = profile.profile_of(profile.read_blocks(data + b"half"), symbols)
    assert found.own == {profile.PROGRAM: 3, "entry": 7, "work": 8}
    assert found.whole == {profile.PROGRAM: 18, "entry": 15, "work": 8}
    assert found.total == 18


def test_steps_need_functions() -> None:
    with pytest.raises(Failure, match="names no function"):
        profile.Symbols("ffffffff81000200 D data\n")


def test_profiles_differ_by_function() -> None:
    first = profile.Profile(own=Counter(same=800, less=80, noise=3))
    second = profile.Profile(own=Counter(same=800, less=64, more=160, noise=0))
    assert profile.differences(first, second) == [("more", 160), ("less", -16)]


def test_profile_is_of_a_case_that_there_is() -> None:
    with pytest.raises(UsageError, match="plain, fpr or latr"):
        instructions.parse_profile("page-fault:fast")
    assert instructions.parse_profile("page-fault") == ("page-fault", "plain")
    assert instructions.parse_profile("mmap-munmap:fpr") == ("mmap-munmap", "fpr")
    assert instructions.parse_profile("spin:latr") == ("spin", "latr")
