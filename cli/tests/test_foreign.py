# SPDX-License-Identifier: GPL-2.0-only
"""Foreign test suites: what counts as worse with a mechanism, and lists that make sense."""

import subprocess
from pathlib import Path

import pytest
from tests.foreign import __main__ as foreign
from tests.foreign import arms, guest, judge, suite
from tests.foreign.arms import Arm
from tests.foreign.judge import Run

from ceasefire import modes
from ceasefire.errors import UsageError

TAP = "TAP version 13\n1..2\nok 1 one\n{}ok 2 two of 4096 bytes\n"


@pytest.mark.parametrize(
    ("without", "forced", "mark"),
    [
        (Run(0), Run(1), "exit status 1"),
        (Run(0), Run(4), "exit status 4"),
        (Run(4), Run(1), "exit status 1"),
        (Run(1), Run(None), "no end"),
        (Run(0, TAP.format("")), Run(0, TAP.format("not ")), "not ok N two of N bytes"),
        (Run(1, "not ok 1 a\n"), Run(1, "not ok 1 a\nnot ok 2 a\n"), "not ok N a"),
        (Run(0, "ok 1 a\n"), Run(0, "ok 1 a # SKIP no pages\n"), "ok N a # SKIP no pages"),
        (Run(0), Run(0, "# [FAIL] it differs\n"), "# [FAIL] it differs"),
        (Run(0), Run(0, "Testing minor on shmem... failed [x]\n"), "Testing minor on shmem"),
        (Run(0), Run(0, "stress-ng: fail:  [12] mmap: wrong\n"), "stress-ng: fail:  [N] mmap"),
        (Run(0), Run(0, complaints=("WARNING: at x",)), "kernel log: WARNING: at x"),
        (Run(0), Run(0, left=("left behind: parked",)), "left behind: parked"),
    ],
)
def test_worse_with_fpr_is_noticed(without: Run, forced: Run, mark: str) -> None:
    found = judge.worse([without], forced)
    assert len(found) == 1
    assert found[0].startswith(mark)


@pytest.mark.parametrize(
    ("without", "forced"),
    [
        (Run(0, TAP.format("")), Run(0, TAP.format(""))),
        (Run(1, "not ok 1 a 12\n"), Run(1, "not ok 1 a 13\n")),
        (Run(1, "not ok 1 a\n"), Run(0, "ok 1 a\n")),
        (Run(0, complaints=("at 7f2e9de00000",)), Run(0, complaints=("at 7f31aade0000",))),
        (Run(0, "stress-ng: info: [1] failed: 0\n"), Run(0, "stress-ng: info: [2] failed: 0\n")),
    ],
)
def test_no_worse_is_no_failure(without: Run, forced: Run) -> None:
    assert judge.worse([without], forced) == []


def test_what_any_run_without_fpr_shows_is_known() -> None:
    assert judge.worse([Run(0), Run(1)], Run(1)) == []
    # Two runs that fail once do not excuse one that fails twice.
    once = Run(0, "not ok 1 a\n")
    assert judge.worse([once, once], Run(0, "not ok 1 a\nnot ok 2 a\n"))


def test_what_is_known_to_differ_has_to_differ_so() -> None:
    forced = Run(1, "Bail out! no line\n")
    assert judge.otherwise(forced, ["exit status 1"], "no line", ["exit status 1"]) == []
    assert judge.otherwise(forced, ["exit status 1"], "a line", ["exit status 1"])
    assert judge.otherwise(forced, ["exit status 1", "no end"], "no line", ["exit status 1"]) == [
        "no end"
    ]


@pytest.mark.parametrize("arm", arms.ARMS, ids=lambda arm: arm.name)
def test_runs_that_show_nothing(arm: Arm) -> None:
    used, unused = Run(0, counters={arm.used: 3}), Run(0, counters={arm.used: 0})
    assert judge.unusable(arm, [unused], used, maps=True) == []
    assert judge.unusable(arm, [unused], unused, maps=False) == []
    assert judge.unusable(arm, [unused], unused, maps=True)
    assert judge.unusable(arm, [used], used, maps=True)


def test_each_mechanism_is_an_arm() -> None:
    assert [arm.mechanism for arm in arms.ARMS] == list(modes.MECHANISMS)


