# SPDX-License-Identifier: GPL-2.0-only
"""Suites of benchmarks: what is read, planned, resumed, compared and shown."""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ceasefire import counters, modes
from ceasefire.__main__ import main
from ceasefire.bench.apps import balancing
from ceasefire.bench.catalog import spec
from ceasefire.bench.figures import compare
from ceasefire.bench.measure import agent, machine, programs, runner, schedule
from ceasefire.bench.report import page
from ceasefire.bench.results import store
from ceasefire.bench.verbs import run
from ceasefire.errors import Failure, UsageError
from ceasefire.vm import GuestSpec

MODES = ("off", "fpr", "read")
TOML = """
[[benchmark]]
name = "b-{n}"
group = "micro"
title = "number {n}"
cpus = [2, 8]
operations = "ops"
parameters = { n = 0 }
metrics = [{ name = "rate", path = "rate" }]
command = "{with} prog {n} {seconds} {mode}"
instead = { read = "{command} --read" }
[[benchmark.variant]]
parameters = { n = 1 }
[[benchmark.variant]]
parameters = { n = 2 }
cpus = [2]

[[suite]]
name = "default"
title = "all"
rounds = 3
seconds = 0.5
benchmarks = ["b-1", "b-2"]
"""


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    (tmp_path / "x.toml").write_text(TOML, encoding="utf-8")
    return tmp_path


def test_variants_fill_their_names_and_commands(suites: Path) -> None:
    benchmarks, found = spec.load_all(suites)
    assert list(benchmarks) == ["b-1", "b-2"]
    assert benchmarks["b-2"].title == "number 2"
    assert benchmarks["b-2"].cpus == (2,)
    command = {m: benchmarks["b-1"].shell_command(m, {"seconds": "3"}) for m in MODES}
    assert command == {
        "off": "mode-run off prog 1 3 off",
        "fpr": "mode-run fpr prog 1 3 fpr",
        "read": "mode-run off prog 1 3 read --read",
    }
    # On a kernel without ceasefire it is the command of off.
    assert benchmarks["b-1"].shell_command("stock", {"seconds": "3"}) == command["off"]
    assert [b.name for b in found["default"].benchmarks] == ["b-1", "b-2"]


def test_a_list_makes_a_benchmark_for_each_value(suites: Path) -> None:
    text = TOML.replace("parameters = { n = 2 }", "parameters = { n = [2, 5] }")
    (suites / "x.toml").write_text(text, encoding="utf-8")
    benchmarks, _ = spec.load_all(suites)
    assert [(b.name, b.cpus) for b in benchmarks.values()] == [
        ("b-1", (2, 8)),
        ("b-2", (2,)),
        ("b-5", (2,)),
    ]
    values = {"seconds": "1"}
    assert benchmarks["b-5"].shell_command("off", values) == "mode-run off prog 5 1 off"


def test_shipped_suites_are_read() -> None:
    benchmarks, found = spec.load_all()
    assert {"default", "quick"} <= set(found)
    values = dict.fromkeys(("disk", "work", "cpus", "seconds", "python"), "x")
    for bench in benchmarks.values():
        assert bench.modes()[:2] == ["off", "fpr"]
        commands = [bench.shell_command(mode, values) for mode in bench.modes()]
        assert not any("{" in command for command in commands), bench.name
        # Each mode is another command, and none is known to the suites by its name.
        assert len(set(commands)) == len(commands), bench.name


def test_shipped_suites_of_a_mechanism_choose_their_modes() -> None:
    _, found = spec.load_all()
    assert found["latr"].modes == ("off", "fpr", "latr")
    assert found["numa"].modes == ("off", "latr")
    sharers = [suite for name, suite in found.items() if name.startswith("sharers")]
    assert len(sharers) == 4 and {suite.modes for suite in sharers} == {("off", "sharers")}
    for bench in found["numa"].benchmarks:
        assert bench.numa == 2
        paths = [metric.path for metric in bench.metrics]
        assert {"counters.numa_pages_migrated", "counters.numa_hint_faults"} <= set(paths)


_ALLOCATORS = ("glibc", "jemalloc", "tcmalloc", "mimalloc")


