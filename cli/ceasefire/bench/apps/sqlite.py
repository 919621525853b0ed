# SPDX-License-Identifier: GPL-2.0-only
"""SQLite through Python's module: threads that open a database, sum up a range, and close it.

With PRAGMA mmap_size each connection maps the file, and unmaps it when it closes. The sum is
known. An operation is a query.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from ceasefire.bench import latency
from ceasefire.bench.apps import common
from ceasefire.errors import Failure

_PROGRAM = r"""
import json, sqlite3, sys, threading, time

path, threads, seconds, size = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
ROWS, SPAN = 20000, 500
stop = time.monotonic() + seconds
counts, wrong = [0] * threads, [0] * threads
took = [[] for _ in range(threads)]

def work(me):
    at = me * 37
    while time.monotonic() < stop:
        begin = time.perf_counter_ns()
        base = sqlite3.connect(path)
        base.execute(f"PRAGMA mmap_size={size}")
        base.execute("PRAGMA cache_size=8")
        at = (at * 5 + 3) % (ROWS - SPAN)
        query = "SELECT sum(value) FROM t WHERE id >= ? AND id < ?"
        (found,) = base.execute(query, (at, at + SPAN)).fetchone()
        base.close()
        took[me].append(time.perf_counter_ns() - begin)
        counts[me] += 1
        wrong[me] += found != sum(n * 7 % 1009 for n in range(at, at + SPAN))

all = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
[t.start() for t in all]
[t.join() for t in all]
print(json.dumps([sum(counts), sum(wrong), sum(took, [])]))
"""
_ROWS = 20000
_MAPPED = 64 << 20


def main(args: argparse.Namespace) -> None:
    """Make the database if it is not there, query it."""
    path = Path("base.sqlite").absolute()
    if not path.is_file():
        _make(path)
    size = _MAPPED if args.way == "mmap" else 0
    command = [sys.executable, "-I", "-c", _PROGRAM, str(path)]
    numbers = [str(args.cpus), str(args.seconds), str(size)]
    with common.window() as found:
        done = subprocess.run(
            common.prefixed(args, [*command, *numbers]), capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise Failure(common_error(done.stderr))
    operations, wrong, took = json.loads(done.stdout)
    common.result(operations, found, wrong, **latency.fields((ns, 1) for ns in took))


def common_error(text: str) -> str:
    """Return the last line of what a program complained of."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "the program failed and printed nothing"


def _make(path: Path) -> None:
    import sqlite3  # noqa: PLC0415 - only for the first sample

    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    base = sqlite3.connect(part)
    base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, value INTEGER, padding TEXT)")
    rows = ((n, n * 7 % 1009, "x" * 400) for n in range(_ROWS))
    base.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    base.commit()
    base.close()
    part.rename(path)


def _options() -> argparse.ArgumentParser:
    options = common.parser(__doc__)
    options.add_argument("--way", choices=("mmap", "read"), default="mmap")
    return options


if __name__ == "__main__":
    common.run_main(main, _options())
