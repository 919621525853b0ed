# SPDX-License-Identifier: GPL-2.0-only
"""A clone at a path with a space says so at once, whatever is called in it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ceasefire import paths
from ceasefire.errors import Failure

LIMIT = 600
CALLS = [
    ["make"],
    ["make", "demo"],
    ["make", "test"],
    ["make", "clean"],
    ["scripts/paths"],
    ["scripts/tree"],
    ["scripts/demo"],
    ["scripts/check", "--list"],
    ["scripts/kernel-build", "run"],
    ["scripts/install-deps"],
    ["tests/run", "--list"],
    ["./ceasefire", "--version"],
    ["./ceasefire", "doctor"],
]


@pytest.fixture(params=["a clone", "a\tclone", "a:clone", "a\nclone"], ids=ascii)
def clone(request: pytest.FixtureRequest, root: Path, tmp_path: Path) -> Path:
    """Return what is at a bad path: nothing there but what is called, and a home."""
    path = tmp_path / str(request.param)
    path.mkdir()
    for name in ("Makefile", "ceasefire"):
        shutil.copy(root / name, path)
    for name in ("scripts", "cli/ceasefire", "tests/driver"):
        shutil.copytree(root / name, path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "tests/run", path / "tests")
    (path / "kernel").mkdir()
    shutil.copy(root / "kernel/BASE", path / "kernel")
    (tmp_path / "home").mkdir()
    return path


def test_everything_says_so_in_one_line(clone: Path, tmp_path: Path) -> None:
    # A line break is no path that make can speak of in a line.
    calls = [words for words in CALLS if "\n" not in clone.name or words[0] != "make"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    for variables in (environment, {**environment, "CEASEFIRE_BUILD": str(tmp_path / "built")}):
        for words in calls:
            done = subprocess.run(
                words,
                cwd=clone,
                env=variables,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
            said = done.stdout + done.stderr
            assert done.returncode != 0, words
            assert said.count("\n") == 1, (words, said)
            assert "a space or a colon" in said
            assert "this clone is at" in said
    # Nothing was begun.
    assert list((tmp_path / "home").iterdir()) == []
    assert not (tmp_path / "built").exists()


def test_the_tools_in_python_say_so_too(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "checkout", lambda: clone)
    for build in ("/somewhere", ""):
        monkeypatch.setenv("CEASEFIRE_BUILD", build)
        with pytest.raises(Failure, match="a space or a colon"):
            paths.build_dir()


def test_no_kernel_in_a_build_folder_with_a_space(root: Path, tmp_path: Path) -> None:
    build = tmp_path / "a folder"
    for words in (["scripts/kernel-build", "run"], ["scripts/emulator-build"]):
        done = subprocess.run(
            words,
            cwd=root,
            env={**os.environ, "CEASEFIRE_BUILD": str(build)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert "nothing can be built in" in done.stderr
    assert not build.exists()


def test_demo_says_first_how_long_it_takes(root: Path, tmp_path: Path) -> None:
    command = ["make", "--no-print-directory", "-n", "demo"]
    # A make that runs the tests is none of this one's business.
    mine = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=root, env=mine, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "scripts/demo --time"
    for built, says in ((False, "6 minutes on two free CPUs"), (True, "about two minutes")):
        if built:
            image = tmp_path / "linux/build-run/arch/x86/boot/bzImage"
            image.parent.mkdir(parents=True)
            image.touch()
        done = subprocess.run(
            ["scripts/demo", "--time"],
            cwd=root,
            env={**os.environ, "CEASEFIRE_BUILD": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=True,
        )
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
