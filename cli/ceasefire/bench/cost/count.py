# SPDX-License-Identifier: GPL-2.0-only
"""Guest instructions of short operations: what cycle-bench counts, as samples of results.

One-CPU guests are booted under QEMU's -icount, where virtual time advances by one nanosecond an
instruction. Kernels take turns, so that what drifts on the host hits all of them; virtual time
does not depend on the host anyway. A case is a benchmark, a kind of mapping is a mode, and each
repeat of each boot is a round.
"""

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ceasefire.bench.measure import machine, programs
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Folder, Sample
from ceasefire.errors import Failure
from ceasefire.output import progress
from ceasefire.vm import GuestSpec, run_guest
from ceasefire.vm.spec import DiskSpec

METRIC = "instructions"
GUEST_LIMIT = 1800.0
# An idle guest waits in real time: with sleep=off its clock leaps while the host serves a file,
# and the limits of its own start-up pass before the work is done.
ICOUNT = "shift=0,sleep=on"


@dataclass(frozen=True)
class Cost:
    """Instructions of one operation over all repeats of all boots."""

    lowest: float
    median: float

    def percent_of(self, base: "Cost") -> float:
        """Return the median as percent of another one."""
        return 100.0 * self.median / base.median


@dataclass(frozen=True)
class Plan:
    """What to count. words: options of cycle-bench. before: a shell command that is run in each
    guest first. ms: virtual milliseconds of a repeat.
    """

    name: str
    kernels: Sequence[str]
    boots: int
    repeats: int
    ms: int
    words: Sequence[str]
    before: str = "true"
    disks: tuple[DiskSpec, ...] = ()

    def command(self) -> list[str]:
        """Return what a guest runs."""
        words = [str(programs.find("cycle-bench")), "--json", "--repeats", str(self.repeats)]
        words += ["--ms", str(self.ms), *self.words]
        return ["sh", "-c", f"{self.before} && exec {shlex.join(words)}"]

    def order(self) -> list[str]:
        """Return the kernels of all boots, every other time in the other order."""
        each = list(self.kernels)
        return [k for boot in range(self.boots) for k in (each if boot % 2 == 0 else each[::-1])]


def measure(plan: Plan, folder: Folder) -> None:
    """Boot every kernel as often as asked, in turn; add all samples."""
    command = plan.command()
    suite = {"name": plan.name, "rounds": plan.repeats, "seconds": plan.ms / 1e3}
    folder.add({"type": "suite", **suite})
    order = plan.order()
    for number, kernel in enumerate(order):
        progress(f"{kernel} kernel under -icount, boot {number + 1} of {len(order)}, a minute each")
        folder.add(
            machine.host_record(
                f"bench {plan.name}",
                where="in a guest with one emulated CPU, -icount shift=0",
                accel="tcg",
                kernel_kind=kernel,
                cpus=1,
                comparable=False,
            )
        )
        spec = GuestSpec(
            kernel=kernel,
            cpus=1,
            icount=True,
            accel="tcg",
            timeout=GUEST_LIMIT,
            qemu_args=("-icount", ICOUNT),
            disks=plan.disks,
        )
        result = run_guest(spec, command, name=f"bench-{plan.name}", cwd=Path("/"))
        output = result.stdout.decode("utf-8", errors="replace")
        for record in samples_in(output.split("\n"), number * plan.repeats):
            folder.add(record)
        machine.judge(result.check(), result.stderr.decode(errors="replace"))
    missing = set(plan.kernels) - {s.kernel_kind for s in store.read(folder.path).samples}
    if missing:
        raise Failure(f"no samples came from the {', '.join(sorted(missing))} kernel")


def samples_in(lines: Iterable[str], first_round: int) -> Iterator[dict[str, Any]]:
    """Yield the samples among what a guest has printed; what is no sample is not ours."""
    for line in lines:
        try:
            found = json.loads(line)
            if found["type"] != "cycle":
                continue
            record = {
                "type": "sample",
                "benchmark": str(found["case"]),
                "mode": str(found["variant"]),
                "round": first_round + int(found["repeat"]),
                "metrics": {METRIC: float(found["ns_per_op"])},
                "operations": int(found["ops"]),
                "counters": {str(k): int(v) for k, v in found["counters"].items()},
            }
        except (*store.MALFORMED, RecursionError):
            continue
        yield record


def costs_of(samples: Iterable[Sample]) -> dict[tuple[str, str, str], Cost]:
    """Return the cost of each (case, kernel, mapping), in the order of the samples."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for sample in samples:
        key = (sample.benchmark, sample.kernel_kind, sample.mode)
        groups.setdefault(key, []).append(sample.metrics[METRIC])
    return {key: Cost(min(values), median(values)) for key, values in groups.items()}
