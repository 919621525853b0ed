# SPDX-License-Identifier: GPL-2.0-only
"""PostgreSQL in a guest, without and with one set of page tables for its shared buffers."""

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from ceasefire.bench.apps import postgres
from ceasefire.bench.measure import data, machine
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Folder
from ceasefire.errors import Failure
from ceasefire.output import progress
from ceasefire.paths import build_dir, package_root
from ceasefire.vm import GuestSpec, run_guest

KERNEL = "run"
CPUS = 2
TABLES, FAULTS, RATE = "tables", "faults", "rate"
# A GiB of the database and the buffers, and what the guest needs.
_MEMORY = "3G"
_LIMIT = 7200.0


def measure(folder: Folder, rounds: int, seconds: int) -> None:
    """Add the samples of apps/postgres.py."""
    made = f"made:{postgres.command()}"
    disk = data.disk(made)
    spec = GuestSpec(
        kernel=KERNEL,
        cpus=CPUS,
        memory=_MEMORY,
        timeout=_LIMIT,
        disks=(disk,),
        environment=(("CEASEFIRE_BUILD", str(build_dir())),),
    )
    progress(f"{KERNEL} kernel, {CPUS} CPUs, about {rounds * (seconds + 30) // 20} minutes")
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); "
        "from ceasefire.bench.apps.postgres import main; main()"
    )
    words = [sys.executable, "-I", "-B", "-c", code, str(package_root()), disk.mount]
    words += ["--rounds", str(rounds), "--seconds", str(seconds)]
    # Its socket lies there, whose path may not be long.
    shell = ["sh", "-c", 'cd /run && exec "$@"', "sh", *words]
    result = run_guest(spec, shell, name="bench-postgres")
    machine.judge(result.check(), result.stderr.decode(errors="replace"))
    folder.add(machine.guest_record("bench postgres", spec))
    for sample in samples_in(result.stdout.decode(errors="replace").splitlines()):
        folder.add(sample)


def samples_in(texts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the samples among the lines of apps/postgres.py."""
    for text in texts:
        try:
            line = json.loads(text)
            if line["type"] != "postgres":
                continue
            yield {
                "type": "sample",
                "benchmark": "postgres",
                "mode": str(line["way"]),
                "round": int(line["round"]),
                "metrics": {
                    # Those of the object are all that its processes have in common.
                    TABLES: int(line["tables"]) + int(line["objects"]),
                    FAULTS: int(line["faults"]),
                    RATE: float(line["rate"]),
                },
                "operations": int(line["backends"]),
            }
        except store.MALFORMED as error:
            raise Failure(f"what the program printed is damaged: {error}") from None
