# SPDX-License-Identifier: GPL-2.0-only
"""For how long what a lazy process unmaps can be used, and how much memory waits meanwhile.

bound-bench runs in guests: CPUs that tick in one, and one whose last CPU is isolated. That one is
named to the kernel as nohz_full, too; where a kernel cannot do without its ticks, the debug kernel
has a switch that makes it ignore those of a CPU. A kind of CPU is a benchmark with one sample.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ceasefire.bench.measure import machine, programs
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Folder
from ceasefire.errors import Failure
from ceasefire.output import progress
from ceasefire.vm import GuestSpec, run_guest
from ceasefire.vm.guest import accelerator

MEMORY = "memory"
ISOLATED = "isolated"
KINDS = ("busy", "idle", ISOLATED, MEMORY)
MODE = "latr"
# Of the benchmarks, in front of the kind.
PREFIX = "bound-"
# A guest boots, and each munmap is over in a tenth of a second, or in several where the host is
# busy.
_BOOT_LIMIT = 300.0
_ROUND_LIMIT = 1.0
# Lines of the program by type, and which numbers of them are no metric.
_LINES = {"bound": "rounds", "waiting": "operations"}
_NO_METRICS = ("schema", "wrong")


@dataclass(frozen=True)
class Plan:
    """What to measure: kinds of KINDS, munmaps of each kind of CPU.

    kernel, isolated_kernel: of the guest with an isolated CPU, and of the other one.
    seconds, pages: length of memory, and pages of its munmaps.
    """

    kinds: Sequence[str]
    rounds: int
    cpus: int
    seconds: float
    pages: int
    kernel: str = "run"
    isolated_kernel: str = "debug"

    def guests(self) -> Iterator[tuple[GuestSpec, list[str]]]:
        """Yield what boots, and what is run in it."""
        ticking = [kind for kind in self.kinds if kind != ISOLATED]
        if ticking:
            yield self._guest(self.kernel, len(ticking)), self._command(ticking)
        if ISOLATED in self.kinds:
            last = self.cpus - 1
            append = (f"isolcpus=domain,managed_irq,{last}", f"nohz_full={last}")
            yield self._guest(self.isolated_kernel, 1, append), self._command([ISOLATED])

    def _guest(self, kernel: str, kinds: int, append: tuple[str, ...] = ()) -> GuestSpec:
        limit = _BOOT_LIMIT + kinds * self.rounds * _ROUND_LIMIT + 2 * self.seconds
        return GuestSpec(kernel=kernel, cpus=self.cpus, append=append, timeout=limit)

    def _command(self, kinds: Sequence[str]) -> list[str]:
        words = [str(programs.find("bound-bench")), "--json", "--kind", ",".join(kinds)]
        words += ["--rounds", str(self.rounds), "--seconds", f"{self.seconds:g}"]
        return [*words, "--pages", str(self.pages)]


def measure(plan: Plan, folder: Folder) -> None:
    """Boot what the plan needs; add all samples."""
    folder.add({"type": "suite", "name": "bound", "rounds": 1, "seconds": plan.seconds})
    for spec, command in plan.guests():
        kinds = command[command.index("--kind") + 1]
        progress(f"{spec.kernel} kernel, {spec.cpus} CPUs: {kinds}; {plan.rounds} munmaps each")
        accel = accelerator(spec)
        where = "in a guest with " + ("emulated CPUs (TCG)" if accel == "tcg" else "KVM")
        folder.add(
            machine.host_record(
                "bench bound",
                where=where,
                accel=accel,
                kernel_kind=spec.kernel,
                cpus=spec.cpus,
                comparable=False,
            )
        )
        result = run_guest(spec, command, name="bench-bound", cwd=Path("/"))
        for record in samples_in(result.stdout.decode("utf-8", errors="replace").split("\n")):
            folder.add(record)
        machine.judge(result.check(), result.stderr.decode(errors="replace"))
    found = {sample.benchmark for sample in store.read(folder.path).samples}
    if missing := [kind for kind in plan.kinds if PREFIX + kind not in found]:
        raise Failure(f"no samples came of {', '.join(missing)}")


def samples_in(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the samples among what a guest has printed; what is no sample is not ours."""
    for line in lines:
        try:
            found = json.loads(line)
            operations = int(found[_LINES[found["type"]]])
            record = {
                "type": "sample",
                "benchmark": PREFIX + str(found.get("kind", MEMORY)),
                "mode": MODE,
                "round": 0,
                "metrics": {
                    str(name): value
                    for name, value in found.items()
                    if _is_number(value) and name not in _NO_METRICS
                },
                "operations": operations,
                "wrong": int(found.get("wrong", 0)),
                "output": str(found.get("without_tick", "")),
                "counters": {str(k): int(v) for k, v in found["counters"].items()},
                "latency_ns": {str(k): int(v) for k, v in found.get("latency_ns", {}).items()},
                "histogram": [[int(ns), int(n)] for ns, n in found.get("histogram", [])],
            }
        except (*store.MALFORMED, RecursionError):
            continue
        yield record


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
