# SPDX-License-Identifier: GPL-2.0-only
"""The arms of a comparison: the mechanisms that can be forced on for programs that know of none.

FPR is asked for by a program that becomes the one under test, fpr_force. The others are for all
programs that are executed while their switch says `always`, so that is set for the time of a run.
A program without threads has nothing of Sharers and ABIS.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ceasefire import modes
from ceasefire.errors import Failure, UsageError


@dataclass(frozen=True)
class Arm:
    """One mechanism.

    used: the counter that says whether it did anything. columns: those that a table shows. program:
    it comes before the words of a command. always: the word for its switch during a run. mapping:
    whatever maps files uses it.
    """

    mechanism: modes.Mechanism
    used: str
    columns: tuple[str, ...]
    program: str = ""
    always: str = ""
    mapping: bool = True

    @property
    def name(self) -> str:
        """As users write it."""
        return self.mechanism.name

    @property
    def title(self) -> str:
        """As it is called in reports."""
        return self.mechanism.title

    def uses(self, counters: Mapping[str, int]) -> int:
        """Return how often a run has used it."""
        return counters.get(self.used, 0)

    def words(self) -> tuple[str, ...]:
        """Return what comes before a command; raises when that was not built."""
        if not self.program:
            return ()
        found = shutil.which(self.program)
        if found is None:
            raise Failure(f"{self.program} is missing: run `make tools`")
        return (found,)

    @contextmanager
    def switched(self) -> Iterator[None]:
        """Have the mechanism for what is executed meanwhile."""
        if self.always:
            self.mechanism.switch.write_text(self.always, encoding="ascii")
        try:
            yield
        finally:
            self.mechanism.set(on=True)


# Frames and ticks are counted under the name of the first mechanism, for all of them.
ARMS = (
    Arm(
        modes.FPR,
        "fpr_map",
        ("fpr_map", "fpr_skip", "fpr_skip_pages", "fpr_park", "fpr_recycle"),
        program="fpr_force",
    ),
    Arm(
        modes.LATR,
        "latr_skip",
        ("latr_skip", "latr_skip_pages", "fpr_park", "fpr_tick_flush", "latr_late"),
        always="always",
    ),
    Arm(
        modes.SHARERS,
        "sharers_fill",
        (
            "sharers_fill",
            "sharers_flush_local",
            "sharers_flush_remote",
            "sharers_flush_all",
            "sharers_unconfine",
        ),
        always="always",
        mapping=False,
    ),
    Arm(
        modes.ABIS,
        "abis_uncached",
        ("abis_uncached", "abis_none", "abis_some", "abis_all", "abis_cached_young"),
        always="always",
        mapping=False,
    ),
)


def choose(name: str) -> Arm:
    """Return the arm of this name."""
    for arm in ARMS:
        if arm.name == name:
            return arm
    raise UsageError(f"no arm is named {name}: it is one of {', '.join(a.name for a in ARMS)}")
