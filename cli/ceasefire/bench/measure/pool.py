# SPDX-License-Identifier: GPL-2.0-only
"""A buffer pool that evicts all the time, by several ways.

pool-bench runs in guests. With more emulated CPUs than the host has, rates mean little; counts do.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ceasefire.bench.measure import machine, programs
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Folder
from ceasefire.errors import Failure
from ceasefire.output import progress
from ceasefire.vm import GuestSpec, run_guest

KERNEL = "run"
LAZY, VECTOR, DONTNEED = WAYS = ("lazy", "vector", "dontneed")
# Uses a second, and shootdowns received for each page that was evicted.
RATE, RECEIVED = "rate", "received"
# Each way fills its pool first.
_EACH = 1.5
_LIMIT = 3600.0


def measure(folder: Folder, cpus: Sequence[int], rounds: int, seconds: int) -> None:
    """Add the samples of pool-bench for each number of CPUs."""
    command = [str(programs.find("pool-bench"))]
    command += ["--rounds", str(rounds), "--seconds", str(seconds)]
    for count in cpus:
        minutes = 1 + round(rounds * len(WAYS) * seconds * _EACH / 60)
        progress(f"{KERNEL} kernel, {count} CPUs, about {minutes} minutes for two of them")
        spec = GuestSpec(kernel=KERNEL, cpus=count, timeout=_LIMIT)
        result = run_guest(spec, command, name="bench-pool", cwd=Path("/"))
        machine.judge(result.check(), result.stderr.decode(errors="replace"))
        folder.add(machine.guest_record("bench morsel-pool", spec))
        for sample in samples_in(result.stdout.decode(errors="replace").splitlines()):
            folder.add(sample)


def samples_in(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the samples among the lines of pool-bench."""
    for text in texts:
        try:
            line = json.loads(text)
            if line["type"] != "pool":
                continue
            yield {
                "type": "sample",
                "benchmark": "pool",
                "mode": str(line["way"]),
                "round": int(line["round"]),
                "metrics": {
                    RATE: line["uses"] * 1e9 / line["ns"],
                    RECEIVED: line["received"] / line["evicted"],
                },
                "operations": int(line["evicted"]),
            }
        except (*store.MALFORMED, ZeroDivisionError) as error:
            raise Failure(f"what the program printed is damaged: {error}") from None
