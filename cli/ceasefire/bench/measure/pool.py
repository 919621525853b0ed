# SPDX-License-Identifier: GPL-2.0-only
"""A buffer pool that evicts all the time, by several ways.

pool-bench runs in guests, or ycsb-bench, whose engine pool is a B+ tree. With more emulated CPUs
than the host has, rates mean little; counts do.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ceasefire.bench.measure import machine, programs
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Folder
from ceasefire.errors import Failure
from ceasefire.output import progress
from ceasefire.vm import GuestSpec, run_guest
from ceasefire.vm.spec import parse_disk

KERNEL = "run"
# Of pages alone, by threads or by processes, and of a B+ tree: names of benchmarks in results.
POOL, PROCESSES, TREE = "pool", "pool-processes", "pool-tree"
LAZY, VECTOR, REMOVE, DONTNEED = "lazy", "vector", "remove", "dontneed"
WAYS: Mapping[str, tuple[str, ...]] = {
    POOL: (LAZY, VECTOR, REMOVE, DONTNEED),
    PROCESSES: (LAZY, VECTOR, REMOVE),
    TREE: (LAZY, VECTOR, DONTNEED),
}
# Of the table, in MiB: the least is twice the pool.
TABLE, TABLE_LEAST, TABLE_MOST = 1024, 128, 1 << 20
# Uses a second, and shootdowns received for each page that was evicted.
RATE, RECEIVED = "rate", "received"
# Each way fills its pool first.
_EACH = 1.5
_LIMIT = 3600.0
# PROGRAM ROUNDS SECONDS THREADS. A database of 100,000 records, of which 16 MiB are in memory.
_TREE = """set -e
pool() {
	"$program" --engine pool --dir /run/disk/0/pool --threads "$threads" --cache 16 "$@"
}
program=$1 rounds=$2 seconds=$3 threads=$4
pool --workload load --batch 100 >/dev/null
round=1
while [ $round -le "$rounds" ]; do
	ways="lazy vector dontneed"
	[ $((round % 2)) = 1 ] || ways="dontneed vector lazy"
	for way in $ways; do
		pool --workload c --distribution uniform --only-loaded --evict "$way" \
			--seconds "$seconds" --json
	done
	round=$((round + 1))
done
"""


def measure(
    folder: Folder,
    cpus: Sequence[int],
    rounds: int,
    seconds: int,
    what: str = POOL,
    *,
    one_clock: bool = False,
    table: int = TABLE,
) -> None:
    """Add the samples for each number of CPUs.

    what: POOL, PROCESSES or TREE. table: of the first two, in MiB.
    one_clock: emulated CPUs take turns, and time passes with their instructions; so none comes late
    to its ticks because the host is busy.
    """
    tree = what == TREE
    for count in cpus:
        if tree:
            command = ["sh", "-c", _TREE, "sh", str(programs.find("ycsb-bench"))]
            command += [str(rounds), str(seconds), str(count)]
        else:
            command = [str(programs.find("pool-bench"))]
            command += ["--rounds", str(rounds), "--seconds", str(seconds)]
            command += ["--table", str(table)]
            command += ["--processes"] if what == PROCESSES else []
        minutes = 1 + round(rounds * len(WAYS[what]) * seconds * _EACH / 60)
        progress(f"{KERNEL} kernel, {count} CPUs, about {minutes} minutes for two of them")
        disks = (parse_disk("brd-ext4:256M"),) if tree else ()
        accel = "tcg" if one_clock else "auto"
        spec = GuestSpec(
            kernel=KERNEL, cpus=count, timeout=_LIMIT, disks=disks, accel=accel, icount=one_clock
        )
        result = run_guest(spec, command, name="bench-pool", cwd=Path("/"))
        machine.judge(result.check(), result.stderr.decode(errors="replace"))
        folder.add(machine.guest_record("bench morsel-pool", spec))
        for sample in samples_in(result.stdout.decode(errors="replace").splitlines()):
            folder.add(sample)


def samples_in(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the samples among the lines of pool-bench, or of ycsb-bench."""
    rounds: dict[str, int] = {}
    for text in texts:
        try:
            line = json.loads(text)
            if line["type"] == "pool":
                what = PROCESSES if line["processes"] > 1 else POOL
                yield _sample(what, line["way"], line["uses"], line)
            elif line["type"] == "ycsb":
                way = line["evict"]
                rounds[way] = line["round"] = rounds.get(way, 0) + 1
                line["received"] = line["counters"]["nr_tlb_remote_flush_received"]
                yield _sample(TREE, way, line["ops"], line)
        except (*store.MALFORMED, ZeroDivisionError) as error:
            raise Failure(f"what the program printed is damaged: {error}") from None


def _sample(benchmark: str, way: str, uses: int, line: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "sample",
        "benchmark": benchmark,
        "mode": str(way),
        "round": int(line["round"]),
        "metrics": {
            RATE: uses * 1e9 / line["ns"],
            RECEIVED: line["received"] / line["evicted"],
        },
        "operations": int(line["evicted"]),
    }
