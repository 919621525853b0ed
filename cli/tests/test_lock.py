# SPDX-License-Identifier: GPL-2.0-only
"""The check of the lock of Python packages notices what is missing in it."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def check(root: Path, tmp_path: Path) -> Callable[[str, str], str]:
    """Return a function that checks texts of both files and returns what is wrong."""

    def run(lock: str, wanted: str) -> str:
        (tmp_path / "lock").write_text(lock)
        (tmp_path / "wanted").write_text(wanted)
        script = root / "scripts" / "lock_complete.py"
        done = subprocess.run(
            [sys.executable, "-I", "-B", str(script), tmp_path / "lock", tmp_path / "wanted"],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.stderr == ""
        assert done.returncode == bool(done.stdout)
        return done.stdout

    return run


@pytest.fixture
def lock(root: Path) -> str:
    return (root / "requirements.txt").read_text()


@pytest.fixture
def wanted(root: Path) -> str:
    return (root / "requirements.in").read_text()


def test_the_lock_is_complete(check: Callable[[str, str], str], lock: str, wanted: str) -> None:
    assert check(lock, wanted) == ""


def test_a_package_is_missing(check: Callable[[str, str], str], lock: str, wanted: str) -> None:
    without = re.sub(r"(?m)^pysocks==.*\\\n(    --hash.*\n)+", "", lock)
    assert without != lock
    assert "lacks pysocks" in check(without, wanted)


def test_a_checksum_is_missing(check: Callable[[str, str], str], lock: str, wanted: str) -> None:
    without = re.sub(r"(?m)^rich==(.*) \\\n(    --hash.*\n)+", r"rich==\1\n", lock)
    assert without != lock
    assert "is not one version with checksums: rich" in check(without, wanted)


@pytest.mark.parametrize("line", ["rich>=15.0.0", "rich", "-e .", "git+https://example.org/x"])
def test_a_line_pins_nothing(
    line: str, check: Callable[[str, str], str], lock: str, wanted: str
) -> None:
    assert "is not one version" in check(f"{lock}{line} --hash=sha256:{'0' * 64}\n", wanted)


def test_other_versions(check: Callable[[str, str], str], lock: str, wanted: str) -> None:
    other = lock.replace("rich==", "rich==1")
    assert "but wanted needs rich==" in check(other, wanted)
    assert "which is installed" in check(other, wanted)


def test_more_is_locked_than_wanted(
    check: Callable[[str, str], str], lock: str, wanted: str
) -> None:
    less = re.sub(r"(?m)^ruff==.*\n", "", wanted)
    assert "ruff, which nothing needs" in check(lock, less)


def test_no_lock(check: Callable[[str, str], str], wanted: str) -> None:
    assert "names no package" in check("", wanted)
