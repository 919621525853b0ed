# SPDX-License-Identifier: GPL-2.0-only
"""Runs a program without and with FPR in turn, inside a guest; started by `ceasefire try`.

Gets a Plan as JSON in its only argument. Prints for ceasefire/trial.py, a line each:

  sample MODE ROUND STATUS MICROSECONDS SAME NAME=DELTA...   round 0 warms up
  text LINE                                                  for the user

Both modes start the program in the same way, so that they differ by FPR alone: what the switch
is set to here the program inherits.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from ceasefire import counters, prctl
from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_UNSUPPORTED
from ceasefire.trial import OFF, ON

_SWITCH = counters.SYSFS / "fpr" / "enabled"
_WORK = Path("/run/ceasefire-try")
_TEXT_LINES = 20
_TEXT_BYTES = 500
_PRELOAD_FAILED = b"cannot be preloaded"


@dataclass(frozen=True)
class Plan:
    """What to run. limit and variables: as in ceasefire.way.Way, for the runs with FPR."""

    rounds: int
    sort: bool
    limit: int | None
    variables: dict[str, str]
    command: list[str]

    def words(self) -> list[str]:
        """Return the command line that carries it out with this very package."""
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); "
            "from ceasefire.rounds import main; sys.exit(main(sys.argv[2]))"
        )
        package = Path(__file__).resolve().parents[1]
        return [sys.executable, "-I", "-B", "-c", code, str(package), json.dumps(asdict(self))]


class Rounds:
    """The runs of a plan, and the output of the first one, with which all others are compared."""

    def __init__(self, plan: Plan, work: Path) -> None:
        """Keep outputs in a directory of our own."""
        self._plan = plan
        self._environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        self._reference, self._out, self._err = (work / n for n in ("reference", "out", "err"))
        self._told = False

    def sample(self, mode: str, number: int) -> bool:
        """Run the program once and print its sample; False if it makes no sense to go on."""
        before = counters.parse_vmstat(counters.VMSTAT.read_text(encoding="ascii"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            begin = time.monotonic_ns()
            status = self._run(mode, out, err)
            usec = (time.monotonic_ns() - begin) // 1000
        after = counters.parse_vmstat(counters.VMSTAT.read_text(encoding="ascii"))
        same = self._compare(status)
        lost = [line for line in self._err.read_bytes().splitlines() if _PRELOAD_FAILED in line]
        if lost:
            _texts(lost[:1])
            return False
        moved = counters.difference(before, after).items()
        values = " ".join(f"{name}={value}" for name, value in moved)
        print(f"sample {mode} {number} {status} {usec} {same:d} {values}", flush=True)
        return True

    def _run(self, mode: str, out: IO[bytes], err: IO[bytes]) -> int:
        plan = self._plan
        if plan.limit is not None:
            prctl.set_auto(plan.limit if mode == ON else 0)
        try:
            status = subprocess.Popen(
                plan.command,
                env={**self._environment, **(plan.variables if mode == ON else {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            ).wait()
        except FileNotFoundError:
            err.write(f"{plan.command[0]}: command not found\n".encode())
            return EXIT_NOT_FOUND
        except OSError as error:
            err.write(f"{plan.command[0]}: {error.strerror}\n".encode())
            return EXIT_NOT_EXECUTABLE
        finally:
            if plan.limit is not None:
                prctl.set_auto(0)
        return status if status >= 0 else 128 - status

    def _compare(self, status: int) -> bool:
        """Say whether the output is that of the first run; tell about the first that is not."""
        if self._plan.sort:
            subprocess.run(
                ["sort", "-o", self._out, self._out],
                env={**self._environment, "LC_ALL": "C"},
                check=True,
            )
        if not self._reference.exists():
            shutil.copyfile(self._out, self._reference)
            if status != 0:
                _texts(self._err.read_bytes().splitlines()[:_TEXT_LINES])
            return True
        if subprocess.run(["cmp", "-s", self._reference, self._out], check=False).returncode == 0:
            return True
        if not self._told:
            self._told = True
            done = subprocess.run(
                ["diff", self._reference, self._out], stdout=subprocess.PIPE, check=False
            )
            _texts(done.stdout.splitlines()[:_TEXT_LINES])
        return False


def main(text: str) -> int:
    """Carry out a plan."""
    plan = Plan(**json.loads(text))
    if not counters.supported():
        _texts([b"the kernel in the guest has no FPR"])
        return EXIT_UNSUPPORTED
    if plan.limit is not None and not prctl.available():
        _texts([b"the kernel in the guest has no prctl(PR_FPR): use --path '*'"])
        return 1
    _SWITCH.write_text("1\n", encoding="ascii")
    _WORK.mkdir(parents=True)
    rounds = Rounds(plan, _WORK)
    for number in range(plan.rounds + 1):
        if not (rounds.sample(OFF, number) and rounds.sample(ON, number)):
            return 1
    return 0


def _texts(lines: list[bytes]) -> None:
    for line in lines:
        print("text", line[:_TEXT_BYTES].decode(errors="replace"), flush=True)
