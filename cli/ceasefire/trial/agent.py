# SPDX-License-Identifier: GPL-2.0-only
"""Runs a program without and with FPR in turn, inside a guest; started by `ceasefire try`.

Gets a Plan as JSON in its only argument. Prints for samples.py, a line each:

  TOKEN sample MODE ROUND STATUS MICROSECONDS SAME NAME=DELTA...   round 0 warms up
  TOKEN text LINE                                                  for the user

The token is that of the plan: a line that the program prints is none of these.

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

from ceasefire import counters
from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_UNSUPPORTED
from ceasefire.launch import prctl
from ceasefire.text import lines_of
from ceasefire.trial.samples import OFF, ON

_SWITCH = counters.SYSFS / "fpr" / "enabled"
_WORK = Path("/run/ceasefire-try")
_TEXT_LINES = 20
_TEXT_BYTES = 1 << 16
_TEXT_LENGTH = 500
_PRELOAD_FAILED = b"cannot be preloaded"


@dataclass(frozen=True)
class Plan:
    """What to run. limit and variables: as in launch.activation.Activation, for runs with FPR.

    token: begins each line of ours.
    """

    token: str
    rounds: int
    sort: bool
    limit: int | None
    variables: dict[str, str]
    command: list[str]

    def words(self) -> list[str]:
        """Return the command line that carries it out with this very package."""
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); "
            "from ceasefire.trial.agent import main; sys.exit(main(sys.argv[2]))"
        )
        package = Path(__file__).resolve().parents[2]
        return [sys.executable, "-I", "-B", "-c", code, str(package), json.dumps(asdict(self))]


class Rounds:
    """The runs of a plan, and the output of the first one, with which all others are compared."""

    def __init__(self, plan: Plan, work: Path) -> None:
        """Keep outputs in a directory of our own."""
        self._plan = plan
        self._environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        self._reference, self._out, self._err = (work / n for n in ("reference", "out", "err"))
        self._told = False

    def say(self, text: str) -> None:
        """Print a line for samples.py."""
        print(self._plan.token, text, flush=True)

    def texts(self, some: bytes) -> None:
        """Tell the user the first lines of what somebody has printed."""
        for line in lines_of(some)[:_TEXT_LINES]:
            self.say(f"text {line[:_TEXT_LENGTH]}")

    def sample(self, mode: str, number: int) -> bool:
        """Run the program once and print its sample; False if it makes no sense to go on."""
        before = counters.parse_vmstat(counters.VMSTAT.read_text(encoding="ascii"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            begin = time.monotonic_ns()
            status = self._run(mode, out, err)
            usec = (time.monotonic_ns() - begin) // 1000
        after = counters.parse_vmstat(counters.VMSTAT.read_text(encoding="ascii"))
        same = self._compare(status)
        with self._err.open("rb") as err:
            said = err.read(_TEXT_BYTES).split(b"\n")
        lost = next((line for line in said if _PRELOAD_FAILED in line), None)
        if lost is not None:
            self.texts(lost)
            return False
        moved = counters.difference(before, after).items()
        values = " ".join(f"{name}={value}" for name, value in moved)
        self.say(f"sample {mode} {number} {status} {usec} {same:d} {values}")
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
            err.write(os.fsencode(f"{plan.command[0]}: command not found\n"))
            return EXIT_NOT_FOUND
        except OSError as error:
            err.write(os.fsencode(f"{plan.command[0]}: {error.strerror}\n"))
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
                with self._err.open("rb") as err:
                    self.texts(err.read(_TEXT_BYTES))
            return True
        if subprocess.run(["cmp", "-s", self._reference, self._out], check=False).returncode == 0:
            return True
        if not self._told:
            self._told = True
            with subprocess.Popen(
                ["diff", "-a", self._reference, self._out], stdout=subprocess.PIPE
            ) as diff:
                assert diff.stdout is not None
                self.texts(diff.stdout.read(_TEXT_BYTES))
                diff.kill()
        return False


def main(text: str) -> int:
    """Carry out a plan."""
    plan = Plan(**json.loads(text))
    rounds = Rounds(plan, _WORK)
    if not counters.supported():
        rounds.say("text the kernel in the guest has no FPR")
        return EXIT_UNSUPPORTED
    if plan.limit is not None and not prctl.available():
        rounds.say("text the kernel in the guest has no prctl(PR_FPR): use --path '*'")
        return 1
    _SWITCH.write_text("1\n", encoding="ascii")
    _WORK.mkdir(parents=True)
    for number in range(plan.rounds + 1):
        if not (rounds.sample(OFF, number) and rounds.sample(ON, number)):
            return 1
    return 0
