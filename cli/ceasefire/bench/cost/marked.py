# SPDX-License-Identifier: GPL-2.0-only
"""Instructions between two marks, in a guest with several CPUs.

The CPUs share the clock of -icount, so that it counts the instructions of none of them. A plugin of
the emulator (bench/instructions/steps-plugin.c) does: those of the CPU that runs the marks, ticks
and interrupts included.
"""

import json
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ceasefire import paths
from ceasefire.bench.cost.count import GUEST_LIMIT, ICOUNT
from ceasefire.bench.cost.profile import DISKS
from ceasefire.bench.measure import machine, programs
from ceasefire.errors import Failure
from ceasefire.vm import GuestSpec, run_guest

KERNEL = "run"
_COUNT = struct.Struct("<Q")


def count(words: Sequence[str], kind: str, cpus: int, memory: str = "1G") -> list[dict[str, Any]]:
    """Run a program with marks in a guest; return its lines of a kind, with `instructions`."""
    plugin = programs.find("steps-plugin.so")
    with tempfile.TemporaryDirectory(dir=paths.runs_dir()) as run:
        out = Path(run) / "totals"
        spec = GuestSpec(
            kernel=KERNEL,
            cpus=cpus,
            memory=memory,
            icount=True,
            accel="tcg",
            timeout=GUEST_LIMIT,
            disks=DISKS,
            qemu_args=("-icount", ICOUNT, "-plugin", f"{plugin},total={out}"),
        )
        result = run_guest(spec, list(words), name="bench-marked", cwd=Path("/"))
        machine.judge(result.check(), result.stderr.decode(errors="replace"))
        text = result.stdout.decode("utf-8", errors="replace")
        return with_counts(text, kind, out.read_bytes())


def with_counts(text: str, kind: str, totals: bytes) -> list[dict[str, Any]]:
    """Return the lines of a kind among those of a program, each with its count of instructions.

    totals: 8 bytes for each, in the order of the lines.
    """
    try:
        found = [json.loads(line) for line in text.splitlines()]
        lines = [line for line in found if line["type"] == kind]
    except (ValueError, TypeError, KeyError) as error:
        raise Failure(f"the program printed something else: {error}") from None
    if len(totals) != _COUNT.size * len(lines) or not lines:
        raise Failure(f"{len(lines)} samples have {len(totals) // _COUNT.size} counts")
    for line, (count,) in zip(lines, _COUNT.iter_unpack(totals), strict=True):
        line["instructions"] = count
    return lines
