# SPDX-License-Identifier: GPL-2.0-only
"""What a mechanism costs the programs beside one that uses it, and cycles that skip.

beside-bench runs in a guest with three CPUs. On one CPU a program faults, allocates or talks over
TCP; on the other two a process maps and unmaps files, without MAP_FPR first and with it then.
cycle-bench runs with another CPU that runs the process, too, so that there is somebody to skip.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ceasefire.bench.cost import marked
from ceasefire.bench.cost.count import METRIC
from ceasefire.bench.measure import machine, programs
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Folder
from ceasefire.errors import Failure
from ceasefire.output import progress
from ceasefire.vm.command import DISK_DIR

# Cycles that are counted with another CPU, too.
SKIP_CASES = (
    *("mmap-read-munmap-1", "mmap-read-munmap-4", "mmap-read-munmap-16", "mmap-munmap"),
    *("mmap-read-munmap-512", "mmap-write-munmap-1", "mmap-write-munmap-16"),
)
# What their mode is called, after the mechanism.
SKIPPED = "{}, skip"
_CPUS = 3
_SKIP_CPUS = 2
# Limits flush now and then.
_FLUSHED = 0.05


def measure(folder: Folder, boots: int, repeats: int) -> None:
    """Add the samples of beside-bench."""
    words = [str(programs.find("beside-bench")), "--repeats", str(repeats)]
    for boot in range(boots):
        progress(f"boot {boot + 1} of {boots} under -icount, about 3 minutes")
        lines = marked.count([*words, "--dir", f"{DISK_DIR}/0"], "beside", _CPUS)
        _add(folder, "bench beside-cost", _CPUS, samples_of(lines, boot * repeats))


def measure_skips(folder: Folder, repeats: int) -> None:
    """Add samples of cycles that skip.

    With one CPU there is nobody to interrupt, and munmap() flushes that CPU instead.
    """
    progress("run kernel under -icount, two CPUs, about a minute")
    words = [str(programs.find("cycle-bench")), "--json", "--peer", "--variant", "fpr,latr"]
    words += ["--ms", "20", "--repeats", str(repeats + 1), "--dir", f"{DISK_DIR}/0"]
    for case in SKIP_CASES:
        words += ["--case", case]
    lines = marked.count(words, "cycle", _SKIP_CPUS)
    _add(folder, "bench instructions", _SKIP_CPUS, skips_of(lines))


def _add(folder: Folder, command: str, cpus: int, samples: Iterable[Mapping[str, Any]]) -> None:
    folder.add(
        machine.host_record(
            command,
            where=f"in a guest with {cpus} emulated CPUs, -icount shift=0",
            accel="tcg",
            kernel_kind=marked.KERNEL,
            cpus=cpus,
            comparable=False,
        )
    )
    for sample in samples:
        folder.add(sample)


def samples_of(lines: Iterable[Mapping[str, Any]], first_round: int) -> Iterator[dict[str, Any]]:
    """Yield the samples among lines of beside-bench that have their counts."""
    for line in lines:
        yield _sample(line, first_round)


def skips_of(lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the samples among lines of cycle-bench that have their counts."""
    for line in lines:
        found = _sample({**line, "mode": SKIPPED.format(line["variant"])}, 0)
        # The first ones ask for the memory of tags.
        if found["round"] == 0:
            continue
        if line["counters"]["nr_tlb_remote_flush"] > line["ops"] * _FLUSHED:
            raise Failure(f"{line['case']}: flushes were sent, not skipped")
        yield found


def _sample(line: Mapping[str, Any], first_round: int) -> dict[str, Any]:
    try:
        return {
            "type": "sample",
            "benchmark": str(line["case"]),
            "mode": str(line["mode"]),
            "round": first_round + int(line["repeat"]),
            "metrics": {METRIC: line["instructions"] / line["ops"]},
            "operations": int(line["ops"]),
        }
    except (*store.MALFORMED, ZeroDivisionError) as error:
        raise Failure(f"what the program printed is damaged: {error}") from None
