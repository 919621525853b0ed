# SPDX-License-Identifier: GPL-2.0-only
"""Count shootdowns and what was done instead of them.

With a command: what was counted while it ran, machine-wide; printed on stderr, and the exit
status is the command's. With -I: what was counted in each interval. Otherwise: since boot. Every
kernel for several CPUs counts the shootdowns that it receives, one of ceasefire also what it did
instead, and to whom others went. --openmetrics and --textfile are for systems that collect metrics.
The exit status is 77 where the kernel counts nothing of this.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from ceasefire import counters, modes, reasons
from ceasefire.cmdline import add_command, command_of
from ceasefire.errors import Failure, UsageError
from ceasefire.files import write_whole
from ceasefire.launch.child import run_command
from ceasefire.launch.executable import missing
from ceasefire.metrics import families, text
from ceasefire.output import number, progress, say
from ceasefire.tables import print_table

SCHEMA = 1
# What the textfile collector of node_exporter reads, and nothing else.
_TEXTFILE = ".prom"
# What stands in the table for the counters that every reader wants first.
_WORDS = {
    counters.SENT: "shootdowns sent",
    counters.RECEIVED: "shootdowns received",
    counters.INTERRUPTS: "interrupts for shootdowns",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire stat`."""
    parser.add_argument("-p", "--pid", type=int, metavar="PID", help="also describe this process")
    parser.add_argument("-I", "--interval", type=int, metavar="MS", help="print every MS ms")
    parser.add_argument("-n", "--count", type=int, metavar="N", help="stop after N intervals")
    parser.add_argument("-a", "--all", action="store_true", help="show counters that are zero too")
    parser.add_argument("--json", action="store_true", help="print JSON, an object a line")
    parser.add_argument(
        "--openmetrics", action="store_true", help="print all counters in the format OpenMetrics"
    )
    parser.add_argument(
        "--textfile",
        metavar="FILE",
        help=f"write them to a file for node_exporter, whose name ends with {_TEXTFILE}",
    )
    add_command(parser)


def main(args: argparse.Namespace) -> int:
    """Count and print."""
    command = command_of(args, "", optional=True)
    if args.openmetrics or args.textfile is not None:
        return _metrics(args, command)
    if command and (args.pid is not None or args.interval is not None):
        raise UsageError("a command goes with neither -p nor -I: leave those out")
    if args.count is not None and args.interval is None:
        raise UsageError("-n counts intervals: give -I too")
    for value, name in ((args.interval, "-I"), (args.count, "-n"), (args.pid, "-p")):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value}: it is at least 1")
    before = counters.snapshot()
    if command and (problem := missing(command[0])):
        progress(f"ceasefire stat: {problem[0]}")
        return problem[1]
    if command:
        started = time.monotonic()
        status = run_command(command, "ceasefire stat")
        seconds = time.monotonic() - started
        delta = counters.difference(before, counters.snapshot())
        _report(args, delta, seconds, sys.stderr)
        return status
    if args.interval is not None:
        return _intervals(args, before)
    _report(args, before, None, sys.stdout)
    return 0


def _metrics(args: argparse.Namespace, command: list[str]) -> int:
    """Print or write what a collector asks for: everything since boot, once."""
    way = "--openmetrics" if args.openmetrics else "--textfile"
    others = {
        "a command": bool(command),
        "-p": args.pid is not None,
        "-I": args.interval is not None,
        "-n": args.count is not None,
        "--json": args.json,
        "--textfile": args.openmetrics and args.textfile is not None,
    }
    for other in (name for name, given in others.items() if given):
        raise UsageError(f"{way} has all counters since boot, so leave {other} out")
    if args.openmetrics:
        sys.stdout.write(text.openmetrics(families.collect()))
        return 0
    path = Path(args.textfile)
    if path.suffix != _TEXTFILE:
        raise UsageError(
            f"--textfile {path}: node_exporter reads only names that end with {_TEXTFILE}"
        )
    found = text.prometheus(families.collect())
    try:
        # For the user of node_exporter, whoever that is.
        write_whole(path, found, mode=0o644)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from None
    return 0


