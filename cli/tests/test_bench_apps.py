# SPDX-License-Identifier: GPL-2.0-only
"""Applications of the suites: what of them needs no guest."""

import bz2
import shlex
import subprocess
from pathlib import Path

import pytest

from ceasefire.bench.apps import limit, pbzip2
from ceasefire.bench.suite import plan
from ceasefire.errors import Failure


def test_sizes_have_units() -> None:
    assert limit.memory("4096") == 4096
    assert limit.memory("24M") == 24 << 20
    for text in ("", "M", "x", "2.5M", "-1"):
        with pytest.raises(Failure, match="is no size"):
            limit.memory(text)


def test_a_folder_takes_what_its_files_take(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no files"):
        limit.size_of(tmp_path)
    (tmp_path / "one").write_bytes(b"x" * 8192)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "more").write_bytes(b"x" * 8192)
    # A hole takes nothing: LMDB's file is as large as its map.
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 30)
    assert 16384 <= limit.size_of(tmp_path) < 1 << 20


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--memory", "1M", "--", "true"], 1),
        (["--memory", "24M"], 1),
        (["--", "true"], 2),
        (["--memory", "24M", "--share-of", "/", "--", "true"], 2),
    ],
)
def test_wrong_use_of_limit_runs_nothing(words: list[str], status: int) -> None:
    command = [*shlex.split(plan.python_words()), "-m", limit.__name__, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert not done.stdout and "limit" in done.stderr and "No module" not in done.stderr


def test_input_is_the_same_each_time_and_comes_back(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for path in (first, second):
        pbzip2.make_input(path, 1 << 20)
    data = first.read_bytes()
    assert len(data) == 1 << 20 and data == second.read_bytes()
    packed = tmp_path / "packed"
    packed.write_bytes(bz2.compress(data))
    assert pbzip2.unpacked(packed) == pbzip2.digest_of(data)
    packed.write_bytes(bz2.compress(data[:-1] + b"!"))
    assert pbzip2.unpacked(packed) != pbzip2.digest_of(data)
    packed.write_bytes(b"BZh9 and then nothing of the kind")
    assert "status" in pbzip2.unpacked(packed)