def test_lazy_processes_are_those_that_are_executed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modes, "SYSFS", tmp_path)
    arm = arms.choose("latr")
    arm.mechanism.folder.mkdir()
    switch = arm.mechanism.switch
    with pytest.raises(KeyboardInterrupt), arm.switched():
        assert switch.read_text(encoding="ascii") == "always"
        raise KeyboardInterrupt
    assert switch.read_text(encoding="ascii").strip() == "ask"


@pytest.mark.parametrize("name", ["mm-selftests", "stress-ng"])
def test_lists_are_well_formed(name: str) -> None:
    found = suite.load(name)
    assert suite.choose(found, []) == list(found.commands)
    for command in found.commands.values():
        subprocess.run(["sh", "-n", "-c", command], check=True)


@pytest.mark.parametrize(
    "text",
    [
        "command = ",
        "command = 'x'\n",
        "command='{}'\ntimeout=1\nmaps=['b']\n[test]\na=''\n[left_out]\n",
        "command='{}'\ntimeout=1\nmaps=[]\nmore=1\n[test]\na=''\n[left_out]\n",
        "command='{}'\ntimeout=1\nmaps=[]\n[test]\na=''\n[left_out]\n"
        "[differs]\na={says='', marks=[], because=''}\n",
    ],
)
def test_bad_list_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"s\.toml"):
        suite.load("s", tmp_path)


def test_bad_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert foreign.main(["nothing"]) == 2
    assert foreign.main(["stress-ng", "nothing"]) == 2
    assert foreign.main(["stress-ng", "--with", "nothing", "vm"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert all("nothing" in line for line in errors)


def compare(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *runs: Run,
    brief: bool = False,
    arm: str = "fpr",
    differs: dict[str, suite.Difference] | None = None,
) -> tuple[int, list[str]]:
    """Compare with these runs as results: the first without, the second with, more without."""
    left = iter(runs)
    monkeypatch.setattr(guest, "run", lambda *_args: next(left))
    only = suite.Suite({"a": "true"}, 1, frozenset({"a"}), {"b": "no room"}, differs or {})
    status = foreign.compare(only, ["a"], Path(), arms.choose(arm), brief=brief)
    assert not list(left)
    return status, capsys.readouterr().out.splitlines()


USED = {"fpr_map": 7, "fpr_skip": 2}


def test_a_failure_is_repeated_without_fpr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = Run(1, "why it fails\n", counters=USED)
    status, lines = compare(monkeypatch, capsys, Run(0), bad, Run(0), Run(0), Run(0))
    assert status == 1
    assert "not ok 1 - a" in lines
    assert "# a: with| why it fails" in lines
    assert "# left out: b: no room" in lines
    status, lines = compare(monkeypatch, capsys, Run(0), bad, Run(0), Run(1))
    assert status == 0
    assert "ok 1 - a" in lines


def test_a_difference_is_known_of_an_arm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {"a": suite.Difference(frozenset({"latr"}), "why", ("exit status 2",), "it may")}
    bad = Run(2, "why\n", counters={**USED, "latr_skip": 1})
    runs = [Run(0), bad, *[Run(0)] * 3]
    assert compare(monkeypatch, capsys, *runs, differs=known)[0] == 1
    status, lines = compare(monkeypatch, capsys, *runs, arm="latr", differs=known)
    assert status == 0
    assert "# a: differs, and may: it may" in lines


def test_brief_runs_without_fpr_what_complains(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = Run(0, counters=USED), Run(1, counters=USED)
    assert compare(monkeypatch, capsys, good, brief=True)[0] == 0
    assert compare(monkeypatch, capsys, bad, Run(1), brief=True)[0] == 0
    assert compare(monkeypatch, capsys, bad, *[Run(0)] * 4, brief=True)[0] == 1


def test_a_skip_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = compare(monkeypatch, capsys, Run(4), Run(4))
    assert status == 0
    assert "ok 1 - a # SKIP it skips without FPR, too" in lines


def test_a_test_that_maps_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = compare(monkeypatch, capsys, Run(0), Run(0))
    assert status == 1
    assert "# a: only with FPR: fpr_map was not counted" in lines


def test_counts_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = compare(monkeypatch, capsys, Run(0), Run(0, counters=USED))
    assert status == 0
    assert "# | a | passes | 7 | 2 | 0 | 0 | 0 |" in lines
    assert "# never used FPR: none" in lines
