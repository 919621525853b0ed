# SPDX-License-Identifier: GPL-2.0-only
"""From a suite to boots, and from a boot to the order of its samples.

All benchmarks that want the same guest share a boot. In a boot the benchmarks come one after the
other, each with all its rounds, and within a round the modes alternate, beginning with another
one each time: what drifts, drifts for all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from ceasefire import modes
from ceasefire.bench.catalog.spec import BASELINE, Benchmark, Suite, fill
from ceasefire.bench.measure.agent import Task
from ceasefire.bench.measure.programs import python_words
from ceasefire.bench.results.store import Key

# Start, run-in and end of a sample, on top of its window; boot of a guest.
_OVERHEAD = 1.0
_BOOT = 5.0
# How long a server may take to start and to end, beside that.
_SERVER = 30.0
PATIENCE = 10.0
# Rounds in a boot when boots of two kernels alternate.
_ROUNDS_A_BOOT = 2


@dataclass(frozen=True)
class Guest:
    """What a boot needs. Benchmarks with equal ones share it.

    kernel: another kernel than the one that is measured, as a mode names it, or "". numa: nodes.
    """

    cpus: int
    memory: str
    disks: tuple[str, ...]
    append: str
    kernel: str = ""
    numa: int = 1


@dataclass(frozen=True)
class Boot:
    """One guest and the samples that are taken in it."""

    guest: Guest
    benchmarks: tuple[Benchmark, ...]
    samples: tuple[tuple[Benchmark, str, int], ...]

    def seconds(self, window: float) -> float:
        """Return about how long it takes."""
        return _BOOT + len(self.samples) * (window + _OVERHEAD)


def boots(
    suite: Suite,
    done: AbstractSet[Key] = frozenset(),
    cpus: Sequence[int] = (),
    chosen: Sequence[str] = (),
) -> list[Boot]:
    """Return what is left to do.

    done: samples that are there already; cpus: only these sizes; chosen: only these modes. Two
    kernels cannot share a boot, so that their boots alternate, with a few rounds in each.
    """
    grouped: dict[Guest, list[Benchmark]] = {}
    for bench in suite.benchmarks:
        for count in bench.cpus:
            if not cpus or count in cpus:
                guest = Guest(count, bench.memory, bench.disks, bench.append, numa=bench.numa)
                grouped.setdefault(guest, []).append(bench)
    kernels = dict.fromkeys(
        bench.runs_as(mode).kernel
        for benches in grouped.values()
        for bench in benches
        for mode in bench.modes(chosen)
    )
    found = []
    for guest, benches in grouped.items():
        for rounds in _blocks(suite.rounds, _ROUNDS_A_BOOT if len(kernels) > 1 else suite.rounds):
            for kernel in kernels:
                samples = tuple(
                    (bench, mode, number)
                    for bench in benches
                    for mode, number in order(_of_kernel(bench, chosen, kernel), rounds)
                )
                own = Boot(replace(guest, kernel=kernel), tuple(benches), samples)
                found.append(again(own, done))
    return [boot for boot in found if boot.samples]


def _of_kernel(bench: Benchmark, chosen: Sequence[str], kernel: str) -> list[str]:
    return [mode for mode in bench.modes(chosen) if bench.runs_as(mode).kernel == kernel]


def again(boot: Boot, done: AbstractSet[Key]) -> Boot:
    """Return what a boot that was lost still has to do."""
    left = tuple(s for s in boot.samples if _key(s, boot.guest) not in done)
    names = {bench.name for bench, _, _ in left}
    return Boot(boot.guest, tuple(b for b in boot.benchmarks if b.name in names), left)


def _blocks(rounds: int, size: int) -> list[range]:
    return [range(n, min(n + size, rounds)) for n in range(0, rounds, size)]


def _key(sample: tuple[Benchmark, str, int], guest: Guest) -> Key:
    bench, mode, number = sample
    return (bench.name, guest.cpus, mode, number)


def order(names: Sequence[str], rounds: Iterable[int]) -> list[tuple[str, int]]:
    """Return modes and rounds in the order in which they are measured."""
    return [(mode, number) for number in rounds if names for mode in modes.order(names, number)]


def tasks(boot: Boot, window: float, values: Mapping[str, str]) -> list[Task]:
    """Return what the agent does. values: of the parameters that are the same in a boot."""
    return [
        Task(
            benchmark=bench.name,
            mode=mode,
            round=number,
            command=bench.shell_command(mode, values),
            runs_as="+".join(m.name for m in bench.runs_as(mode).mechanisms) or BASELINE,
            metrics={metric.name: metric.path for metric in bench.metrics},
            operations=bench.operations,
            timeout=PATIENCE * (window + _OVERHEAD + _SERVER),
        )
        for bench, mode, number in boot.samples
    ]


def prepares(boot: Boot, values: Mapping[str, str]) -> list[str]:
    """Return the commands before all samples, each once."""
    texts = [
        fill(bench.prepare, {**(bench.parameters or {}), **values})
        for bench in boot.benchmarks
        if bench.prepare
    ]
    return list(dict.fromkeys(texts))


def values_of(guest: Guest, window: float, disk: str, work: str) -> dict[str, str]:
    """Return the built-in parameters of a boot. disk, work: as the guest sees them."""
    return {
        "cpus": str(guest.cpus),
        "seconds": f"{window:g}",
        "disk": disk,
        "work": work,
        "python": python_words(),
    }
