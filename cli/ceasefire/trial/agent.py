# SPDX-License-Identifier: GPL-2.0-only
"""Runs a program in each mode in turn, inside a guest; started by `ceasefire try`.

Gets a Plan as JSON in its only argument. Prints for samples.py, a line each:

  TOKEN run MODE ROUND                                               it begins
  TOKEN sample MODE ROUND STATUS MICROSECONDS DIGEST NAME=DELTA...   round 0 warms up
  TOKEN error LINE        what the program said in a first run that failed
  TOKEN differ LINE       how the first output that is another one differs
  TOKEN text LINE         why there are no more samples

The token is that of the plan: a line that the program prints is none of these.

All modes start the program in the same way, so that they differ by the mode alone: what the switch
is set to here the program inherits. Each round begins with another mode.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from ceasefire import counters, modes, paths
from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Unsupported
from ceasefire.launch import prctl
from ceasefire.text import lines_of

_WORK = Path("/run/ceasefire-try")
_TEXT_LINES = 20
_TEXT_BYTES = 1 << 16
_TEXT_LENGTH = 500
_PRELOAD_FAILED = b"cannot be preloaded"


@dataclass(frozen=True)
class Plan:
    """What to run. limit and variables: as in launch.activation.Activation, for modes with FPR.

    token: begins each line of ours. modes: by name. input: the file for standard input, "" without.
    """

    token: str
    rounds: int
    modes: list[str]
    sort: bool
    limit: int | None
    variables: dict[str, str]
    input: str
    command: list[str]

    def words(self) -> list[str]:
        """Return the command line that carries it out with this very package."""
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); "
            "from ceasefire.trial.agent import main; sys.exit(main(sys.argv[2]))"
        )
        package = str(paths.package_root())
        return [sys.executable, "-I", "-B", "-c", code, package, json.dumps(asdict(self))]


class Agent:
    """The runs of a plan, and the output of the first one, with which all others are compared."""

    def __init__(self, plan: Plan, work: Path) -> None:
        """Keep outputs in a directory of our own."""
        self._plan = plan
        self._environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        self._reference, self._out, self._err = (work / n for n in ("reference", "out", "err"))
        self._switch = prctl.available()
        self._lazy = prctl.lazy_available()
        self._sharers = prctl.sharers_available()
        self._abis = prctl.abis_available()
        self._first = ""
        self._told = False

    def say(self, text: str) -> None:
        """Print a line for samples.py."""
        print(self._plan.token, text, flush=True)

    def texts(self, kind: str, some: bytes) -> None:
        """Tell the user the first lines of what somebody has printed."""
        for line in lines_of(some)[:_TEXT_LINES]:
            self.say(f"{kind} {line[:_TEXT_LENGTH]}")

    def sample(self, mode: modes.Mode, number: int) -> bool:
        """Run the program once and print its sample; False if it makes no sense to go on."""
        self.say(f"run {mode.name} {number}")
        mode.set_switches()
        before = counters.available()
        with self._out.open("wb") as out, self._err.open("wb") as err:
            begin = time.monotonic_ns()
            status = self._run(out, err, mode)
            usec = (time.monotonic_ns() - begin) // 1000
        after = counters.available()
        digest = self._compare(status)
        with self._err.open("rb") as err:
            said = err.read(_TEXT_BYTES).split(b"\n")
        lost = next((line for line in said if _PRELOAD_FAILED in line), None)
        if lost is not None:
            self.texts("text", lost)
            return False
        moved = counters.difference(before, after).items()
        values = " ".join(f"{name}={value}" for name, value in moved)
        self.say(f"sample {mode.name} {number} {status} {usec} {digest} {values}")
        return True

    def _run(self, out: IO[bytes], err: IO[bytes], mode: modes.Mode) -> int:
        plan = self._plan
        fpr = modes.FPR in mode.mechanisms
        self._choose(mode)
        try:
            with Path(plan.input or os.devnull).open("rb") as given:
                status = subprocess.Popen(
                    plan.command,
                    env={**self._environment, **(plan.variables if fpr else {})},
                    stdin=given,
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
            self._choose(modes.OFF)
        return status if status >= 0 else 128 - status

    def _choose(self, mode: modes.Mode) -> None:
        """Set what the program inherits, and we have ourselves meanwhile."""
        if self._switch:
            prctl.set_auto(self._plan.limit or 0 if modes.FPR in mode.mechanisms else 0)
        if self._lazy:
            prctl.set_lazy(on=modes.LATR in mode.mechanisms)
        if self._sharers:
            prctl.set_sharers(on=modes.SHARERS in mode.mechanisms)
        if self._abis:
            prctl.set_abis(on=modes.ABIS in mode.mechanisms)

    def _compare(self, status: int) -> str:
        """Return the digest of the output; tell about the first that is another one."""
        if self._plan.sort:
            subprocess.run(
                ["sort", "-o", self._out, self._out],
                env={**self._environment, "LC_ALL": "C"},
                check=True,
            )
        with self._out.open("rb") as out:
            digest = hashlib.file_digest(out, "sha256").hexdigest()[:16]
        if not self._first:
            self._first = digest
            shutil.copyfile(self._out, self._reference)
            if status != 0:
                with self._err.open("rb") as err:
                    self.texts("error", err.read(_TEXT_BYTES))
        elif digest != self._first and not self._told:
            self._told = True
            with subprocess.Popen(
                ["diff", "-a", self._reference, self._out], stdout=subprocess.PIPE
            ) as diff:
                assert diff.stdout is not None
                self.texts("differ", diff.stdout.read(_TEXT_BYTES))
                diff.kill()
        return digest


def main(text: str) -> int:
    """Carry out a plan."""
    plan = Plan(**json.loads(text))
    agent = Agent(plan, _WORK)
    chosen = {name: modes.parse(name) for name in plan.modes}
    for mode in chosen.values():
        mode.set_switches()
        try:
            mode.require()
        except Unsupported as lacking:
            agent.say(f"text in the guest: {lacking}")
            return Unsupported.status
        if plan.limit is not None and modes.FPR in mode.mechanisms and not prctl.available():
            agent.say("text the kernel in the guest has no prctl(PR_FPR): use --path '*'")
            return 1
    _WORK.mkdir(parents=True, exist_ok=True)
    for number in range(plan.rounds + 1):
        for name in modes.order(plan.modes, number):
            if not agent.sample(chosen[name], number):
                return 1
    return 0
