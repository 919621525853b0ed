# SPDX-License-Identifier: GPL-2.0-only
"""From a recording to what FPR would remove, and to what the user can do.

Of munmap() each shootdown was judged by its mappings when it was recorded; of reclaim the share
is that of the mapped bytes which could recycle, an estimate. All other causes flush with FPR, too.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ceasefire.launch import activation, prctl
from ceasefire.record import causes
from ceasefire.record.model import Recording
from ceasefire.text import quoted

# Fewer than this share is not worth a kernel.
_WORTH = 0.05
# A program that gets FPR from the preload library.
_PRELOADED = activation.Activation("")
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
    """What FPR would do. Counts of shootdowns sent; reclaim: the part that is an estimate.

    by_source: could be removed as well if the program mapped anonymous memory with MAP_FPR.
    """

    sent: int
    removed: int
    left: int
    share: float
    received: int
    received_removed: int
    reclaim: int
    by_source: int

    @property
    def worth(self) -> bool:
        """Say whether it is worth switching on."""
        return self.share >= _WORTH


def forecast(recording: Recording) -> Forecast:
    """Return what FPR would do."""
    total = recording.total()
    removed = round(total.saved)
    reclaim = recording.causes.get(causes.RECLAIM)
    return Forecast(
        sent=total.sent,
        removed=removed,
        left=total.sent - removed,
        share=total.saved / total.sent if total.sent else 0.0,
        received=total.received,
        received_removed=round(total.saved_received),
        reclaim=round(reclaim.saved) if reclaim else 0,
        by_source=recording.by_source,
    )


def sentence(found: Forecast) -> str:
    """Return the forecast in words."""
    if not found.sent:
        return "Forecast: the program sent no shootdowns, so FPR would change nothing."
    text = (
        f"Forecast: FPR would remove {found.removed:,} of {found.sent:,} shootdowns "
        f"({100 * found.share:.0f} %), {found.left:,} would stay."
    )
    if found.reclaim:
        text += f" Of these removed, {found.reclaim:,} are of reclaim, which is an estimate."
    return text


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
    elif found.sent:
        lines.append("FPR is not worth it for this program.")
    if found.by_source >= _WORTH * max(found.sent, 1):
        lines.append(
            f"{found.by_source:,} more if the program maps anonymous memory with MAP_FPR itself, "
            "see MAP_FPR(2const)."
        )
    for cause, part in sorted(recording.causes.items(), key=lambda item: -item[1].sent):
        hint = _HINTS.get(cause.partition(":")[0])
        if hint and part.sent - part.saved >= _LARGE * found.sent:
            lines.append(f"{causes.label(cause)}: {hint}.")
    return lines


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
    if warning := activation.warning(command[0]):
        lines.append(f"{warning}.")
    if fpr and not prctl.available():
        why = activation.obstacle(_PRELOADED, command[0])
        if why:
            lines.append(f"{why}, and this kernel has no prctl(PR_FPR): boot a newer one.")
    return lines
