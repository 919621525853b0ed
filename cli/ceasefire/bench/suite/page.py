# SPDX-License-Identifier: GPL-2.0-only
"""Writes the results of suites as one HTML file that needs nothing else: no network, no script.

Each benchmark has a section: shootdowns for each operation, ratios with their intervals, and what
the paper has for comparison. It says in words what a figure means here and what not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2

from ceasefire import __version__
from ceasefire.bench.suite.compare import Comparison, Interval, comparisons
from ceasefire.bench.suite.results import Results
from ceasefire.bench.suite.svg import Bar, bars
from ceasefire.bench.suite.verbs import notes, ratio_text
from ceasefire.errors import UsageError

GROUPS = {
    "application": "Applications",
    "micro": "What the kernel does, in a loop",
    "overhead": "What it costs those who do not use it",
}
ON = "on"


@dataclass(frozen=True)
class Section:
    """What the page says of one benchmark."""

    name: str
    title: str
    shootdowns: str
    ratios: str
    latencies: str
    verdicts: tuple[str, ...]
    paper: tuple[tuple[str, str], ...]
    trouble: tuple[str, ...]


def write(results: Sequence[Results], path: Path) -> None:
    """Write the page. Nothing is left of it when that fails."""
    text = render(results)
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"--html {path}: {error.strerror}") from None


def render(results: Sequence[Results]) -> str:
    """Return the page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    groups: dict[str, list[Section]] = {}
    said: list[str] = []
    summary: list[dict[str, str]] = []
    for result in results:
        compared = comparisons(result)
        said += notes(result, compared)
        facts = result.suite.get("benchmarks", {})
        for name in dict.fromkeys(c.benchmark for c in compared):
            own = [c for c in compared if c.benchmark == name]
            about = facts.get(name, {})
            group = GROUPS.get(about.get("group", ""), "Others")
            groups.setdefault(group, []).append(section(name, about, own))
            summary += [summary_row(c, about) for c in own if c.mode == ON]
    ordered = {title: groups[title] for title in (*GROUPS.values(), "Others") if title in groups}
    return environment.get_template("page.html.j2").render(
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        groups=ordered,
        summary=summary,
        notes=list(dict.fromkeys(said)),
        machines=list(dict.fromkeys(machine(r) for r in results)),
        emulated=any("emulated" in str(h.get("where")) for r in results for h in r.hosts),
    )


def section(name: str, about: dict[str, Any], compared: Sequence[Comparison]) -> Section:
    """Return what is said of a benchmark."""
    return Section(
        name=name,
        title=str(about.get("title", name)),
        shootdowns=bars(f"{name}: shootdowns received", _shootdown_bars(compared)),
        ratios=bars(f"{name}: ratio to off", _ratio_bars(compared, "ratios"), one=True),
        latencies=bars(
            f"{name}: latency, ratio to off", _ratio_bars(compared, "latency"), one=True
        ),
        verdicts=tuple(verdict(c, about) for c in compared),
        paper=tuple((str(k), str(v)) for k, v in about.get("paper", {}).items()),
        trouble=tuple(text for c in compared for text in troubles(c)),
    )


def verdict(c: Comparison, about: dict[str, Any]) -> str:
    """Say in a sentence what came of one mode."""
    parts = []
    share = c.shootdowns.share if c.shootdowns is not None else None
    if share is not None:
        parts.append(f"{100 * share:.2f} % of the shootdowns for each operation are left")
    elif c.shootdowns is not None:
        parts.append("there were hardly any shootdowns without it")
    better = {m["name"]: m.get("better", "more") for m in about.get("metrics", [])}
    parts += [f"{m}: {said_of(i, better.get(m, 'more'))}" for m, i in c.ratios.items()]
    text = "; ".join(parts) or "nothing could be compared"
    return f"{c.cpus} CPUs, {c.mode}: {text}."


def said_of(ratio: Interval, better: str) -> str:
    """Say whether a ratio is a difference, and in which direction."""
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
    return {
        "name": c.benchmark,
        "title": str(about.get("title", c.benchmark)),
        "cpus": str(c.cpus),
        "left": "-" if share is None else f"{100 * share:.2f} %",
        "ratio": "-" if ratio is None else ratio_text(ratio),
        "metric": name,
        "state": "bad" if troubles(c) else "good",
    }


def machine(results: Results) -> str:
    """Say in a line what it was measured on."""
    host = dict(results.hosts[-1]) if results.hosts else {}
    found = dict(results.environments[-1]) if results.environments else {}
    parts = [
        str(host.get("where", "")),
        f"kernel {found.get('kernel', '?')}",
        str(found.get("cpu", "")),
        f"{host.get('host_cpus', '?')} CPUs in the host",
        f"commit {host.get('commit') or 'unknown'}",
        str(host.get("date", "")),
    ]
    return ", ".join(part for part in parts if part)


def _shootdown_bars(compared: Sequence[Comparison]) -> list[Bar]:
    rows = []
    for cpus in dict.fromkeys(c.cpus for c in compared):
        own = [c for c in compared if c.cpus == cpus and c.shootdowns is not None]
        for number, c in enumerate(own):
            shot = c.shootdowns
            assert shot is not None
            if not number:
                text = f"{shot.off:.4f}"
                rows.append(Bar(f"{cpus} CPUs, off", shot.off, text, "off", first=True))
            text = f"{shot.on:.4f}" + ("" if shot.share is None else f" ({100 * shot.share:.1f} %)")
            rows.append(Bar(f"{cpus} CPUs, {c.mode}", shot.on, text, _kind(c.mode)))
    return rows


def _ratio_bars(compared: Sequence[Comparison], of: str) -> list[Bar]:
    """Return the bars of `ratios` or `latency`."""
    return [
        Bar(
            f"{name}, {c.cpus} CPUs, {c.mode}",
            ratio.middle,
            f"{ratio.middle:.2f}",
            _kind(c.mode),
            ratio.low,
            ratio.high,
        )
        for c in compared
        for name, ratio in getattr(c, of).items()
    ]


def _kind(mode: str) -> str:
    return "on" if mode == ON else "other"
