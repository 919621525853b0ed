# SPDX-License-Identifier: GPL-2.0-only
"""Applications of the suites: what of them needs no guest."""

import argparse
import bz2
import shlex
import subprocess
from pathlib import Path

import pytest

from ceasefire import counters
from ceasefire.bench import latency
from ceasefire.bench.apps import balancing, film, limit, pbzip2, rocksdb
from ceasefire.bench.measure import programs
from ceasefire.errors import Failure
from ceasefire.files import write_whole


def test_sizes_have_units() -> None:
    assert limit.memory("4096") == 4096
    assert limit.memory("24M") == 24 << 20
    for text in ("", "M", "x", "2.5M", "-1"):
        with pytest.raises(Failure, match="is no size"):
            limit.memory(text)


def test_code_is_read_with_its_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def note(path: Path) -> bytes:
        read.append(path.name)
        return b""

    monkeypatch.setattr(Path, "read_bytes", note)
    limit.read_code(["env", "NAME=value", "sleep", "1"])
    assert {"env", "sleep"} <= set(read)
    assert any(name.startswith("libc.so") for name in read)
    read.clear()
    limit.read_code(["no-such-program"])
    assert not read


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
    command = [*shlex.split(programs.python_words()), "-m", limit.__name__, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert not done.stdout and "limit" in done.stderr and "No module" not in done.stderr


@pytest.fixture
def balanced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stand in for a machine with two nodes that balances once a second."""
    names = ("scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms", "switch")
    files = [tmp_path / name for name in names]
    for path in files:
        path.write_text("1000\n")
    monkeypatch.setattr(balancing, "_PERIODS", tmp_path)
    monkeypatch.setattr(balancing, "_SWITCH", files[-1])
    monkeypatch.setattr(balancing, "nodes", lambda: 2)
    return files


def looked_at(monkeypatch: pytest.MonkeyPatch, *updates: int) -> None:
    readings = iter(updates)
    monkeypatch.setattr(counters, "of_samples", lambda: {"numa_pte_updates": next(readings)})


def options_of(*command: str, period: int = 20) -> argparse.Namespace:
    return argparse.Namespace(command=list(command), period=period)


def test_balancing_is_quick_for_the_time_of_a_command(
    balanced: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at(monkeypatch, 3, 4)
    copied = tmp_path / "copied"
    line = f"cat {' '.join(map(str, balanced))} >{copied}; exit 7"
    assert balancing.main(options_of("sh", "-c", line)) == 7
    assert copied.read_text().split() == ["20", "20", "80", "1"]
    assert [path.read_text() for path in balanced] == ["1000\n"] * 4


def test_balancing_that_does_nothing_is_a_failure(
    balanced: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at(monkeypatch, 3, 3)
    with pytest.raises(Failure, match="has not looked at a page"):
        balancing.main(options_of("true"))
    assert [path.read_text() for path in balanced] == ["1000\n"] * 4
    with pytest.raises(Failure, match="which command"):
        balancing.main(options_of())
    with pytest.raises(Failure, match="at least 1 ms"):
        balancing.main(options_of("true", period=0))
    monkeypatch.setattr(balancing, "nodes", lambda: 1)
    with pytest.raises(Failure, match="one NUMA node"):
        balancing.main(options_of("true"))


def test_a_film_is_the_same_each_time_and_moves(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for path in (first, second):
        film.make(path, 96, 64, 9)
    data = first.read_bytes()
    assert data == second.read_bytes()
    head, *frames = data.split(b"FRAME\n")
    assert head.startswith(b"YUV4MPEG2 W96 H64 ") and head.endswith(b"\n")
    assert {len(frame) for frame in frames} == {96 * 64 * 3 // 2}
    assert len(set(frames)) == len(frames) == 9
    with pytest.raises(Failure, match="even and at least"):
        film.make(first, 97, 64, 1)


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


DB_BENCH = """\
readrandom   :  5.067 micros/op 394356 ops/sec 1.0 seconds 60 operations; 156 MB/s (29 of 30 found)

Microseconds per read:
Count: 60 Average: 5.0698  StdDev: 107.32
------------------------------------------------------
[       0,       1 ]       20  33.333%  33.333% #####
(       1,       2 ]       30  50.000%  83.333% ####
(    6600,    9900 ]       10  16.667% 100.000%
"""


def test_rocksdb_counts_all_threads() -> None:
    assert rocksdb.counts(DB_BENCH) == (60, 1)
    assert rocksdb.histogram(DB_BENCH) == [(500.0, 20), (1500.0, 30), (8250000.0, 10)]
    with pytest.raises(Failure, match="printed no count"):
        rocksdb.counts("nothing")


def test_latencies_are_those_of_the_c_programs() -> None:
    found = latency.fields([(10, 98), (1000, 1), (5000, 1)])
    assert found["histogram"] == [[8, 98], [960, 1], [4608, 1]]
    assert found["latency_ns"] == {"p50": 8, "p99": 960, "p99.9": 4608, "max": 5000}
    assert latency.fields([]) == {}


def test_the_group_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"none {tmp_path}/x tmpfs rw 0 0\nnone {tmp_path} cgroup2 rw 0 0\n")
    monkeypatch.setattr(limit, "_MOUNTS", mounts)
    limit.remove_group()
    group = tmp_path / "ceasefire-bench"
    group.mkdir()
    limit.remove_group()
    assert not group.exists()


def test_a_page_can_go_to_a_device(tmp_path: Path) -> None:
    write_whole(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()
    write_whole(tmp_path / "page", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
