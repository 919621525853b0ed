# SPDX-License-Identifier: GPL-2.0-only
"""RocksDB's db_bench: random reads from a database of many small tables.

With --mmap_read=1 it maps each table, and unmaps it when it has too many open. Each read has to
find its key, and checksums are verified. An operation is a read; db_bench says of one thread only
how many keys it has found.
"""

import argparse
import re
import shutil
import subprocess
from pathlib import Path

from ceasefire.bench import latency
from ceasefire.bench.apps import common
from ceasefire.errors import Failure

_KEYS = 40000
_MADE = "complete"


def main(args: argparse.Namespace) -> None:
    """Make the database if it is not there, read from it."""
    folder = Path("rocksdb").absolute()
    if not (folder / _MADE).is_file():
        shutil.rmtree(folder, ignore_errors=True)
        _bench([], folder, "fillseq,compact", "--use_existing_db=0")
        (folder / _MADE).touch()
    mapped = args.way == "mmap"
    with common.window() as found:
        text = _bench(
            common.prefixed(args, []),
            folder,
            "readrandom",
            "--use_existing_db=1",
            "--readonly=1",
            f"--mmap_read={int(mapped)}",
            f"--threads={args.cpus}",
            f"--duration={args.seconds:.0f}",
            "--verify_checksum=1",
            "--histogram=1",
            # Fewer than there are tables: they come and go.
            "--open_files=16",
            "--cache_size=8192",
        )
    operations, lost = counts(text)
    common.result(operations, found, lost, **latency.fields(histogram(text)))


def counts(text: str) -> tuple[int, int]:
    """Return the reads of all threads, and those that one of them, which tells, has not found."""
    line = re.search(r" (\d+) operations;.* \((\d+) of (\d+) found\)", text)
    if line is None:
        raise Failure(f"db_bench printed no count: {text.strip()[-200:]}")
    return int(line[1]), int(line[3]) - int(line[2])


def histogram(text: str) -> list[tuple[float, int]]:
    """Return (nanoseconds, operations) of db_bench's histogram, whose buckets are microseconds.

    What is in a bucket is counted for its middle.
    """
    found = re.findall(r"^[\[(]\s*(\d+),\s*(\d+)\s*[\])]\s+(\d+)\s", text, re.MULTILINE)
    return [((int(low) + int(high)) / 2 * 1000, int(count)) for low, high, count in found]


def _bench(words: list[str], folder: Path, benchmarks: str, *options: str) -> str:
    done = subprocess.run(
        [
            *words,
            "db_bench",
            f"--db={folder}",
            f"--benchmarks={benchmarks}",
            f"--num={_KEYS}",
            "--value_size=400",
            "--compression_type=none",
            "--target_file_size_base=262144",
            "--write_buffer_size=262144",
            "--disable_auto_compactions=0",
            *options,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise Failure(f"db_bench failed with status {done.returncode}: {lines[-1]}")
    return done.stdout


def _options() -> argparse.ArgumentParser:
    options = common.parser(__doc__)
    options.add_argument("--way", choices=("mmap", "pread"), default="mmap")
    return options


if __name__ == "__main__":
    common.run_main(main, _options())
