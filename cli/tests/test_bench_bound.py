# SPDX-License-Identifier: GPL-2.0-only
"""What a lazy munmap leaves: guests, lines of bound-bench, and what is not as it must be."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ceasefire.bench.cli import KINDS
from ceasefire.bench.measure import bound, programs
from ceasefire.bench.results import store
from ceasefire.bench.verbs import bound as verb
from ceasefire.errors import Failure, UsageError
from ceasefire.vm import GuestSpec


def cpu_line(kind: str, **changes: Any) -> str:
    """Return what bound-bench prints for a kind of CPU that is as it must be."""
    line = {"schema": 1, "type": "bound", "kind": kind, "without_tick": "", "settle_ms": 12}
    line |= {"late_ms": 100, "hz": 250.0, "bound_ns": 20000000, "rounds": 1000, "used": 990}
    line |= {"worst_ns": 30000000, "worst_of_bound": 1.5, "over": 2, "gap_ns": 4000000}
    line |= {"disturbed": 40, "judged": 950, "worst_judged_ns": 15900000}
    line |= {"worst_judged_of_bound": 0.795, "settled_seen": 3, "after_settled": 0, "wrong": 0}
    line |= {"latency_ns": {"p50": 11000000, "p99": 15000000}, "histogram": [[8388608, 990]]}
    line |= {"counters": {"latr_skip": 1000, "latr_late": 0}}
    return json.dumps(line | changes)


def memory_line(**changes: Any) -> str:
    """Return what it prints for memory."""
    line = {"schema": 1, "type": "waiting", "threads": 2, "pages": 512, "settle_ms": 12}
    line |= {"limit_bytes": 16 << 20, "operations": 100, "ns": 5000000000}
    line |= {"peak_bytes": 16 << 20, "left_after_ms": 100, "left_bytes": 0}
    return json.dumps(line | {"counters": {"latr_skip": 60}} | changes)


def figures(*lines: str) -> dict[str, list[verb.Figure]]:
    """Return what the lines come to after they were on the disk."""
    texts = [json.dumps({"schema": store.SCHEMA, **r}) for r in bound.samples_in(lines)]
    return verb.figures_of(store.parse(texts).samples)


def failed(*lines: str) -> list[str]:
    """Return which figures are not as they must be."""
    return [f.what for list_ in figures(*lines).values() for f in list_ if f.verdict == verb.FAIL]


def test_samples_are_well_formed_and_noise_is_none() -> None:
    noise = ["noise", '{"type": "environment", "rounds": 1}', '{"type": "bound"}', "[]", "3"]
    records = list(bound.samples_in([*noise, cpu_line("busy"), memory_line()]))
    assert [r["benchmark"] for r in records] == ["bound-busy", "bound-memory"]
    assert [r["operations"] for r in records] == [1000, 100]
    assert records[0]["metrics"]["worst_ns"] == 30000000
    for record in records:
        assert "schema" not in record["metrics"]
        line = json.dumps({"schema": store.SCHEMA, **record})
        assert store.well_formed(line.encode()) is not None


def test_all_is_as_it_must_be() -> None:
    assert not failed(cpu_line("busy"), cpu_line("idle"), memory_line())


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"worst_judged_ns": 20000001}, "longest use"),
        ({"judged": 99}, "judged windows"),
        ({"after_settled": 1}, "uses after it was settled"),
        ({"wrong": 1}, "wrong data"),
    ],
)
def test_a_cpu_that_breaks_a_promise(changes: dict[str, int], what: str) -> None:
    assert failed(cpu_line("busy", **changes), memory_line()) == [what]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"peak_bytes": (16 << 20) + 4096}, "most that waited"),
        ({"left_bytes": 4096}, "left after 100 ms"),
        ({"counters": {"latr_skip": 0}}, "lazy munmaps"),
    ],
)
def test_memory_that_breaks_a_promise(changes: dict[str, Any], what: str) -> None:
    assert failed(cpu_line("busy"), memory_line(**changes)) == [what]


def test_a_number_that_is_missing_is_a_failure() -> None:
    line = json.loads(cpu_line("busy"))
    del line["judged"]
    with pytest.raises(Failure, match="busy has no 'judged'"):
        figures(json.dumps(line))


def test_one_that_was_not_run_breaks_none() -> None:
    (found,) = figures(cpu_line("busy")).values()
    worst = next(f for f in found if f.what == "longest use of all")
    assert worst.found == "30.0 ms (x 1.50)" and worst.verdict == verb.INFO


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    KINDS["bound"].add(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    "words",
    [
        ["--kinds", "busy,sleepy"],
        ["--kinds", "busy,busy"],
        ["--kinds", ""],
        ["--cpus", "1"],
        ["--cpus", "2,3"],
        ["--rounds", "0"],
        ["--pages", "0"],
        ["--seconds", "0"],
    ],
)
def test_wrong_use(words: Sequence[str]) -> None:
    with pytest.raises(UsageError):
        verb.plan_of(arguments(*words))


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bound-bench be built."""
    monkeypatch.setattr(programs, "find", lambda name: Path("/") / name)