def test_shipped_grids_are_complete() -> None:
    benchmarks, found = spec.load_all()
    inside = {name: {b.name for b in suite.benchmarks} for name, suite in found.items()}
    assert {f"munmap-pages-{2**n}" for n in range(10)} <= inside["munmap"]
    engines = [f"{engine}-{phase}" for engine in ("leveldb", "lmdb") for phase in "abcdef"]
    assert {*engines, "leveldb-load", "lmdb-load", "leveldb-evict", "lmdb-evict"} == inside["ycsb"]
    tests = ["mmap1", "mmap2", "write1"]
    tests += [f"{kind}{n}" for kind in ("page_fault", "tlb_flush") for n in (1, 2, 3)]
    assert {f"scale-{t}{by}" for t in tests for by in ("", "-processes")} == inside["scale"]
    assert {f"munmap-peers-{n}" for n in (1, 8, 32, 64, 512)} <= inside["latr"]
    own = ("munmap", "file", "dontneed", "free", "protect", "copy")
    loops = [f"own-{op}-{place}" for op in own for place in ("near", "apart")]
    loops += [f"shared-{op}" for op in own if op != "file"]
    loads = [f"malloc-{load}-{a}" for load in ("own", "handover", "threads") for a in _ALLOCATORS]
    beside = [f"beside-{op}" for op in own]
    assert {*loops, *beside, *loads, "cow"} == inside["sharers"]
    assert all(benchmarks[name].cpus == (2, 8, 16, 64) for name in loops)
    victim = benchmarks["munmap-victim"]
    assert victim.metrics[0].name == "compute" and "ideal-compute" in victim.modes()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('group = "micro"', 'group = "other"', "group is one of"),
        ("command = ", "comand = ", "unknown key comand"),
        ("prog {n} {seconds}", "prog {m}", "no parameter m"),
        ("read = ", "fpr = ", "fpr is a mode of the kernel"),
        ("parameters = { n = 0 }", "parameters = { mode = 0 }", "parameter mode is built in"),
        ('title = "number {n}"', 'titel = "x"\ntitle = "y"', "unknown key titel"),
        ('benchmarks = ["b-1", "b-2"]', 'benchmarks = ["b-3"]', "there is no 'b-3'"),
        ("rounds = 3", "", "there is no 'rounds'"),
        ("[[suite]]", "[[suit]]", "unknown table suit"),
        ("[[suite]]", "[suite", "x.toml"),
        ('path = "rate" }', 'path = "rate", better = "most" }', "'more' or 'less'"),
        ("rounds = 3", 'rounds = 3\nmodes = ["off", "fast"]', "no benchmark has fast"),
        ("parameters = { n = 0 }", "parameters = { n = 0 }\nnuma = 3", "each node needs a CPU"),
        ("parameters = { n = 0 }", "parameters = { n = 0 }\nnuma = 0", "each node needs a CPU"),
        ("parameters = { n = 0 }", 'parameters = { n = 0 }\nnuma = "2"', "each node needs a CPU"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(suites: Path, old: str, new: str, why: str) -> None:
    assert old in TOML
    (suites / "x.toml").write_text(TOML.replace(old, new), encoding="utf-8")
    with pytest.raises(Failure, match=why):
        spec.load_all(suites)


def test_names_choose_a_suite_or_benchmarks(suites: Path) -> None:
    assert spec.choose(["default"], suites).name == "default"
    chosen = spec.choose(["b-2", "b-2"], suites)
    assert [b.name for b in chosen.benchmarks] == ["b-2"]
    assert chosen.rounds == 3
    with pytest.raises(UsageError, match="bench list"):
        spec.choose(["b-9"], suites)


def test_modes_are_chosen(suites: Path) -> None:
    bench = spec.choose(["default"], suites).benchmarks[0]
    assert bench.modes() == ["off", "fpr", "read"]
    assert bench.modes(["read"]) == ["off", "read"]
    assert bench.modes(["stock", "off", "pread"]) == ["off", "stock"]


def test_modes_alternate_and_rotate(suites: Path) -> None:
    suite = spec.choose(["b-2"], suites)
    (boot,) = schedule.boots(suite, chosen=["fpr"])
    assert [(mode, number) for _, mode, number in boot.samples] == [
        ("off", 0),
        ("fpr", 0),
        ("fpr", 1),
        ("off", 1),
        ("off", 2),
        ("fpr", 2),
    ]


def test_boots_share_guests_and_leave_out_what_is_done(suites: Path) -> None:
    suite = spec.choose(["default"], suites)
    boots = schedule.boots(suite)
    assert [(b.guest.cpus, [x.name for x in b.benchmarks]) for b in boots] == [
        (2, ["b-1", "b-2"]),
        (8, ["b-1"]),
    ]
    assert [len(b.samples) for b in boots] == [18, 9]
    done = {("b-1", 2, mode, number) for mode in MODES for number in range(3)}
    again = schedule.boots(suite, done)
    assert [(b.guest.cpus, [x.name for x in b.benchmarks]) for b in again] == [
        (2, ["b-2"]),
        (8, ["b-1"]),
    ]
    assert schedule.boots(suite, cpus=[4]) == []


def test_boots_of_another_kernel_alternate_with_the_others(suites: Path) -> None:
    suite = spec.choose(["b-2"], suites)
    chosen = ["off", "fpr", "stock"]
    boots = schedule.boots(suite, chosen=chosen)
    assert [(b.guest.kernel, [(m, n) for _, m, n in b.samples]) for b in boots] == [
        ("", [("off", 0), ("fpr", 0), ("fpr", 1), ("off", 1)]),
        ("stock", [("stock", 0), ("stock", 1)]),
        ("", [("off", 2), ("fpr", 2)]),
        ("stock", [("stock", 2)]),
    ]
    todo = schedule.tasks(boots[1], 0.5, {"seconds": "0.5"})
    assert [(t.mode, t.runs_as) for t in todo] == [("stock", "off")] * 2
    assert {t.command for t in todo} == {"mode-run off prog 2 0.5 off"}
    done = {("b-2", 2, "stock", n) for n in range(3)}
    assert [b.guest.kernel for b in schedule.boots(suite, done, chosen=chosen)] == ["", ""]


def run_options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    return parser.parse_args(words)


def test_options_choose_modes(suites: Path) -> None:
    suite = spec.choose(["default"], suites)
    for words, chosen in (
        ([], []),
        (["--stock"], ["off", "fpr", "read", "stock"]),
        (["--modes", "fpr"], ["fpr"]),
        (["--modes", "read,stock"], ["read", "stock"]),
        (["--modes", "fpr", "--stock"], ["fpr", "stock"]),
        (["--kernel", "stock"], ["off", "read"]),
    ):
        assert run.chosen_modes(suite, run_options(*words)) == chosen
    with pytest.raises(UsageError, match="'fast' is none of off, fpr, read, stock"):
        run.chosen_modes(suite, run_options("--modes", "fast"))


def test_quick_is_one_round_of_each_on_a_small_guest() -> None:
    suite = spec.choose(["own-copy-near", "shared-copy", "go"])
    quick = run._once(suite, chosen=False)
    assert (quick.rounds, quick.seconds) == (1, 1.0)
    assert {bench.cpus for bench in quick.benchmarks} == {(2,)}
    assert {bench.name for bench in quick.benchmarks} == {b.name for b in suite.benchmarks}
    assert run._once(suite, chosen=True).benchmarks == suite.benchmarks


def test_a_suite_chooses_modes_unless_the_options_do(suites: Path) -> None:
    text = TOML.replace("rounds = 3", 'rounds = 3\nmodes = ["off", "latr", "read"]')
    (suites / "x.toml").write_text(text, encoding="utf-8")
    suite = spec.choose(["default"], suites)
    for words, chosen in (
        ([], ["off", "latr", "read"]),
        (["--stock"], ["off", "latr", "read", "stock"]),
        (["--modes", "fpr"], ["fpr"]),
        (["--modes", "fpr", "--stock"], ["fpr", "stock"]),
        (["--kernel", "stock"], ["off", "read"]),
    ):
        assert run.chosen_modes(suite, run_options(*words)) == chosen
    (boot, _) = schedule.boots(suite, chosen=suite.modes)
    assert {mode for _, mode, _ in boot.samples} == {"off", "latr", "read"}
    # Benchmarks by name are no suite.
    assert run.chosen_modes(spec.choose(["b-2"], suites), run_options()) == []


@pytest.mark.parametrize(
    ("mode", "words"),
    [("sharers", "mode-run sharers prog 1 3 sharers"), ("latr+sharers", "mode-run latr+sharers")],
)
def test_modes_of_the_kernel_need_no_change_of_a_suite(mode: str, words: str, suites: Path) -> None:
    suite = spec.choose(["default"], suites)
    chosen = run.chosen_modes(suite, run_options("--modes", f"off,{mode}"))
    (boot, *_) = schedule.boots(suite, chosen=chosen)
    assert {found for _, found, _ in boot.samples} == {"off", mode}
    command = boot.benchmarks[0].shell_command(mode, {"seconds": "3"})
    assert command.startswith(words)


def test_nodes_are_part_of_the_guest(suites: Path) -> None:
    text = TOML.replace("cpus = [2]", "cpus = [2]\nnuma = 2")
    (suites / "x.toml").write_text(text, encoding="utf-8")
    boots = schedule.boots(spec.choose(["default"], suites))
    assert [(b.guest.cpus, b.guest.numa, [x.name for x in b.benchmarks]) for b in boots] == [
        (2, 1, ["b-1"]),
        (8, 1, ["b-1"]),
        (2, 2, ["b-2"]),
    ]


def test_nodes_of_this_machine_are_counted(
    suites: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balancing, "nodes", lambda: 1)
    monkeypatch.setattr(machine, "host_cpus", lambda: 8)
    text = TOML.replace("cpus = [2, 8]", "cpus = [2]\nnuma = 2")
    (suites / "x.toml").write_text(text, encoding="utf-8")
    suite = spec.choose(["b-2"], suites)
    folder = store.Folder(str(tmp_path / "out"), "x")
    where = runner.Where(in_place=True)
    assert runner.measure(suite, schedule.boots(suite), folder, where) == 1
    assert store.read(folder.path).samples == ()


def test_cpus_of_one_clock_have_no_times(
    suites: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[GuestSpec] = []

    def run_guest(spec: GuestSpec, *_: object, **__: object) -> None:
        seen.append(spec)
        raise Failure("no guest here")

    monkeypatch.setattr(runner, "run_guest", run_guest)
    monkeypatch.setattr(programs, "search_path", lambda: "")
    suite = spec.choose(["b-2"], suites)
    for one_clock in (False, True):
        folder = store.Folder(str(tmp_path / f"out{one_clock}"), "x")
        where = runner.Where(accel="tcg", one_clock=one_clock)
        runner.measure(suite, schedule.boots(suite, cpus=[2]), folder, where)
        lines = map(json.loads, (folder.path / "samples.jsonl").read_text().splitlines())
        (host,) = [line for line in lines if line["type"] == "host"]
        assert ("-icount" in host["where"]) == one_clock
        assert not (one_clock and host["comparable"])
    assert [guest.icount for guest in seen] == [False, True]
    assert seen[1].timeout > seen[0].timeout


def test_one_clock_is_for_emulated_cpus(suites: Path) -> None:
    suite = spec.choose(["b-2"], suites)
    for words in (["--in-place"], ["--accel", "kvm"]):
        with pytest.raises(UsageError, match="emulates the CPUs"):
            run.measure(suite, run_options("--one-clock", *words))


def test_a_new_mechanism_is_one_entry(suites: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = modes.Mechanism("other", "another one", "other_skip")
    monkeypatch.setattr(modes, "MECHANISMS", (*modes.MECHANISMS, other))
    suite = spec.choose(["b-2"], suites)
    chosen = run.chosen_modes(suite, run_options("--modes", "other,fpr+other"))
    (boot,) = schedule.boots(suite, chosen=chosen)
    assert [mode for _, mode, n in boot.samples if not n] == ["off", "other", "fpr+other"]
    todo = schedule.tasks(boot, 0.5, {"seconds": "0.5"})
    assert todo[2].command == "mode-run fpr+other prog 2 0.5 fpr+other"
    found = parsed(
        *rounds(),
        *(sample("other", n, metrics={"rate": 200.0}, counters=NOTHING) for n in range(5)),
        *(sample("fpr+other", n, metrics={"rate": 300.0}, counters=NOTHING) for n in range(5)),
    )
    text = page.render([found])
    last = len(modes.MECHANISMS) - 1
    for words in (f'class="bar mode{last}"', 'class="bar combined"', "</i>other", "</i>fpr+other"):
        assert words in text
    assert [c.mode for c in compare.comparisons(found)] == ["fpr", "other", "fpr+other"]


def test_old_results_call_it_on() -> None:
    old = [{**r, "mode": {"fpr": "on"}.get(r["mode"], r["mode"])} for r in rounds()]
    assert parsed(*old).samples == parsed(*rounds()).samples


def test_a_boot_goes_on_with_what_it_had_not_done(suites: Path) -> None:
    (boot,) = schedule.boots(spec.choose(["b-2"], suites))
    left = schedule.again(boot, {("b-2", 2, "off", 0), ("b-2", 8, "fpr", 0)})
    assert [(m, n) for _, m, n in left.samples] == [s[1:] for s in boot.samples[1:]]
    assert left.guest == boot.guest
    everything = {("b-2", 2, mode, n) for mode in MODES for n in range(3)}
    assert not schedule.again(boot, everything).samples


def lose_guests(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Let the emulator lose so many guests, each after its first sample."""
    tried: list[int] = []

    def boot_once(suite: spec.Suite, boot: schedule.Boot, folder: store.Folder, *_: object) -> None:
        tried.append(len(boot.samples))
        lost = len(tried) <= times
        folder.add({**HOST, "cpus": boot.guest.cpus})
        for bench, mode, number in boot.samples[:1] if lost else boot.samples:
            folder.add(sample(mode, number, benchmark=bench.name))
        if lost:
            raise runner.LostGuest("the emulator lost it")

    monkeypatch.setattr(runner, "_in_guest", boot_once)
    return tried


def test_a_guest_that_the_emulator_lost_is_booted_again(
    suites: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = spec.choose(["b-2"], suites)
    tried = lose_guests(monkeypatch, times=2)
    folder = store.Folder(str(tmp_path / "out"), "x")
    assert runner.measure(suite, schedule.boots(suite), folder, runner.Where()) == 0
    assert tried == [9, 8, 7]
    assert len(store.read(folder.path).samples) == 9


def test_a_guest_that_is_lost_each_time_is_a_failure(
    suites: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = spec.choose(["b-2"], suites)
    tried = lose_guests(monkeypatch, times=9)
    folder = store.Folder(str(tmp_path / "out"), "x")
    assert runner.measure(suite, schedule.boots(suite), folder, runner.Where()) == 1
    assert tried == [9, 8, 7]


def test_modes_can_be_compared_with_another_one() -> None:
    records = [*rounds(), *(sample("stock", n, metrics={"rate": 75.0}) for n in range(5))]
    found = compare.comparisons(parsed(*records), "stock")
    assert [(c.mode, round(c.ratios["rate"].middle, 2)) for c in found] == [
        ("off", 1.33),
        ("fpr", 2.03),
    ]
    assert compare.comparisons(parsed(*records), "no-such-mode") == []


def sample(mode: str, number: int, **values: Any) -> dict[str, Any]:
    record = {
        "schema": 2,
        "type": "sample",
        "benchmark": "b-1",
        "mode": mode,
        "round": number,
        "metrics": {"rate": 100.0},
        "operations": 1000,
        "wrong": 0,
        "output": "same",
        "counters": {"nr_tlb_remote_flush_received": 500},
    }
    return {**record, **values}


HOST = {
    "schema": 2,
    "type": "host",
    "cpus": 2,
    "comparable": True,
    "where": "in a guest with emulated CPUs (TCG)",
    "host_cpus": 2,
    "date": "today",
    "commit": "abc",
}
SUITE = {
    "schema": 2,
    "type": "suite",
    "name": "s",
    "benchmarks": {
        "b-1": {
            "group": "micro",
            "title": "number <1>",
            "verify": "same",
            "metrics": [{"name": "rate", "path": "rate", "better": "more"}],
            "paper": {"rate": "+21 %"},
        }
    },
}
NOTHING = {"nr_tlb_remote_flush_received": 5}


def parsed(*records: dict[str, Any]) -> store.Results:
    return store.parse([json.dumps(r) for r in (SUITE, HOST, *records)])


def rounds(on_rate: float = 150.0) -> list[dict[str, Any]]:
    found = []
    for number in range(5):
        found.append(sample("off", number))
        better = {"rate": on_rate + number}
        found.append(sample("fpr", number, metrics=better, counters=NOTHING))
    return found


def test_ratios_are_paired_and_have_an_interval() -> None:
    (found,) = compare.comparisons(parsed(*rounds()))
    ratio = found.ratios["rate"]
    assert ratio.middle == pytest.approx(1.52)
    assert 1.50 <= ratio.low <= 1.52 <= ratio.high <= 1.54
    assert found.rounds == 5
    assert found.shootdowns is not None
    assert found.shootdowns.share == pytest.approx(0.01)
    assert not found.failed
    assert compare.comparisons(parsed(*rounds()))[0] == found


def test_failures_wrong_data_and_other_output_are_told() -> None:
    found = compare.comparisons(
        parsed(
            *rounds(),
            sample("fpr", 5, wrong=2),
            sample("off", 5),
            sample("fpr", 6, output="other"),
            {k: v for k, v in sample("off", 6, failed="no").items() if k != "metrics"},
        )
    )[0]
    assert (found.wrong, found.different, found.failed) == (2, 1, ("off, round 6: no",))
    assert found.rounds == 6


def test_outliers_are_named_and_count() -> None:
    values = rounds()
    values[0] = sample("off", 0, metrics={"rate": 10.0})
    for number, record in enumerate(values):
        if record["mode"] == "off" and number:
            record["metrics"] = {"rate": 100.0 + number}
    found = compare.comparisons(parsed(*values))[0]
    assert found.outliers == ("off, round 0: rate: 0.10 of the median",)
    assert max(found.ratios["rate"].values) > 10


def test_no_ratio_where_times_mean_nothing_and_no_share_of_few() -> None:
    host = {**HOST, "comparable": False}
    lines = [SUITE, host, *rounds()]
    for line in lines[2:]:
        line["counters"] = {"nr_tlb_remote_flush_received": 1}
    found = compare.comparisons(store.parse([json.dumps(r) for r in lines]))[0]
    assert found.ratios == {}
    assert found.shootdowns is not None and found.shootdowns.share is None


def test_a_line_that_was_cut_off_is_left_out() -> None:
    lines = [json.dumps(r) for r in (SUITE, HOST, sample("off", 0))]
    assert len(store.parse([*lines, '{"schema": 2, "ty']).samples) == 1
    with pytest.raises(Failure, match="line 2 is not JSON"):
        store.parse([lines[0], "{", lines[1]])
    with pytest.raises(Failure, match="format 2"):
        store.parse(['{"schema": 1, "type": "munmap"}'])


def test_what_has_failed_is_measured_again() -> None:
    found = parsed(sample("off", 0), sample("fpr", 0, failed="no"))
    assert found.done() == {("b-1", 2, "off", 0)}


def test_page_stands_alone_and_escapes() -> None:
    text = page.render([parsed(*rounds())])
    assert "number &lt;1&gt;" in text
    assert "<script" not in text and "http" not in text
    assert "1.00 %" in text and "1.52" in text and "+21 %" in text
    assert "Emulated CPUs" in text
    assert text.count("<svg") == 2


def test_page_says_what_failed() -> None:
    text = page.render([parsed(*rounds(), sample("fpr", 7, failed="boom"), sample("off", 7))])
    assert "failed: fpr, round 7: boom" in text


def task(command: str, **values: Any) -> agent.Task:
    fields = {"metrics": {"rate": "rate"}, "operations": "ops", "timeout": 60.0, **values}
    return agent.Task(benchmark="b", mode="off", round=0, command=command, **fields)


def test_agent_takes_what_the_last_line_says(tmp_path: Path) -> None:
    line = '{"rate": 5, "ops": 7, "wrong": 1, "counters": {"x": 3}}'
    record = agent.sample(task(f"echo text; echo '{line}'"), tmp_path)
    assert record["metrics"] == {"rate": 5.0}
    assert (record["operations"], record["wrong"]) == (7.0, 1)
    assert record["counters"]["x"] == 3


def test_agent_takes_counters_that_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = iter(({"numa_pte_updates": 4}, {"numa_pte_updates": 9}))
    monkeypatch.setattr(counters, "of_samples", lambda: next(moved))
    metrics = {"hints": "counters.numa_pte_updates"}
    record = agent.sample(task("true", metrics=metrics, operations=""), tmp_path)
    assert record["metrics"] == {"hints": 5}


def test_agent_times_a_command_without_a_line(tmp_path: Path) -> None:
    chosen = task("sleep 0.2; echo out", metrics={"time": "seconds"}, operations="seconds")
    record = agent.sample(chosen, tmp_path)
    assert record["metrics"]["time"] >= 0.2
    assert len(record["output"]) == 16


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo no >&2; exit 3", "no; exit status 3"),
        ("echo '{}'", "printed no 'rate'"),
        ("""echo '{"rate": "x", "ops": 1}'""", "could not convert"),
    ],
)
def test_agent_says_why_a_command_failed(tmp_path: Path, command: str, why: str) -> None:
    assert why in agent.sample(task(command), tmp_path)["failed"]


def test_agent_ends_what_does_not_end(tmp_path: Path) -> None:
    record = agent.sample(task("sleep 1000 & sleep 1000", timeout=0.5), tmp_path)
    assert "no end in time" in record["failed"]
    assert subprocess.run(["pgrep", "-f", "^sleep 1000$"], check=False).returncode == 1


def test_agent_carries_out_a_plan(tmp_path: Path) -> None:
    line = '{"rate": 5, "ops": 7}'
    todo = agent.Plan(["touch prepared"], [task(f"ls; echo '{line}'")], str(tmp_path), "")
    file = tmp_path / "plan.json"
    path = {"path": "/usr/bin:/bin"}
    file.write_text(json.dumps({**json.loads(todo.text()), **path}), encoding="utf-8")
    done = subprocess.run([*todo.words(), str(file)], capture_output=True, text=True, check=True)
    kinds = [json.loads(text)["type"] for text in done.stdout.splitlines()]
    assert kinds == ["environment", "sample"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plan.json"]


def test_progress_tells_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    told = runner.Progress(total=10, estimate=600.0)
    told.sample("b", "")
    told.sample("b", "broken")
    assert "about 8 min left" in capsys.readouterr().err or told.failed == 1


def test_verbs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "list"]) == 0
    assert "munmap-2" in capsys.readouterr().out
    lines = [json.dumps(r) for r in (SUITE, HOST, *rounds())]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert main(["bench", "compare", str(tmp_path)]) == 0
    assert "1.00 %" in capsys.readouterr().out
    assert main(["bench", "compare", "--json", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["ratios"]["rate"][0] == pytest.approx(1.52)
    file = tmp_path / "page.html"
    assert main(["bench", "report", str(tmp_path), "--html", str(file)]) == 0
    assert file.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "nothing"],
        ["run", "--rounds", "0"],
        ["run", "--seconds", "1e9"],
        ["run", "--dir", "/tmp"],
        ["run", "--stock", "--in-place"],
        ["run", "--stock", "--kernel", "stock"],
        ["run", "munmap-1", "--cpus", "3"],
        ["compare", "/nonexistent"],
        ["report", "/nonexistent", "--html", "x"],
    ],
)
def test_wrong_use_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words]) == 2
    out, err = capsys.readouterr()
    assert not out and len(err.splitlines()) == 1


def test_only_the_list_says_how_long_a_suite_takes(root: Path) -> None:
    _, suites = spec.load_all()
    text = (root / "docs" / "results.md.j2").read_text(encoding="utf-8")
    default = re.search(r"The suite took (\d+) min (\d+) s", text)
    quick = re.search(r"`--quick` took (\d+) s", text)
    assert default is not None and quick is not None
    measured = {"default": 60 * int(default[1]) + int(default[2]), "quick": int(quick[1])}
    for name, seconds in measured.items():
        estimate = sum(boot.seconds(suites[name].seconds) for boot in schedule.boots(suites[name]))
        assert estimate == pytest.approx(seconds, rel=0.15), name
    documents = [root / "docs" / "benchmark.md", root / "man" / "ceasefire-bench.1"]
    texts = [path.read_text(encoding="utf-8") for path in documents]
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    for said in (*texts, parser.format_help()):
        assert not re.search(r"\bminutes?\b", said)


def test_python_words_find_the_package() -> None:
    command = f"{programs.python_words()} -c 'import ceasefire.bench.catalog'"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    assert sys.executable in command
