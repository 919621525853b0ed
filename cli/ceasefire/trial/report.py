# SPDX-License-Identifier: GPL-2.0-only
"""What `ceasefire try` says about a trial: is the output the same, what did each mode change, why
did it change nothing, and what makes the figures doubtful.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ceasefire import modes, reasons
from ceasefire.counters import INTERRUPTS, RECEIVED, SENT
from ceasefire.output import number, say
from ceasefire.tables import print_table
from ceasefire.trial.load import Load
from ceasefire.trial.samples import Spread, Trial

# To whom the flushes went of a program whose CPUs note what they use.
_FLUSHES = (
    ("flushes to nobody else", "sharers_flush_local"),
    ("flushes to some CPUs", "sharers_flush_remote"),
    ("flushes to all CPUs", "sharers_flush_all"),
)
# Why some went to all, and what it all cost; shown if there was any.
_NOTES = (
    ("- of all memory", "sharers_all_whole"),
    ("- of more than 4 TiB", "sharers_all_long"),
    ("- at the end, or off", "sharers_all_stopped"),
    ("put off by reclaim", "sharers_defer"),
    ("mappings placed", "sharers_place"),
    ("regions noted", "sharers_fill"),
    ("faults for that alone", "sharers_fill_only"),
    ("regions gone too early", "sharers_fill_race"),
    ("GiB noted at once", "sharers_whole"),
    ("regions left again", "sharers_leave"),
    ("times without notes", "sharers_unconfine"),
)


@dataclass(frozen=True)
class Setting:
    """How it was measured. modes: names, the first one is what the others are compared with.

    cpus: of the guest. emulated: QEMU did their work.
    """

    modes: Sequence[str]
    rounds: int
    cpus: int
    emulated: bool
    load: Load

    @property
    def crowded(self) -> bool:
        """Say whether the guest has more CPUs than this machine, so that times mean nothing."""
        return self.emulated and self.cpus > self.load.cpus

    @property
    def title(self) -> str:
        """Say how it was measured."""
        how = "emulated by QEMU" if self.emulated else "KVM"
        return f"{self.rounds} rounds, median (least..greatest), {self.cpus} CPUs, {how}"


def verdict(trial: Trial, names: Sequence[str]) -> str:
    """Return why the outputs are not the same, empty when they are."""
    base, *others = names
    if trial.differing(base):
        return (
            f"the program prints something else each time, also in mode {base}: "
            "use --sort-output if only the order differs"
        )
    for mode in others:
        wrong = trial.differing(mode)
        status = trial.samples[0].status
        ends = [s.status for s in wrong if s.status != status]
        if ends:
            return (
                f"in mode {mode} the program ended with status {ends[0]}, in {base} with {status}"
            )
        if wrong:
            total = len([s for s in trial.samples if s.mode == mode])
            return (
                f"in mode {mode} the program printed something else in {len(wrong)} of {total} runs"
            )
    return ""


def tell(trial: Trial, setting: Setting) -> None:
    """Print all but the verdict. That the program failed comes first: the rest is of less use."""
    status = trial.samples[0].status
    if status:
        say(f"The program ended with status {status}:")
        for text in trial.said("error") or ["(it said nothing)"]:
            say(f"  {text}")
    base, *others = setting.modes
    title = setting.title
    for mode in others:
        print_table(["", base, mode, "compared"], rows(trial, setting, mode), title=title)
        title = ""
    for mode in others:
        if not trial.comparable(mode):
            _tell_why_not(trial, mode)
        elif modes.SHARERS in modes.parse(mode).mechanisms and not trial.narrowed(mode).median:
            say(f"In mode {mode} Sharers narrowed nothing.")
            say(_why_nothing_narrowed(trial.medians(mode)))
    if setting.emulated:
        say("The CPUs are emulated: only counts and ratios carry over to real ones.")
    if setting.crowded:
        say("There are more virtual CPUs than real ones: runtimes would mean nothing.")
    elif doubt := doubts(trial, setting):
        say(doubt)


def rows(trial: Trial, setting: Setting, mode: str) -> list[list[str]]:
    """Return the table of a mode: what, in the first mode, in this one, and how they compare."""
    base = setting.modes[0]
    table = []
    counted = [("shootdowns received", RECEIVED), ("shootdowns sent", SENT)]
    if not trial.has(RECEIVED):
        counted = [("interrupts for shootdowns", INTERRUPTS)]
    for name, counter in counted:
        before, after = trial.spread(base, counter), trial.spread(mode, counter)
        share = f"{100 * after.median / before.median:.2f} %" if before.median else ""
        table.append([name, _counts(before), _counts(after), share])
    either = (*modes.parse(base).mechanisms, *modes.parse(mode).mechanisms)
    if any(m.skipped for m in either) or not either:
        counts = [_counts(trial.skipped(name)) for name in (base, mode)]
        table.append(["flushes skipped", *counts, ""])
    if modes.SHARERS in either:
        table += _rows_of_sharers(trial, base, mode)
    if setting.crowded:
        return table
    before, after = trial.runtime(base), trial.runtime(mode)
    unit, name = (
        (before.median, f"runtime, {base} = 1") if setting.emulated else (1000.0, "runtime, ms")
    )
    digits = 2 if setting.emulated else 1
    table.append([name, _times(before, unit, digits), _times(after, unit, digits), ""])
    if trial.comparable(mode):
        ratio = trial.ratio(base, mode)
        middle = "unclear" if ratio.wide else f"{ratio.median:.2f}x"
        table[-1][-1] = f"{middle} ({ratio.least:.2f}..{ratio.greatest:.2f})"
    return table


def _rows_of_sharers(trial: Trial, base: str, mode: str) -> list[list[str]]:
    table = []
    for name, counter in (*_FLUSHES, *_NOTES):
        before, after = trial.spread(base, counter), trial.spread(mode, counter)
        if (name, counter) in _FLUSHES or before.greatest or after.greatest:
            table.append([name, _counts(before), _counts(after), ""])
    return table


def doubts(trial: Trial, setting: Setting) -> str:
    """Say what makes the runtimes doubtful; empty if nothing."""
    base = setting.modes[0]
    wide = [name for name in setting.modes if trial.runtime(name).wide]
    wide += [
        f"{base} / {name}"
        for name in setting.modes[1:]
        if trial.comparable(name) and trial.ratio(base, name).wide
    ]
    busy = setting.load.busy(setting.cpus)
    if not (wide or busy):
        return ""
    parts = []
    if busy:
        parts.append(f"This machine was busy: {setting.load.text()}.")
    found = trial.runtime(max(setting.modes, key=lambda name: _width(trial.runtime(name))))
    low, high = (value / found.median for value in (found.least, found.greatest))
    parts.append(f"Runtimes spread from {low:.2f} to {high:.2f} times their median.")
    parts.append(
        "They mean little: measure again when the machine is idle."
        if busy
        else "They mean little: take more --rounds, or a program that runs longer."
    )
    return " ".join(parts)


def _tell_why_not(trial: Trial, mode: str) -> None:
    """Say that a mode did nothing, and why: which mappings it had, and what flushed them."""
    chosen = modes.parse(mode).mechanisms
    names = " and ".join(m.title for m in chosen)
    skip, narrow = any(m.skipped for m in chosen), any(m.narrowed for m in chosen)
    did = "did" if skip and narrow else "skipped" if skip else "narrowed"
    say(f"{names} {did} nothing, so there is no ratio of runtimes.")
    medians = trial.medians(mode)
    told = False
    for group in reasons.GROUPS:
        found = reasons.table(group, medians)
        if found:
            told |= not group.prefix.startswith(modes.SHARERS.prefix)
            print_table(reasons.COLUMNS, found, title=f"Each run: {group.title}", numbers_from=2)
    if narrow:
        say(_why_nothing_narrowed(medians))
    if not skip:
        return
    mapped = medians.get(reasons.GROUPS[0].good, 0)
    unmapped = any(reasons.GROUPS[1].has(name) and value for name, value in medians.items())
    if not told:
        say("It mapped no file in a way that the mode is for.")
    elif mapped and not unmapped:
        say("It unmapped none of its mappings before it ended.")


def _why_nothing_narrowed(medians: Mapping[str, int]) -> str:
    """Say why no flush went to fewer CPUs than all that run the program."""
    if any(medians.get(name) for name in ("sharers_fill", "sharers_flush_all")):
        return "It noted what CPUs used, but the program did nothing that flushes a range."
    return (
        "It begins with a second thread, as one alone interrupts nobody: the program made none, "
        "is a real-time one, or has locked its memory."
    )


def summary(trial: Trial, setting: Setting) -> dict[str, object]:
    """Return the same for JSON, by mode."""
    base = setting.modes[0]
    found: dict[str, object] = {}
    for mode in setting.modes:
        compared = mode != base and trial.comparable(mode)
        found[mode] = {
            "received": trial.spread(mode, RECEIVED if trial.has(RECEIVED) else INTERRUPTS).median,
            "skipped": trial.skipped(mode).median,
            "narrowed": trial.narrowed(mode).median,
            "usec": asdict(trial.runtime(mode)),
            "ratio": asdict(trial.ratio(base, mode)) if compared else None,
        }
    return found


def _width(spread: Spread) -> float:
    return spread.greatest / spread.least


def _counts(spread: Spread) -> str:
    return f"{number(spread.median)} ({number(spread.least)}..{number(spread.greatest)})"


def _times(spread: Spread, unit: float, digits: int) -> str:
    middle, least, greatest = (
        f"{value / unit:.{digits}f}" for value in (spread.median, spread.least, spread.greatest)
    )
    return f"{middle} ({least}..{greatest})"
