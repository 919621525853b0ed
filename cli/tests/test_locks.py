# SPDX-License-Identifier: GPL-2.0-only
"""What others plant in a build folder is neither written nor waited for, in the scripts and in
Python alike; and a folder that strangers can change is not used at all.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

LIMIT = 600
# The user and the group of nobody.
STRANGER = 65534

Use = Callable[[Path], "subprocess.CompletedProcess[str]"]


def _run(words: list[str], root: Path, build: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "CEASEFIRE_BUILD": str(build), "PYTHONPATH": str(root / "cli")}
    return subprocess.run(
        words,
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT,
        check=False,
    )


@pytest.fixture(params=["shell", "python"])
def use(request: pytest.FixtureRequest, root: Path) -> Use:
    """Return a function that uses a build folder, taking the lock `.lock`."""
    code = "from ceasefire import errors, paths\ntry:\n    paths.logs_dir()\n"
    code += "except errors.Failure as failure:\n    raise SystemExit(str(failure))"
    words = {
        "shell": ["bash", "-c", '. scripts/lib.sh && with_lock tree && echo "$LOCK_FD"'],
        "python": [sys.executable, "-c", code],
    }[str(request.param)]
    return lambda build: _run(words, root, build)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Return a build folder that is used already."""
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / ".ceasefire-build").touch()
    return folder


@pytest.mark.parametrize("name", [".lock", ".lock-tree"])
def test_a_planted_link_is_not_followed(
    use: Use, build: Path, tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    # Python has no locks of parts.
    unused = request.node.callspec.params == {"use": "python", "name": ".lock-tree"}
    precious, absent = tmp_path / "precious", tmp_path / "absent"
    precious.write_text("letters\n")
    for target in (precious, absent):
        (build / ".lock").unlink(missing_ok=True)
        (build / name).unlink(missing_ok=True)
        (build / name).symlink_to(target)
        done = use(build)
        assert precious.read_text() == "letters\n"
        assert not absent.exists()
        assert done.returncode == (0 if unused else 1)
        assert unused or "no lock of ceasefire" in done.stderr
        assert unused or "remove it" in done.stderr
        assert done.stderr.count("\n") == (0 if unused else 1)


def test_a_planted_pipe_is_not_waited_for(use: Use, build: Path) -> None:
    os.mkfifo(build / ".lock")
    done = use(build)
    assert done.returncode == 1
    assert "no lock of ceasefire" in done.stderr


def test_a_lock_is_not_truncated(use: Use, build: Path) -> None:
    for name in (".lock", ".lock-tree"):
        (build / name).write_text("text\n")
    assert use(build).returncode == 0
    assert [(build / name).read_text() for name in (".lock", ".lock-tree")] == ["text\n"] * 2


def test_a_new_folder_is_marked(use: Use, tmp_path: Path, root: Path) -> None:
    build = tmp_path / "new" / "build"
    assert use(build).returncode == 0
    assert (build / ".ceasefire-build").read_text() == f"{root}\n"
    assert use(build).returncode == 0


def test_a_folder_of_something_else_is_refused(use: Use, tmp_path: Path) -> None:
    # Python would take it for what an ended run has left.
    other = tmp_path / "runs" / "trip-1-photos"
    other.mkdir(parents=True)
    done = use(tmp_path)
    assert done.returncode == 1
    assert "new or empty" in done.stderr
    assert done.stderr.count("\n") == 1
    assert other.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


def test_a_folder_that_strangers_can_write_to(use: Use, build: Path) -> None:
    build.chmod(0o777)
    done = use(build)
    assert done.returncode == 1
    assert "strangers" in done.stderr
    assert sorted(path.name for path in build.iterdir()) == [".ceasefire-build"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_a_stranger(use: Use, build: Path) -> None:
    os.chown(build, STRANGER, STRANGER)
    done = use(build)
    assert done.returncode == 1
    assert "stranger" in done.stderr
    assert sorted(path.name for path in build.iterdir()) == [".ceasefire-build"]
