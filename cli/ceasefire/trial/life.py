# SPDX-License-Identifier: GPL-2.0-only
"""Signs of life of a trial for the person who waits: the guest is up, a round is done, and now and
then that a long run still goes on.
"""

import threading
import time
from types import TracebackType

from ceasefire.output import progress
from ceasefire.trial.agent import Plan
from ceasefire.trial.samples import Reader

QUIET = 30.0


class Life:
    """Takes the output of the guest for its reader, and tells how far it is."""

    def __init__(self, plan: Plan) -> None:
        self.reader = Reader(plan.token)
        self._plan = plan
        self._begin = self._last = time.monotonic()
        self._up = False
        self._rounds = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Life":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()

    def __call__(self, chunk: bytes) -> None:
        """Take a piece of output."""
        self.reader(chunk)
        if not self._up and self.reader.now is not None:
            self._up = True
            names = ", ".join(self._plan.modes)
            self._say(f"the guest is up after {self._seconds()}, warming up: {names} ...")
        each = len(self._plan.modes)
        while len(self.reader.found().samples) >= (self._rounds + 1) * each:
            done = f"round {self._rounds} of {self._plan.rounds} done"
            self._say(f"warmed up after {self._seconds()}" if self._rounds == 0 else done)
            self._rounds += 1

    def _say(self, text: str) -> None:
        self._last = time.monotonic()
        progress(text)

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._begin:.0f} s"

    def _watch(self) -> None:
        while not self._end.wait(min(QUIET, 1.0)):
            if time.monotonic() - self._last >= QUIET:
                mode, number = self.reader.now or ("", 0)
                where = f"in round {number}, mode {mode}" if mode else "booting"
                self._say(f"still {where}, {self._seconds()} since the start of the boot")
