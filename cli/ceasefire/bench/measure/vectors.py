# SPDX-License-Identifier: GPL-2.0-only
"""Shootdowns of taking scattered pages from memory that many CPUs use.

vector-bench runs in guests. With more emulated CPUs than the host has, times mean nothing; counts
do.
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
VECTOR = "vector"
RECEIVED = "received"
# Processes, and mappings of each of them.
SHAPES = ((1, 1), (2, 1), (8, 1), (1, 4), (2, 4), (8, 4))
# A guest boots, and emulated CPUs wait for each other in each round.
_LIMIT = 3600.0


def measure(folder: Folder, cpus: Sequence[int], rounds: int) -> None:
    """Add the samples of vector-bench for each number of CPUs."""
    program = str(programs.find("vector-bench"))
    for count in cpus:
        progress(f"{KERNEL} kernel, {count} CPUs, about a minute for two of them")
        each = [
            f"{program} --processes {processes} --mappings {mappings} --rounds {rounds}"
            for processes, mappings in SHAPES
        ]
        spec = GuestSpec(kernel=KERNEL, cpus=count, timeout=_LIMIT)
        result = run_guest(
            spec, ["sh", "-c", " && ".join(each)], name="bench-vectors", cwd=Path("/")
        )
        machine.judge(result.check(), result.stderr.decode(errors="replace"))
        folder.add(machine.guest_record("bench morsel-shootdowns", spec))
        for sample in samples_in(result.stdout.decode(errors="replace").splitlines()):
            folder.add(sample)


def samples_in(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the samples among the lines of vector-bench: shootdowns received in one call of all."""
    for text in texts:
        try:
            line = json.loads(text)
            if line["type"] != "vector":
                continue
            yield {
                "type": "sample",
                "benchmark": f"{int(line['processes'])}x{int(line['mappings'])}",
                "mode": str(line["way"]),
                "round": 0,
                "metrics": {RECEIVED: line["received"] / line["rounds"]},
                "operations": int(line["rounds"]),
            }
        except (*store.MALFORMED, ZeroDivisionError) as error:
            raise Failure(f"what the program printed is damaged: {error}") from None