def _intervals(args: argparse.Namespace, before: dict[str, int]) -> int:
    """Print differences until interrupted, counted out, or the process is gone."""
    step = args.interval / 1000
    last = time.monotonic()
    shown = 0
    try:
        while args.count is None or shown < args.count:
            time.sleep(step)
            now, after = time.monotonic(), counters.snapshot()
            _report(args, counters.difference(before, after), now - last, sys.stdout)
            sys.stdout.flush()
            before, last, shown = after, now, shown + 1
    except KeyboardInterrupt:
        pass
    except UsageError:
        if not shown:
            raise
    return 0


def _report(
    args: argparse.Namespace, values: dict[str, int], seconds: float | None, stream: TextIO
) -> None:
    facts = counters.process_facts(args.pid) if args.pid is not None else None
    present = counters.gauges()
    switched = {m.name: m.enabled() for m in modes.shown() if m.present()}
    if args.json:
        why = [
            asdict(reason)
            for group in reasons.GROUPS
            for reason in reasons.reasons(group, values)
            if reason.count or args.all
        ]
        record: dict[str, object] = {
            "schema": SCHEMA,
            "counters": values,
            "reasons": why,
            "mechanisms": switched,
            "now": present,
        }
        if seconds is not None:
            record["seconds"] = round(seconds, 6)
        if facts is not None:
            record["process"] = asdict(facts)
        print(json.dumps(record), file=stream)
        return
    title = "since boot" if seconds is None else f"in {seconds:.3f} s"
    columns = ["counter", "count"] if seconds is None else ["counter", "count", "per second"]
    rows = []
    for name, value in values.items():
        if (value or args.all or name in _WORDS) and not reasons.is_reason(name):
            words = _WORDS.get(name) or reasons.NAMES.get(name)
            row = [f"{words} ({name})" if words else name, number(value)]
            rows.append(row if seconds is None else [*row, number(round(value / seconds))])
    print_table(columns, rows, title=title, file=stream)
    columns = [*reasons.COLUMNS, "share"]
    for group in reasons.GROUPS:
        found = reasons.table(group, values, everything=args.all, shares=True)
        if found:
            print_table(columns, found, title=group.title, numbers_from=2, file=stream)
    rows = [[m.title, _state(m)] for m in modes.shown() if m.present()]
    rows += [[f"{name} now", number(value)] for name, value in present.items()]
    if facts is not None:
        rows += _rows_of_process(facts, switched)
    if rows:
        title = "now" if facts is None else f"now, process {facts.pid}"
        print_table(["what", "value"], rows, title=title, file=stream)
    if not switched:
        _tell_of_kernel(values, stream)


def _state(mechanism: modes.Mechanism) -> str:
    """Say whether a mechanism is on, for whom, and why it does nothing all the same."""
    if not mechanism.enabled():
        return "off"
    if why := mechanism.obstacle():
        # What to do is for those who ask for it.
        return f"on, but {why.partition(':')[0]}"
    return "on for all programs" if mechanism.for_all() else "on"


def _rows_of_process(
    facts: counters.ProcessFacts, mechanisms: Mapping[str, bool]
) -> list[list[str]]:
    tables = [["page tables, KiB", number(facts.page_tables_kib)]]
    if not mechanisms:
        return tables
    if modes.SHARERS.name in mechanisms:
        # They have what each CPU noted; it begins with the second thread.
        tables = [["threads", number(facts.threads)], *tables]
    return [
        ["recycling mappings", number(facts.mappings)],
        ["their size, KiB", number(facts.mapped_kib)],
        *tables,
        ["parked, KiB", number(facts.parked_kib)],
    ]


def _tell_of_kernel(values: dict[str, int], stream: TextIO) -> None:
    """Say what this kernel does not count."""
    if counters.SENT not in values:
        say("Kernels with CONFIG_DEBUG_TLBFLUSH count the shootdowns sent, too.", file=stream)
    say("This kernel is not ceasefire's: it skips no shootdowns.", file=stream)
