# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench compare` and `report`: earlier results as a table, a page or a text."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from ceasefire.bench.catalog.spec import BASELINE
from ceasefire.bench.figures import compare, copies, ideal
from ceasefire.bench.report import markdown, page
from ceasefire.bench.report import table as tables
from ceasefire.bench.results import store
from ceasefire.errors import Failure, UsageError
from ceasefire.output import say
from ceasefire.tables import print_table


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench compare`."""
    parser.add_argument("folder", nargs="+", metavar="DIR", help="--out of a `bench` run")
    parser.add_argument("--json", action="store_true", help="print JSON, an object a comparison")
    parser.add_argument(
        "--against", default=BASELINE, metavar="MODE", help="compare with this mode (off)"
    )


def compare_main(args: argparse.Namespace) -> int:
    """Show the tables of some folders again."""
    folders = [Path(name) for name in args.folder]
    if not args.json:
        return max(table(folder, args.against) for folder in folders)
    for folder in folders:
        for c in compare.comparisons(store.read(folder), args.against):
            print(json.dumps({"folder": str(folder), **_record(c, args.against)}))
    return 0


def _record(c: compare.Comparison, against: str) -> dict[str, object]:
    shot = c.shootdowns
    return {
        "benchmark": c.benchmark,
        "mode": c.mode,
        "against": against,
        "cpus": c.cpus,
        "rounds": c.rounds,
        "ratios": {m: [i.middle, i.low, i.high] for m, i in c.ratios.items()},
        "latency": {q: [i.middle, i.low, i.high] for q, i in c.latency.items()},
        "received_per_operation": None if shot is None else [shot.base, shot.own],
        "received_share": None if shot is None else shot.share,
        "wrong": c.wrong,
        "different": c.different,
        "failed": list(c.failed),
        "outliers": list(c.outliers),
    }


def table(folder: Path, against: str = BASELINE) -> int:
    """Print the tables of a folder; return 1 when something was wrong or failed."""
    found = store.read(folder)
    compared = compare.comparisons(found, against, alone=True)
    if not compared:
        raise Failure(f"{folder} has nothing to compare with mode {against} yet")
    status = tables.show(found, compared, against)
    tables.show_copies(copies.copies(found) if against == BASELINE else [])
    near = ideal.reached(found) if against == BASELINE else []
    if near:
        rows = [
            [r.benchmark, str(r.cpus), r.mode, r.metric, r.ideal, tables.ratio_text(r.ratio)]
            for r in near
        ]
        print_table(
            ("benchmark", "CPUs", "mode", "of what", "ideal", "ratio to it"),
            rows,
            numbers_from=5,
            title="How near to what is possible without shootdowns",
        )
    return status


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench report`."""
    parser.add_argument("folder", nargs="+", metavar="DIR", help="--out of a `bench` run")
    parser.add_argument("--html", metavar="FILE", help="write a page of all folders")
    parser.add_argument("--markdown", metavar="FILE", help="write a text with figures of them")
    parser.add_argument(
        "--template", metavar="FILE", help="of that text (default: its name and .j2)"
    )


def report_main(args: argparse.Namespace) -> int:
    """Show the results of folders again, with a fresh page or text."""
    folders = [Path(name) for name in args.folder]
    if args.template and not args.markdown:
        raise UsageError("--template is for --markdown")
    status = 0
    for folder in folders if not args.markdown else ():
        status = max(status, table(folder))
    if args.html:
        write_page(folders, Path(args.html))
    if args.markdown:
        write_text(folders, Path(args.markdown), args.template)
    return status


def write_page(folders: Sequence[Path], path: Path) -> None:
    """Write the page of some folders."""
    page.write([store.read(folder) for folder in folders], path)
    say(f"page: {path}")


def write_text(folders: Sequence[Path], path: Path, template: str | None) -> None:
    """Write a text from its template, which calls results by the names of their folders."""
    found = {folder.resolve().name: store.read(folder) for folder in folders}
    if len(found) < len(folders):
        raise UsageError("--markdown: two folders have the same name")
    markdown.write(found, Path(template or f"{path}.j2"), path)
    say(f"text: {path}")
