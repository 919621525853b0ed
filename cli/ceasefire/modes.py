# SPDX-License-Identifier: GPL-2.0-only
"""The modes in which a program can run: which mechanisms of ceasefire work for it.

The name of a mode is `off`, a mechanism, several joined by + such as fpr+latr, or `stock`: on a
kernel without ceasefire. A new mechanism is one more entry in MECHANISMS; `run`, `try` and `stat`
know it from there. What makes a program ask for one is in launch/activation.py.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ceasefire import copies
from ceasefire.errors import Unsupported, UsageError

SYSFS = Path("/sys/kernel/mm/ceasefire")
# What a switch says where programs need not ask.
ALWAYS = "always"


@dataclass(frozen=True)
class Mechanism:
    """One way to do without a shootdown, with a switch of its own.

    name: as users write it; also its folder in sysfs and how its counters begin.
    skipped: the counter of the flushes that it has made unnecessary, "" if it makes none so.
    gauges: files of its folder that say what is there at present.
    asked: a program has to ask for it; else all programs have it while it is switched on.
    words: what its switch says for off, and what is written there for on.
    narrowed: counters of flushes that it has sent only to those who need them.
    obstacle: says why this machine gains nothing by it, though it is switched on.
    """

    name: str
    title: str
    skipped: str
    gauges: tuple[str, ...] = ()
    asked: bool = False
    words: tuple[str, str] = ("0", "1")
    narrowed: tuple[str, ...] = ()
    obstacle: Callable[[], str] = str

    @property
    def prefix(self) -> str:
        """How the names of its counters begin."""
        return f"{self.name}_"

    @property
    def folder(self) -> Path:
        """Its part of sysfs."""
        return SYSFS / self.name

    @property
    def switch(self) -> Path:
        """The file that switches it."""
        return self.folder / "enabled"

    def present(self) -> bool:
        """Say whether the running kernel has it."""
        return self.switch.is_file()

    def state(self) -> str:
        """Return what its switch says, "" where there is none."""
        try:
            text = self.switch.read_text(encoding="ascii")
        except OSError:
            return ""
        # One value, or all that there are with the present one in brackets.
        return next((w[1:-1] for w in text.split() if w.startswith("[")), text.strip())

    def enabled(self) -> bool:
        """Say whether it is there and switched on."""
        return self.state() not in ("", self.words[0])

    def for_all(self) -> bool:
        """Say whether programs have it that do not ask, and cannot do without."""
        return self.state() == ALWAYS

    def set(self, *, on: bool) -> None:
        """Switch it; it must be there."""
        self.switch.write_text(f"{self.words[on]}\n", encoding="ascii")


FPR = Mechanism("fpr", "FPR", "fpr_skip", ("parked", "contexts", "tag_bytes"), asked=True)
LATR = Mechanism("latr", "LATR", "latr_skip", asked=True, words=("never", "ask"))
SHARERS = Mechanism(
    "sharers",
    "Sharers",
    "",
    asked=True,
    words=("never", "ask"),
    narrowed=("sharers_flush_local", "sharers_flush_remote", "sharers_defer"),
    obstacle=copies.obstacle,
)
ABIS = Mechanism("abis", "ABIS", "abis_none", asked=True, words=("never", "ask"))
MECHANISMS = (FPR, LATR, SHARERS, ABIS)
# Programs use these objects or not: nothing that they are run with.
MORSEL = Mechanism("morsel", "Morsels", "", ("pages", "limit"), words=("never", "ask"))


def shown() -> tuple[Mechanism, ...]:
    """Return all that a kernel may have, for those who show it."""
    return (*MECHANISMS, MORSEL)


@dataclass(frozen=True)
class Mode:
    """What a program runs with. kernel: the kind of kernel that it takes, "" for ceasefire's."""

    name: str
    mechanisms: tuple[Mechanism, ...] = ()
    kernel: str = ""

    def require(self) -> None:
        """Raise when the running kernel does not offer this now."""
        if self.kernel and (there := [m.title for m in MECHANISMS if m.present()]):
            raise Unsupported(
                f"mode {self.name} is for a kernel without {', '.join(there)}: boot that one, or "
                f"compare the two with `ceasefire try --modes {self.name},...`"
            )
        for mechanism in MECHANISMS if self == OFF else ():
            if mechanism.for_all():
                raise Unsupported(
                    f"all programs have {mechanism.title} here: "
                    f"echo {mechanism.words[1]} > {mechanism.switch}"
                )
        for mechanism in self.mechanisms:
            title = mechanism.title
            if not mechanism.present():
                raise Unsupported(
                    f"this kernel has no {title}: boot the ceasefire kernel, or use `ceasefire try`"
                )
            if not mechanism.enabled():
                word = mechanism.words[1]
                raise Unsupported(f"{title} is switched off: echo {word} > {mechanism.switch}")
            if why := mechanism.obstacle():
                raise Unsupported(f"{title} does nothing here: {why}")

    def set_switches(self) -> None:
        """Switch the mechanisms of this machine. Those that programs ask for are always on."""
        for mechanism in MECHANISMS:
            if mechanism.present():
                mechanism.set(on=mechanism.asked or mechanism in self.mechanisms)


OFF = Mode("off")
STOCK = Mode("stock", kernel="stock")


def known() -> str:
    """Return the names of all modes but combinations, for the user."""
    return ", ".join((OFF.name, *(m.name for m in MECHANISMS), STOCK.name))


def parse(name: str) -> Mode:
    """Return the mode of a name; fpr+latr and latr+fpr are the same one."""
    for mode in (OFF, STOCK):
        if name == mode.name:
            return mode
    words = name.split("+")
    unknown = [word for word in words if word not in (m.name for m in MECHANISMS)]
    if unknown or len(set(words)) < len(words):
        raise UsageError(f"'{name}' is no mode: it is one of {known()}, or mechanisms joined by +")
    chosen = tuple(m for m in MECHANISMS if m.name in words)
    return Mode("+".join(m.name for m in chosen), chosen)


def parse_list(text: str) -> tuple[Mode, ...]:
    """Return the modes of a list such as off,fpr: each once."""
    found = tuple(parse(word) for word in text.split(","))
    twice = [mode.name for mode in found if found.count(mode) > 1]
    if twice:
        raise UsageError(f"mode {twice[0]} is in the list twice")
    return found


def order(names: Sequence[str], number: int) -> Iterable[str]:
    """Return the order of modes in a round: each round begins with another one.

    What drifts, and what the first run of a round pays for the others, is the same for all then.
    """
    shift = number % len(names)
    return (*names[shift:], *names[:shift])
