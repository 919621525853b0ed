# SPDX-License-Identifier: GPL-2.0-only
"""Shows results again: munmap's table and plots; the table and the page of suites, and texts with
their figures in them.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from ceasefire.bench import plan, records
from ceasefire.bench.analyze import Figures, Ratio, figures_of, settled
from ceasefire.bench.store import LINES
from ceasefire.bench.suite import results, verbs
from ceasefire.errors import Failure, UsageError
from ceasefire.output import print_table, say

_COLUMNS = (
    "case",
    "CPUs",
    "processes",
    "received/op off",
    "on",
    "on/off",
    "I/O on/off",
    "compute on/off",
    "I/O on/ideal",
    "compute on/ideal",
)
TABLE = "table.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench report`."""
    parser.add_argument("folder", nargs="+", metavar="DIR", help="--out of `bench run` or `munmap`")
    parser.add_argument("--html", metavar="FILE", help="write a page of all folders of `bench run`")
    parser.add_argument("--markdown", metavar="FILE", help="write a text with figures of them")
    parser.add_argument(
        "--template", metavar="FILE", help="of that text (default: its name and .j2)"
    )


def main(args: argparse.Namespace) -> int:
    """Show the results of folders again, with fresh plots or a fresh page."""
    folders = [Path(name) for name in args.folder]
    for folder in folders:
        if not (folder / LINES).is_file():
            raise UsageError(f"{folder} has no {LINES}: name the --out folder of a `bench` run")
    of_suites = [folder for folder in folders if results.is_suite(folder / LINES)]
    if (args.html or args.markdown) and of_suites != folders:
        raise UsageError("--html and --markdown are for folders of `bench run` only")
    if args.template and not args.markdown:
        raise UsageError("--template is for --markdown")
    status = 0
    for folder in folders if not args.markdown else ():
        status = max(status, verbs.show(folder) if folder in of_suites else show(folder))
    if args.html:
        # Loads a template engine: only when there is a page to write.
        from ceasefire.bench.suite import page  # noqa: PLC0415

        page.write([results.read(folder) for folder in folders], Path(args.html))
        say(f"page: {args.html}")
    if args.markdown:
        write_text(folders, Path(args.markdown), args.template)
    return status


def write_text(folders: Sequence[Path], path: Path, template: str | None) -> None:
    """Write a text from its template. What it calls the results are the names of their folders."""
    from ceasefire.bench.suite import markdown  # noqa: PLC0415

    found = {folder.resolve().name: results.read(folder) for folder in folders}
    if len(found) < len(folders):
        raise UsageError("--markdown: two folders have the same name")
    markdown.write(found, Path(template or f"{path}.j2"), path)
    say(f"text: {path}")


def show(folder: Path) -> int:
    """Print the table of a folder, write it and the plots there; 1 when data was wrong."""
    lines = records.read_file(folder / LINES)
    figures = figures_of(records.munmap_samples(lines))
    if not figures:
        raise Failure(f"{folder / LINES} has no samples of munmap-bench")
    print_figures(figures, lines)
    with (folder / TABLE).open("w", encoding="utf-8") as file:
        print_figures(figures, lines, file)
    # Loads in a second or so: only when there is something to draw.
    from ceasefire.bench import plot  # noqa: PLC0415

    plots = plot.draw_all(figures, folder)
    say(f"plots and raw lines: {folder} ({', '.join(path.name for path in plots)})")
    return 1 if any(figure.wrong for figure in figures) else 0


def print_figures(
    figures: Sequence[Figures], lines: Sequence[Mapping[str, Any]], file: TextIO | None = None
) -> None:
    """Print the table and the notes that a reader needs to judge it."""
    rows = [
        [
            f"{figure.case}: {plan.CASES[figure.case]}",
            str(figure.cpus),
            str(figure.processes),
            _count(figure.received_off),
            _count(figure.received_on),
            _percent(figure.received_percent),
            _ratio(figure.io_vs_off),
            _ratio(figure.compute_vs_off),
            _ratio(figure.io_vs_ideal),
            _ratio(figure.compute_vs_ideal),
        ]
        for figure in figures
    ]
    print_table(_COLUMNS, rows, file=file)
    for note in notes(figures, lines):
        say(note, file=file)


def notes(figures: Sequence[Figures], lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what must be said beside the table."""
    hosts = [line for line in lines if line["type"] == "host"]
    said = [
        "Ratios are medians of the rounds (lowest..highest); received is the sum of all rounds."
    ]
    if hosts:
        where = str(hosts[0]["where"])
        said.append(f"Measured {where}, {hosts[0]['host_cpus']} CPUs in the host.")
        if "emulated" in where:
            said.append("Emulated CPUs: counts are exact, ratios are an indication, times nothing.")
    samples = records.munmap_samples(lines)
    if any(sample.mode == "on" for sample in samples):
        said.append(f"With MAP_FPR, in all samples together: {settled(samples)}.")
    if not all(figure.comparable for figure in figures):
        said.append("No ratios (-) where the guest has more CPUs than the host.")
    if any(figure.wrong for figure in figures):
        said.append("WRONG DATA was read: see the field 'wrong' of the raw lines.")
    return said


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:.5f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} %"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio.median:.2f} ({ratio.low:.2f}..{ratio.high:.2f})"
