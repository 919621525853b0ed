# SPDX-License-Identifier: GPL-2.0-only
"""scripts/debian-kernels where nothing can be fetched; that it works is shown by what boots them
(test_advise_programs.py).
"""

import os
import subprocess
from pathlib import Path

import pytest

SUITES = ("bookworm", "trixie", "trixie-backports")
LIMIT = 600


@pytest.fixture
def offline(tmp_path: Path) -> Path:
    """Return a folder with an apt-get that reaches nobody."""
    folder = tmp_path / "bin"
    folder.mkdir()
    fake = folder / "apt-get"
    fake.write_text("#!/bin/sh\necho E: no network >&2\nexit 100\n")
    fake.chmod(0o755)
    return folder


def run(root: Path, offline: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [root / "scripts" / "debian-kernels", *words],
        env={**os.environ, "PATH": f"{offline}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def test_without_a_network_it_says_so(root: Path, offline: Path, empty_build: Path) -> None:
    done = run(root, offline)
    assert (done.returncode, done.stdout) == (1, "")
    message = done.stderr.splitlines()[-1]
    assert message.startswith("debian-kernels: fetching the kernel of bookworm failed: check the")
    log = Path(message.rpartition("(all of it in ")[2].rstrip(")"))
    assert "E: no network" in log.read_text()
    assert not (empty_build / "debian" / "bookworm").exists()


def test_what_is_there_needs_no_network(root: Path, offline: Path, empty_build: Path) -> None:
    for suite in SUITES:
        (empty_build / "debian" / suite).mkdir(parents=True)
        (empty_build / "debian" / suite / "vmlinuz").touch()
    done = run(root, offline)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(empty_build / "debian" / suite) for suite in SUITES]
    # A failed refresh leaves what was there.
    assert run(root, offline, "--refresh").returncode == 1
    assert (empty_build / "debian" / "bookworm" / "vmlinuz").exists()
    assert run(root, offline, "--nonsense").returncode == 2
