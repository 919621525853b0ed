# SPDX-License-Identifier: GPL-2.0-only
"""Snapshots of a table while threads write to it, by several ways.

snapshot-bench runs in guests, and looks at each snapshot whole.
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
NONE, MORSEL, FORK = WAYS = ("none", "morsel", "fork")
# Writes a second; what one snapshot takes, and the longest time of 256 writes, in nanoseconds; page
# faults, and shootdowns received, for each snapshot.
RATE, TOOK, LONGEST, FAULTS, RECEIVED = METRICS = (
    "rate",
    "snapshot",
    "longest",
    "faults",
    "received",
)
# A table of 256 MiB, twice, and what the guest itself needs.
_MEMORY = "2G"
_LIMIT = 3600.0


def measure(folder: Folder, cpus: Sequence[int], rounds: int, seconds: int) -> None:
    """Add the samples for each number of CPUs."""
    for count in cpus:
        command = [str(programs.find("snapshot-bench"))]
        command += ["--rounds", str(rounds), "--seconds", str(seconds)]
        minutes = 1 + round(rounds * len(WAYS) * seconds / 60)
        progress(f"{KERNEL} kernel, {count} CPUs, about {minutes} minutes for two of them")
        spec = GuestSpec(kernel=KERNEL, cpus=count, memory=_MEMORY, timeout=_LIMIT)
        result = run_guest(spec, command, name="bench-snapshots", cwd=Path("/"))
        machine.judge(result.check(), result.stderr.decode(errors="replace"))
        folder.add(machine.guest_record("bench morsel-snapshots", spec))
        for sample in samples_in(result.stdout.decode(errors="replace").splitlines()):
            folder.add(sample)


def samples_in(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the samples among the lines of snapshot-bench."""
    for text in texts:
        try:
            line = json.loads(text)
            if line["type"] != "snapshots":
                continue
            # Where there are none it is for all of the time.
            each = line["snapshots"] or 1
            yield {
                "type": "sample",
                "benchmark": "snapshots",
                "mode": str(line["way"]),
                "round": int(line["round"]),
                "metrics": {
                    RATE: line["writes"] * 1e9 / line["ns"],
                    TOOK: float(line["snapshot_ns"]),
                    LONGEST: float(line["longest_ns"]),
                    FAULTS: line["faults"] / each,
                    RECEIVED: line["received"] / each,
                },
                "operations": int(line["snapshots"]),
            }
        except (*store.MALFORMED, ZeroDivisionError) as error:
            raise Failure(f"what the program printed is damaged: {error}") from None
