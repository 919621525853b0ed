# SPDX-License-Identifier: GPL-2.0-only
"""Shared by the tests: running the command line, fixtures, the markers of tests that boot."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "cli"), str(ROOT)]

# A call that boots a guest takes ten to thirty seconds.
CALL_LIMIT = 2400.0


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers."""
    config.addinivalue_line("markers", "guest: boots a virtual machine, needs a built kernel")
    config.addinivalue_line("markers", "long: as guest, takes long or needs more programs")


@pytest.fixture
def root() -> Path:
    """Return the root of the checkout."""
    return ROOT


@pytest.fixture
def data() -> Path:
    """Return the directory of recorded inputs."""
    return Path(__file__).with_name("data")


Runner = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def ceasefire() -> Runner:
    """Return a function that runs the command line and collects what it prints."""

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "cli"), **variables}
        return subprocess.run(
            [sys.executable, "-m", "ceasefire", *words],
            capture_output=True,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=CALL_LIMIT,
            check=False,
        )

    return run


@pytest.fixture
def empty_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the build directory to an empty place."""
    monkeypatch.setenv("CEASEFIRE_BUILD", str(tmp_path))
    return tmp_path