@pytest.mark.usefixtures("program")
def test_only_the_isolated_cpu_takes_a_guest_of_its_own() -> None:
    (ticking, command), (isolated, other) = verb.plan_of(arguments("--cpus", "3")).guests()
    assert ticking.kernel == "run" and not ticking.append
    assert "busy,idle,memory" in command and "isolated" in other
    assert isolated.kernel == "debug"
    assert isolated.append == ("isolcpus=domain,managed_irq,2", "nohz_full=2")
    ((only, _),) = verb.plan_of(arguments("--kinds", "isolated")).guests()
    assert only.append[-1] == "nohz_full=1"


class FakeGuest:
    """A guest that has printed something."""

    def __init__(self, *lines: str, status: int = 0) -> None:
        self.stdout = "\n".join(lines).encode()
        self.stderr = b"bound-bench: 1 reads found what was not in the page\n"
        self.status = status

    def check(self) -> int:
        return self.status


def boot(monkeypatch: pytest.MonkeyPatch, *guests: FakeGuest) -> list[GuestSpec]:
    """Let the next guests be these; return the list of those that are booted."""
    booted: list[GuestSpec] = []
    left = list(guests)

    def run_guest(spec: GuestSpec, *_: object, **__: object) -> FakeGuest:
        booted.append(spec)
        return left.pop(0)

    monkeypatch.setattr(bound, "run_guest", run_guest)
    monkeypatch.setattr(bound, "accelerator", lambda spec: "tcg")
    return booted


@pytest.mark.usefixtures("program")
def test_the_exit_status_says_whether_all_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = FakeGuest(cpu_line("busy"), cpu_line("idle"), memory_line())
    late = cpu_line("isolated", without_tick="tickless_cpu", after_settled=1)
    booted = boot(monkeypatch, good, FakeGuest(late))
    assert verb.main(arguments("--out", str(tmp_path / "a"))) == 1
    assert [spec.kernel for spec in booted] == ["run", "debug"]
    out, err = capsys.readouterr()
    assert err.endswith("not as it must be: isolated\n") and "tickless_cpu" in out
    assert out.split().count("fail") == 1
    boot(monkeypatch, good)
    words = ["--kinds", "busy,idle,memory", "--json", "--out", str(tmp_path / "b")]
    assert verb.main(arguments(*words)) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [o["kind"] for o in objects] == ["busy", "idle", "memory"]
    assert {f["verdict"] for o in objects for f in o["figures"]} == {"pass", "info"}
    assert objects[0]["kernel"] == "run" and objects[0]["metrics"]["bound_ns"] == 20000000


@pytest.mark.usefixtures("program")
def test_what_is_missing_or_wrong_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot(monkeypatch, FakeGuest(cpu_line("busy")))
    with pytest.raises(Failure, match="no samples came of idle"):
        verb.main(arguments("--kinds", "busy,idle", "--out", str(tmp_path / "a")))
    boot(monkeypatch, FakeGuest(cpu_line("busy", wrong=1), status=1))
    with pytest.raises(Failure, match="not in the page"):
        verb.main(arguments("--kinds", "busy", "--out", str(tmp_path / "b")))
    # What it has measured is kept.
    (sample,) = store.read(tmp_path / "b").samples
    assert sample.wrong == 1
