# SPDX-License-Identifier: GPL-2.0-only
"""Writes the results of suites as one HTML file that needs nothing else: no network, no script.

Each benchmark has a section: shootdowns for each operation, ratios with their intervals, both over
CPUs, compute that was lost, latencies; a table has what the paper measured beside ours. It says in
words what a figure means here and what not.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ceasefire import __version__, modes
from ceasefire.bench.catalog.spec import BASELINE
from ceasefire.bench.figures import paper
from ceasefire.bench.figures.compare import Comparison, Interval, comparisons
from ceasefire.bench.figures.copies import Copies, copies
from ceasefire.bench.figures.ideal import lost
from ceasefire.bench.figures.paper import FEW_ROUNDS, rounds_text
from ceasefire.bench.latency import added
from ceasefire.bench.report import charts
from ceasefire.bench.report.charts import kind, mode_text
from ceasefire.bench.report.table import notes, ratio_text
from ceasefire.bench.results.store import Results, works
from ceasefire.errors import UsageError
from ceasefire.files import write_whole
from ceasefire.pages import render as render_template

GROUPS = {
    "application": "Applications",
    "micro": "What the kernel does, in a loop",
    "overhead": "What it costs those who do not use it",
}


@dataclass(frozen=True)
class Picture:
    """title: what it shows. svg: the picture."""

    title: str
    svg: Markup


@dataclass(frozen=True)
class Section:
    """What the page says of one benchmark in one folder. anchor: what links name. pictures: none
    is empty. papers: those whose tables have it.
    """

    anchor: str
    name: str
    title: str
    pictures: tuple[Picture, ...]
    verdicts: tuple[str, ...]
    papers: tuple[paper.Paper, ...]
    trouble: tuple[str, ...]


def write(results: Sequence[Results], path: Path) -> None:
    """Write the page. Nothing is left of it when that fails."""
    text = render(results)
    try:
        write_whole(path, text)
    except OSError as error:
        raise UsageError(f"--html {path}: {error.strerror}") from None


def render(results: Sequence[Results]) -> str:
    """Return the page."""
    groups: dict[str, list[Section]] = {}
    said: list[str] = []
    summary: list[dict[str, str]] = []
    lines: dict[paper.Paper, list[tuple[str, paper.Beside]]] = {p: [] for p in paper.PAPERS}
    # Several folders may have the same benchmark.
    seen: Counter[str] = Counter()
    for result in results:
        compared = comparisons(result)
        said += notes(result, compared)
        facts = paper.facts(result.suite)
        costs = copies(result)
        for name in dict.fromkeys(c.benchmark for c in compared):
            own = [c for c in compared if c.benchmark == name]
            about = facts.get(name, {})
            seen[name] += 1
            anchor = name if seen[name] == 1 else f"{name}-{seen[name]}"
            group = GROUPS.get(about.get("group", ""), "Others")
            beside = {p: paper.beside(name, about, own, p) for p in lines}
            for each, line in beside.items():
                lines[each] += [(anchor, line)] if line is not None else []
            groups.setdefault(group, []).append(
                section(
                    anchor,
                    name,
                    about,
                    own,
                    pictures(name, own, result),
                    papers=tuple(p for p, line in beside.items() if line is not None),
                    costs=[c for c in costs if c.benchmark == name],
                )
            )
            summary += [{**summary_row(c, about), "anchor": anchor} for c in own if works(c.mode)]
    ordered = {title: groups[title] for title in (*GROUPS.values(), "Others") if title in groups}
    return str(
        render_template(
            "bench/report/page.html.j2",
            version=__version__,
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            groups=ordered,
            summary=summary,
            beside={p: rows for p, rows in lines.items() if rows},
            notes=list(dict.fromkeys(said)),
            machines=machines(results),
            emulated=any(emulated(r) for r in results),
            key=key(results),
        )
    )


def key(results: Sequence[Results]) -> dict[str, list[str]]:
    """Return the modes that there are, by the class they are drawn in; all others are one."""
    names = dict.fromkeys([BASELINE, *(s.mode for r in results for s in r.samples)])
    found: dict[str, list[str]] = {}
    for name in names:
        drawn = kind(name)
        found.setdefault(drawn, [] if drawn != "other" else ["something else"])
        found[drawn] += [name] if drawn != "other" else []
    return found


def section(
    anchor: str,
    name: str,
    about: dict[str, Any],
    compared: Sequence[Comparison],
    drawn: Sequence[Picture],
    *,
    papers: tuple[paper.Paper, ...],
    costs: Sequence[Copies] = (),
) -> Section:
    """Return what is said of a benchmark. papers: whose tables have it. costs: of sharers."""
    return Section(
        anchor=anchor,
        name=name,
        title=str(about.get("title", name)),
        pictures=tuple(drawn),
        verdicts=(
            *(verdict(c, about) for c in compared),
            *(f"{c.cpus} CPUs, {mode_text(c.mode)}: {c.text()}." for c in costs),
        ),
        papers=papers,
        trouble=tuple(text for c in compared for text in troubles(c)),
    )


def pictures(name: str, compared: Sequence[Comparison], result: Results) -> list[Picture]:
    """Draw all that there is of a benchmark."""
    drawn = [
        Picture(
            "Shootdowns received for each operation, over CPUs",
            charts.shootdowns_by_cpus(name, compared),
        ),
        Picture("Shootdowns received for each operation", charts.shootdown_bars(name, compared)),
        *(
            Picture(f"{metric}: ratio to off, over CPUs", svg)
            for metric, svg in charts.ratios_by_cpus(name, compared).items()
        ),
        Picture("Ratio to off", charts.ratio_bars(name, compared, "ratios")),
        Picture(
            "Compute lost to shootdowns, of what is possible without any",
            charts.lost_bars(name, [found for found in lost(result) if found.benchmark == name]),
        ),
    ]
    of_off = "times the median of off" if emulated(result) else "time"
    for cpus in dict.fromkeys(c.cpus for c in compared if c.comparable):
        own = [s for s in result.samples if (s.benchmark, s.cpus) == (name, cpus)]
        found = {
            mode: added(s.histogram for s in own if s.mode == mode and not s.failed)
            for mode in dict.fromkeys(s.mode for s in own)
            if mode == BASELINE or works(mode)
        }
        svg = charts.latency_plot(
            name,
            cpus,
            {mode: some for mode, some in found.items() if some is not None},
            relative=emulated(result),
        )
        drawn.append(Picture(f"Latency, {cpus} CPUs: share of the operations by {of_off}", svg))
    drawn.append(Picture("Latency, ratio to off", charts.ratio_bars(name, compared, "latency")))
    return [picture for picture in drawn if picture.svg]


def emulated(results: Results) -> bool:
    """Say whether CPUs were emulated, so that times mean nothing."""
    return any("emulated" in str(host.get("where")) for host in results.hosts)


def verdict(c: Comparison, about: dict[str, Any]) -> str:
    """Say in a sentence what came of one mode."""
    parts = []
    share = c.shootdowns.share if c.shootdowns is not None else None
    if share is not None and c.mode == modes.STOCK.name:
        parts.append(f"{share:.2f} times the shootdowns of off for each operation")
    elif share is not None:
        parts.append(f"{100 * share:.2f} % of the shootdowns for each operation are left")
    elif c.shootdowns is not None:
        parts.append("there were hardly any shootdowns in mode off")
    better = {m["name"]: m.get("better", "more") for m in about.get("metrics", [])}
    parts += [f"{m}: {said_of(i, better.get(m, 'more'))}" for m, i in c.ratios.items()]
    text = "; ".join(parts) or "nothing could be compared"
    return f"{c.cpus} CPUs, {mode_text(c.mode)}: {text}."


def said_of(ratio: Interval, better: str) -> str:
    """Say whether a ratio is a difference, and in which direction."""
    if 0 < len(ratio.values) < FEW_ROUNDS:
        return f"{ratio.middle:.2f} of off, in {rounds_text(ratio)} only"
    if ratio.contains(1.0):
        return f"no difference outside the interval ({ratio_text(ratio)})"
    good = (ratio.middle > 1) == (better == "more")
    return f"{ratio_text(ratio)} of off, {'better' if good else 'worse'}"


def troubles(c: Comparison) -> list[str]:
    """Return what must not be overlooked."""
    found = [f"failed: {text}" for text in c.failed]
    if c.wrong:
        found.append(f"wrong data: {c.wrong}")
    if c.different:
        found.append(f"{c.mode}: other output in {c.different} samples")
    return found


def summary_row(c: Comparison, about: dict[str, Any]) -> dict[str, str]:
    """Return the line of a benchmark in the table at the top."""
    share = c.shootdowns.share if c.shootdowns is not None else None
    name, ratio = next(iter(c.ratios.items()), ("", None))
    spread = "" if ratio is None else f"({ratio.low:.2f}..{ratio.high:.2f})"
    if ratio is not None and len(ratio.values) < FEW_ROUNDS:
        spread = f"{rounds_text(ratio)} only"
    return {
        "name": c.benchmark,
        "title": str(about.get("title", c.benchmark)),
        "cpus": str(c.cpus),
        "mode": c.mode,
        "left": "-" if share is None else f"{100 * share:.2f} %",
        "ratio": "-" if ratio is None else f"{ratio.middle:.2f}",
        "spread": spread,
        "metric": name,
        "state": "bad" if troubles(c) else "good",
    }


def machines(results: Sequence[Results]) -> list[str]:
    """Say what was measured on, a line for each machine with the commits that were measured."""
    found: dict[str, list[str]] = {}
    for result in results:
        where, commit = machine(result)
        found.setdefault(where, []).append(commit)
    return [f"{where}; {', '.join(dict.fromkeys(commits))}" for where, commits in found.items()]


def machine(results: Results) -> tuple[str, str]:
    """Return what it was measured on, and the commit with its day."""
    host = _last(results.hosts, lambda host: host.get("kernel_kind") != modes.STOCK.kernel)
    found = _last(
        results.environments, lambda found: bool(found.get("mechanisms") or found.get("fpr"))
    )
    parts = [
        str(host.get("where", "")),
        f"kernel {found.get('kernel', '?')}",
        str(found.get("cpu", "")),
        f"{host.get('host_cpus', '?')} CPUs in the host",
    ]
    commit = f"commit {host.get('commit') or 'unknown'}"
    day = str(host.get("date", "")).partition("T")[0]
    return ", ".join(part for part in parts if part), f"{commit} of {day}" if day else commit


def _last(
    records: Sequence[Mapping[str, Any]], wanted: Callable[[Mapping[str, Any]], bool]
) -> Mapping[str, Any]:
    """Return the last one that is wanted, else the last one, else an empty one."""
    return next(iter([*filter(wanted, reversed(records)), *reversed(records)]), {})
