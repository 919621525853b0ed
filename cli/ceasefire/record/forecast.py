# SPDX-License-Identifier: GPL-2.0-only
"""From a recording to what FPR would remove, and to what the user can do.

Of munmap() each shootdown was judged by its mappings when it was recorded; of reclaim the share
is that of the mapped bytes which could recycle, an estimate. All other causes flush with FPR, too.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ceasefire import modes
from ceasefire.launch import activation, prctl
from ceasefire.record import causes
from ceasefire.record.model import Recording, Run
from ceasefire.text import quoted

# Fewer than this share is not worth a kernel.
_WORTH = 0.05
# A program that gets FPR from the preload library.
_PRELOADED = activation.Activation("")
# A run in which CPUs received fewer shootdowns says nothing: its threads did not run together.
_FEWEST = 10
# A cause that FPR does not help with is named from this share on.
_LARGE = 0.1

# What else there is to do about a cause; the detail of a cause is not looked at.
_HINTS = {
    "madvise": "an allocator gives memory back: let it keep more (jemalloc: dirty_decay_ms; "
    "glibc: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD; Go: GOGC)",
    "process_madvise": "memory is given back from outside: do it less often, in larger pieces",
    "brk": "malloc gives memory back and takes it again: set M_TRIM_THRESHOLD higher",
    "mprotect": "rights change while threads run: change larger ranges at once",
    "numa": "pages move between nodes: bind the program, or kernel.numa_balancing=0",
    "migration": "pages are moved: see vm.compaction_proactiveness, and who calls move_pages",
    "hugepage": "huge pages are made and split: see transparent_hugepage/enabled",
    "ksm": "same pages are merged: see /sys/kernel/mm/ksm/run",
    "cow": "pages are copied after fork: let the child exec soon, or use vfork or posix_spawn",
    "fork": "the program forks while its threads run: vfork and posix_spawn flush nothing",
    "writeback": "a mapped file is written back: write with write(2), or sync less often",
    "mmap": "mmap replaces mappings: unmap nothing, map elsewhere",
    "mremap": "mappings are moved: reserve room where they can grow",
}


@dataclass(frozen=True)
class Forecast:
    """What FPR would do, in all runs together. Those received are what counts: they interrupt.

    share: of those received. shares: the same of each run. reclaim: the part of received_removed
    that is an estimate. sent, removed, left: shootdowns sent. by_source: of these could be removed
    as well if the program mapped anonymous memory with MAP_FPR. lazy: of those received, that LATR
    would remove. verdicts: of each run whether FPR
    is worth it, None where it received too few to tell.
    """

    received: int
    received_removed: int
    share: float
    shares: list[float]
    sent: int
    removed: int
    left: int
    reclaim: int
    by_source: int
    lazy: int
    verdicts: list[bool | None]

    @property
    def few(self) -> bool:
        """Say whether no run has received enough to tell."""
        return not any(verdict is not None for verdict in self.verdicts)

    @property
    def worth(self) -> bool:
        """Say whether it is worth switching on."""
        return self.share >= _WORTH and not self.few

    @property
    def agree(self) -> bool:
        """Say whether no run by itself would say something else."""
        return not {True, False} <= set(self.verdicts)


def _verdict(removed: float, received: int) -> bool | None:
    return None if received < _FEWEST else _share(removed, received) >= _WORTH


def _share(removed: float, received: int) -> float:
    return removed / received if received else 0.0


def forecast(recording: Recording) -> Forecast:
    """Return what FPR would do."""
    total = recording.total()
    removed = round(total.saved)
    reclaim = recording.causes.get(causes.RECLAIM)
    # A process that ran already is as one run.
    runs = recording.runs or [Run(total.sent, total.received, total.saved_received)]
    return Forecast(
        received=total.received,
        received_removed=round(total.saved_received),
        share=_share(total.saved_received, total.received),
        shares=[_share(run.removed, run.received) for run in recording.runs],
        sent=total.sent,
        removed=removed,
        left=total.sent - removed,
        reclaim=round(reclaim.saved_received) if reclaim else 0,
        by_source=recording.by_source,
        lazy=recording.lazy,
        verdicts=[_verdict(run.removed, run.received) for run in runs],
    )


def sentence(found: Forecast) -> str:
    """Return the forecast in words."""
    if not found.sent:
        return "Forecast: the program sent no shootdowns, so FPR would change nothing."
    if not found.received:
        return (
            f"Forecast: the {found.sent:,} shootdowns that were sent interrupted no CPU, "
            "so FPR would change nothing."
        )
    text = (
        f"Forecast: FPR would remove {found.received_removed:,} of {found.received:,} shootdowns "
        f"that CPUs received ({100 * found.share:.0f} %), "
        f"{found.received - found.received_removed:,} would stay."
    )
    if found.reclaim:
        text += f" Of these removed, {found.reclaim:,} are of reclaim, which is an estimate."
    return text


def spread(found: Forecast) -> list[str]:
    """Return in words how much the runs differ."""
    runs = len(found.shares)
    if not found.sent or not runs:
        return []
    if runs == 1:
        return ["That is one run: --repeat 5 tells how much it varies."]
    enough = [
        100 * share
        for share, verdict in zip(found.shares, found.verdicts, strict=True)
        if verdict is not None
    ]
    lines = []
    if enough:
        where = f"{runs} runs" if len(enough) == runs else f"{len(enough)} of {runs} runs"
        lines.append(f"In {where} it was {min(enough):.0f} to {max(enough):.0f} %.")
    if len(enough) < runs:
        lines.append(
            f"In {runs - len(enough)} of {runs} runs CPUs received fewer than {_FEWEST} "
            "shootdowns, which says nothing: the threads hardly ran at the same time."
        )
    if not found.agree:
        lines.append(
            f"Of these runs {found.verdicts.count(True)} say that FPR is worth it, "
            f"{found.verdicts.count(False)} do not: record more of them, or longer ones."
        )
    return lines


def advice(recording: Recording, found: Forecast) -> list[str]:
    """Return what to do, one sentence or command a line."""
    lines = []
    command = recording.environment.command
    if found.worth:
        lines += switch_on(command, fpr=recording.environment.fpr)
        folder = common_folder(recording.files)
        if (
            folder
            and list(command[:1]) != ["-p"]
            and not activation.obstacle(_PRELOADED, command[0])
        ):
            glob = quoted([f"{folder}/*"])
            lines.append(f"Only for these files: ceasefire run --path {glob} -- ...")
    elif found.few and found.sent:
        lines += few(recording, found)
    elif found.sent:
        lines.append("FPR is not worth it for this program.")
    if found.by_source >= _WORTH * max(found.sent, 1):
        lines.append(
            f"{found.by_source:,} more if the program maps anonymous memory with MAP_FPR itself, "
            "see MAP_FPR(2const)."
        )
    lines += others(found)
    for cause, part in sorted(recording.causes.items(), key=lambda item: -item[1].received):
        hint = _HINTS.get(cause.partition(":")[0])
        stay = part.received - part.saved_received
        if hint and stay and stay >= _LARGE * found.received:
            lines.append(f"{causes.label(cause)}: {hint}.")
    return lines


def others(found: Forecast) -> list[str]:
    """Say what other mechanisms are for."""
    if found.few:
        return []
    lines = []
    if _share(found.lazy, found.received) >= _WORTH:
        lines.append(
            f"LATR would remove {found.lazy:,} of those received "
            f"({100 * _share(found.lazy, found.received):.0f} %), also where memory and code are "
            "unmapped: ceasefire run --latr, or try --latr."
        )
    rest = found.received - max(found.lazy, found.received_removed)
    if _share(rest, found.received) >= _LARGE:
        lines.append(
            "Sharers and ABIS remove those of memory that one CPU alone has used, whatever the "
            "call. A recording cannot tell: ceasefire try --modes off,sharers,abis counts them."
        )
    return lines


def few(recording: Recording, found: Forecast) -> list[str]:
    """Say what little can be said where hardly a CPU was interrupted."""
    lines = [
        f"CPUs received fewer than {_FEWEST} shootdowns in each run: nothing to gain from FPR."
    ]
    if busy(recording):
        lines[0] = (
            f"No verdict: CPUs received fewer than {_FEWEST} shootdowns in each run, and the "
            "machine was busy. Repeat it when the machine is idle."
        )
    if found.removed >= _WORTH * found.sent:
        lines.append(
            f"If its threads ran at the same time FPR might remove {found.removed:,} of the "
            f"{found.sent:,} that were sent."
        )
    return lines


def busy(recording: Recording) -> bool:
    """Say whether other programs had the CPUs when the recording began."""
    return recording.environment.load > recording.environment.cpus


def common_folder(files: Mapping[str, int]) -> str:
    """Return the directory of the files that were seen; empty if that says nothing."""
    folders = {str(PurePath(path).parent) for path in files if path.startswith("/")}
    common = os.path.commonpath(folders) if folders else ""
    return "" if common == "/" else common


def switch_on(command: Sequence[str], *, fpr: bool) -> list[str]:
    """Say how the program gets FPR."""
    attached = list(command[:1]) == ["-p"]
    words = "CMD..." if attached else quoted(command)
    lines = []
    if fpr:
        lines.append(f"Switch it on: ceasefire run -- {words}")
    else:
        lines.append(f"Try it in a virtual machine: ceasefire try --data DIR -- {words}")
        lines.append(f"Switch it on: boot the ceasefire kernel, then: ceasefire run -- {words}")
    if attached:
        return [*lines, "The program has to be started that way; it cannot be switched on later."]
    if warning := activation.warning(command[0], [modes.FPR]):
        lines.append(f"{warning}.")
    if fpr and not prctl.available():
        why = activation.obstacle(_PRELOADED, command[0])
        if why:
            lines.append(f"{why}, and this kernel has no prctl(PR_FPR): boot a newer one.")
    return lines
