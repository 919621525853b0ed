# SPDX-License-Identifier: GPL-2.0-only
"""`scripts/check` leaves out a check only if its inputs are those with which it has passed.

In a made-up clone with the real script and checks of the test's own.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.driver.environment import ROOT

LIMIT = 600
# Says how often it has run, and passes if there is a file "good".
CHECK = """#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A check of the test's own.
# check: quick
{inputs}
echo once >>{ran}
[[ -e {good} ]]
"""


class Clone:
    """A clone with one check."""

    def __init__(self, box: Path, inputs: str = "# inputs: data scripts") -> None:
        self.folder = box / "clone"
        self.home = box / "home"
        self.ran, self.good = box / "ran", box / "good"
        self.data = self.folder / "data" / "file"
        self.good.touch()
        self.ran.touch()
        self.home.mkdir(exist_ok=True)
        for folder in ("scripts", "data", "kernel", "emulator"):
            (self.folder / folder).mkdir(parents=True)
        for name in ("check", "paths", *(p.name for p in (ROOT / "scripts").glob("lib*.sh"))):
            shutil.copy(ROOT / "scripts" / name, self.folder / "scripts")
        for part in ("kernel", "emulator"):
            (self.folder / part / "BASE").write_text("none 0-1 sha256:0\n")
        shutil.copy(ROOT / "requirements.txt", self.folder)
        self.data.write_text("as it was\n")
        check = self.folder / "scripts" / "check-own"
        check.write_text(CHECK.format(inputs=inputs, ran=self.ran, good=self.good))
        check.chmod(0o755)
        subprocess.run(["git", "init", "-q", self.folder], check=True, timeout=LIMIT)

    def check(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.folder / "scripts" / "check", *words],
            env={"HOME": str(self.home), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def times(self) -> int:
        return len(self.ran.read_text().splitlines())


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_second_run_is_left_out_and_says_so(clone: Clone) -> None:
    first, second = clone.check(), clone.check()
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert clone.times() == 1
    assert "ok 1 - check-own # as before" in second.stdout
    assert "as before" not in first.stdout


def test_again_runs_it(clone: Clone) -> None:
    clone.check()
    assert clone.check("--again").returncode == 0
    assert clone.times() == 2


@pytest.mark.parametrize("change", ["data", "new", "gone", "script", "check", "lock"])
def test_changed_input_is_checked(clone: Clone, change: str) -> None:
    clone.check()
    match change:
        case "data":
            clone.data.write_text("as it is\n")
        case "new":
            (clone.data.parent / "other").touch()
        case "gone":
            clone.data.unlink()
        case "script":
            (clone.folder / "scripts" / "lib.sh").open("a").write("# more\n")
        case "check":
            (clone.folder / "scripts" / "check-own").open("a").write("# more\n")
        case "lock":
            (clone.folder / "requirements.txt").open("a").write("# more\n")
    clone.check()
    assert clone.times() == 2


def test_what_is_left_out_of_the_inputs_may_change(tmp_path: Path) -> None:
    clone = Clone(tmp_path, inputs="# inputs: data :!data/notes scripts")
    clone.check()
    (clone.data.parent / "notes").touch()
    clone.check()
    assert clone.times() == 1
    clone.data.write_text("as it is\n")
    clone.check()
    assert clone.times() == 2


def test_failure_is_not_kept(clone: Clone) -> None:
    clone.good.unlink()
    assert clone.check().returncode == 1
    assert clone.check().returncode == 1
    assert clone.times() == 2


def test_check_without_inputs_always_runs(tmp_path: Path) -> None:
    clone = Clone(tmp_path, inputs="#")
    assert clone.check().returncode == clone.check().returncode == 0
    assert clone.times() == 2


def test_tree_that_is_not_what_its_hooks_say_is_checked(tmp_path: Path) -> None:
    """There is no script that could make the tree here, so nobody knows what is in it."""
    clone = Clone(tmp_path, inputs="# inputs: kernel scripts")
    assert clone.check().returncode == clone.check().returncode == 0
    assert clone.times() == 2
