# SPDX-License-Identifier: GPL-2.0-only
"""The page of a recording as text, and the tables that it shares with the HTML page."""

from dataclasses import asdict, dataclass
from typing import TextIO

from ceasefire.output import number, say
from ceasefire.record import causes, forecast
from ceasefire.record.mappings import WORDS
from ceasefire.record.model import Calls, Recording, Sum, to_json
from ceasefire.tables import print_table

_SITES = 10
_FILES = 10
_FRAMES = 3
_NAMELESS = 5
# Shootdowns of others are worth a line from this share of the program's own on.
_MANY = 0.1
_EMULATED = "Times are left out: the CPUs are emulated."


@dataclass(frozen=True)
class Table:
    """Rows of text below their column names; the first `texts` columns are not numbers."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    texts: int = 1


def show(recording: Recording, stream: TextIO) -> None:
    """Print the page."""
    for table in tables(recording):
        title = table.title
        print_table(table.columns, table.rows, title=title, numbers_from=table.texts, file=stream)
        say("", file=stream)
    for line in [*notes(recording), *conclusion(recording)]:
        say(line, file=stream)


def conclusion(recording: Recording) -> list[str]:
    """Return the forecast and the advice."""
    found = forecast.forecast(recording)
    return [
        forecast.sentence(found),
        *forecast.spread(found),
        *forecast.advice(recording, found),
    ]


def to_object(recording: Recording) -> dict[str, object]:
    """Return everything for JSON."""
    found = forecast.forecast(recording)
    return {
        **to_json(recording),
        "forecast": {
            **asdict(found),
            "worth": found.worth,
            "agree": found.agree,
            "few": found.few,
        },
        "advice": forecast.advice(recording, found),
        "notes": notes(recording),
    }


def title_of(recording: Recording) -> str:
    """Return what was recorded."""
    words = recording.environment.command
    return f"process {words[1]}" if words[:1] == ["-p"] else " ".join(words)


def tables(recording: Recording) -> list[Table]:
    """Return all tables that have something to say."""
    found = [_causes(recording)]
    if len(recording.runs) > 1:
        found.append(_runs(recording))
    if recording.why_not:
        found.append(_why_not(recording))
    if len(recording.programs) > 1:
        found.append(_sums("by program", "program", recording.programs, recording))
    if any(recording.files):
        found.append(_files(recording))
    if recording.sites:
        found.append(_call_sites(recording))
    if recording.calls and not recording.environment.emulated:
        found.append(_calls(recording))
    return found


def _causes(recording: Recording) -> Table:
    environment = recording.environment
    where = f"{environment.cpus} CPUs, Linux {environment.release}"
    if len(recording.runs) > 1:
        where = f"{len(recording.runs)} runs, {where}"
    if environment.emulated:
        where += ", emulated by QEMU"
    title = f"shootdowns of {title_of(recording)} ({where})"
    named = {causes.label(name): part for name, part in recording.causes.items()}
    table = _sums(title, "cause", named, recording)
    if not table.rows:
        table.rows.append(["(no shootdown was sent)", *[""] * (len(table.columns) - 1)])
    elif len(table.rows) > 1:
        table.rows.append(_row("all", recording.total(), recording))
    return table


def _sums(title: str, what: str, parts: dict[str, Sum], recording: Recording) -> Table:
    ordered = sorted(parts.items(), key=lambda item: (-item[1].received, -item[1].sent, item[0]))
    columns = [what, "received", "share", "FPR saves", "sent"]
    if not recording.environment.emulated:
        columns.append("us each")
    return Table(title, columns, [_row(name, part, recording) for name, part in ordered])


def _row(name: str, part: Sum, recording: Recording) -> list[str]:
    share = 100 * part.received / max(recording.total().received, 1)
    row = [name, number(part.received), f"{share:.1f} %"]
    row += [number(round(part.saved_received)), number(part.sent)]
    if not recording.environment.emulated:
        row.append(f"{part.wait_usec / part.waits:.1f}" if part.waits else "")
    return row


def _runs(recording: Recording) -> Table:
    """Return the table of runs: how much they differ."""
    rows = []
    for index, run in enumerate(recording.runs, 1):
        share = f"{100 * run.removed / run.received:.0f} %" if run.received else ""
        rows.append([str(index), number(run.received), number(round(run.removed)), share])
        rows[-1].append(number(run.sent))
    return Table("each run", ["run", "received", "FPR saves", "", "sent"], rows)


def _why_not(recording: Recording) -> Table:
    ordered = sorted(recording.why_not.items(), key=lambda item: (-item[1], item[0]))
    rows = [[WORDS.get(reason, reason), number(count)] for reason, count in ordered]
    return Table("munmap that flushes with FPR, too", ["why", "sent"], rows)


def _files(recording: Recording) -> Table:
    ordered = sorted(recording.files.items(), key=lambda item: (-item[1], item[0]))
    rows = [[path or "(not seen)", number(count)] for path, count in ordered[:_FILES]]
    return Table("files whose munmap FPR spares", ["file", "sent"], rows)


def _call_sites(recording: Recording) -> Table:
    rows = []
    for site in recording.sites[:_SITES]:
        place = " < ".join(reversed(site.frames[-_FRAMES:])) or "(no stack)"
        words = [causes.label(site.cause), site.program, place]
        rows.append([*words, number(site.sum.sent), number(round(site.sum.saved))])
    return Table("call sites", ["cause", "program", "from", "sent", "FPR saves"], rows, texts=3)


def _calls(recording: Recording) -> Table:
    ordered = sorted(recording.calls.items(), key=lambda item: -item[1].flushing)
    rows = [
        [
            name,
            number(part.flushing),
            _mean(part.flushing_usec, part.flushing),
            number(part.quiet),
            _mean(part.quiet_usec, part.quiet),
        ]
        for name, part in ordered
        if _counts(part)
    ]
    columns = ["call", "with shootdown", "us each", "without", "us each"]
    return Table("time of the calls", columns, rows)


def _counts(part: Calls) -> bool:
    return part.flushing > 0


def _mean(total: float, count: int) -> str:
    return f"{total / count:.1f}" if count else ""


def notes(recording: Recording) -> list[str]:
    """Return what the reader has to know about the numbers."""
    lines = []
    environment = recording.environment
    total = recording.total()
    if recording.lost:
        lines.append(
            f"{recording.lost:,} events did not fit into the buffers, so all counts are too low: "
            "use --buffer with a larger size."
        )
    if recording.unread:
        lines.append(f"{recording.unread:,} lines of the trace could not be read.")
    if environment.emulated:
        lines.append(_EMULATED)
    elif total.waits:
        lines.append(
            f"Senders waited about {total.wait_usec / 1000:,.1f} ms in all, "
            f"in {environment.seconds:,.2f} s: from sending until the last CPU had flushed. "
            "Recording makes this longer."
        )
    if forecast.busy(recording):
        lines.append(
            f"The machine was busy before (load {environment.load:.1f}, {environment.cpus} CPUs): "
            "fewer threads ran at the same time than otherwise, so fewer CPUs were interrupted."
        )
    others = (recording.machine_sent or 0) - total.sent
    if others > _MANY * total.sent and not recording.lost:
        lines.append(
            f"Meanwhile {others:,} more shootdowns were sent on this machine, "
            "by other programs or the kernel."
        )
    lines += recording.remarks
    lines += [
        f"No names of functions in {path}: {why}."
        for path, why in list(recording.nameless.items())[:_NAMELESS]
    ]
    if len(recording.nameless) > _NAMELESS:
        lines.append(f"No names in {len(recording.nameless) - _NAMELESS} more files.")
    if "stacktrace" in recording.missing:
        lines.append("This kernel records no stacks of its own: causes are those of system calls.")
    if "exceptions:page_fault_user" in recording.missing:
        lines.append("This kernel does not tell page faults: files that are written look clean.")
    return lines
