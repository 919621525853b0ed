# SPDX-License-Identifier: GPL-2.0-only
"""From comparisons to the pictures of a page: what is drawn, on which axes, with which words.

Each function returns SVG, "" when there is nothing to draw.
"""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from ceasefire import modes
from ceasefire.bench.catalog.spec import BASELINE
from ceasefire.bench.figures.compare import Comparison, Interval
from ceasefire.bench.figures.ideal import Lost
from ceasefire.bench.latency import Histogram
from ceasefire.bench.report.axes import Axis, counts_axis, cpus_axis, decades, thinned
from ceasefire.bench.report.svg import Bar, Curve, bars, curves
from ceasefire.bench.results.store import works

# Of a share of operations: what is less frequent is not drawn.
_RAREST = 1e-6
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def mode_text(mode: str) -> str:
    """Return what a mode is called."""
    return "stock (another boot)" if mode == modes.STOCK.name else mode


def kind(mode: str) -> str:
    """Return the class that a mode is drawn in: one for each mechanism, see page.html.j2."""
    if mode == BASELINE:
        return "off"
    if not works(mode):
        return "other"
    first, *more = modes.parse(mode).mechanisms
    return "combined" if more else f"mode{modes.MECHANISMS.index(first)}"


def shootdown_bars(name: str, compared: Sequence[Comparison]) -> Markup:
    """Draw the shootdowns for each operation of all modes."""
    rows = []
    for cpus in dict.fromkeys(c.cpus for c in compared):
        own = [c for c in compared if c.cpus == cpus and c.shootdowns is not None]
        for number, c in enumerate(own):
            shot = c.shootdowns
            assert shot is not None
            if not number:
                text = f"{shot.base:.4f}"
                rows.append(Bar(f"{cpus} CPUs, off", shot.base, text, "off", first=True))
            left = "" if shot.share is None else f" ({100 * shot.share:.1f} %)"
            rows.append(
                Bar(
                    f"{cpus} CPUs, {mode_text(c.mode)}",
                    shot.own,
                    f"{shot.own:.4f}{left}",
                    kind(c.mode),
                )
            )
    return bars(f"{name}: shootdowns received", rows)


def ratio_bars(name: str, compared: Sequence[Comparison], of: str) -> Markup:
    """Draw the ratios to off. of: "ratios", those of the metrics, or "latency"."""
    rows = [
        Bar(
            f"{metric}, {c.cpus} CPUs, {mode_text(c.mode)}",
            ratio.middle,
            f"{ratio.middle:.2f}",
            kind(c.mode),
            ratio.low,
            ratio.high,
        )
        for c in compared
        for metric, ratio in getattr(c, of).items()
    ]
    return bars(f"{name}: {of}, ratio to off", rows, one=True)


def lost_bars(name: str, found: Sequence[Lost]) -> Markup:
    """Draw the compute that is lost, in percent; less than none is none."""
    rows = [
        Bar(
            f"{loss.cpus} CPUs, {mode}",
            100 * share.middle,
            percent(share),
            kind(mode),
            100 * share.low,
            100 * share.high,
            first=mode == BASELINE,
        )
        for loss in found
        for mode, share in loss.shares.items()
    ]
    return bars(f"{name}: compute lost to shootdowns", rows)


def latency_plot(
    name: str, cpus: int, histograms: Mapping[str, Histogram], *, relative: bool
) -> Markup:
    """Draw the histograms of modes over each other, both axes logarithmic.

    relative: times are multiples of the median of off, because those of emulated CPUs mean
    nothing; else they are in seconds.
    """
    if BASELINE not in histograms:
        return Markup()
    unit = histograms[BASELINE].median if relative else 1.0
    steps = {mode: found.steps() for mode, found in histograms.items()}
    flat = [step for found in steps.values() for step in found]
    ticks = decades(min(s.low for s in flat) / unit, max(s.high for s in flat) / unit)
    across = Axis(
        min(s.low for s in flat) / unit,
        max(s.high for s in flat) / unit,
        True,
        thinned([(t, f"{t:g}" if relative else _time(t)) for t in ticks]),
    )
    shares = decades(max(min(s.share for s in flat), _RAREST), max(s.share for s in flat))
    up = Axis(
        shares[0],
        shares[-1],
        True,
        thinned([(share, f"{100 * share:g} %") for share in shares]),
    )
    lines = []
    for mode, found in steps.items():
        points: list[tuple[float, float]] = [(found[0].low / unit, shares[0])]
        for step in found:
            if points[-1][0] < step.low / unit:
                points += [(points[-1][0], shares[0]), (step.low / unit, shares[0])]
            points += [(step.low / unit, step.share), (step.high / unit, step.share)]
        points.append((points[-1][0], shares[0]))
        lines.append(Curve(mode, kind(mode), tuple(points), area=True))
    return curves(f"{name}, {cpus} CPUs: latency", _inside(across), up, lines)


def shootdowns_by_cpus(name: str, compared: Sequence[Comparison]) -> Markup:
    """Draw shootdowns for each operation over numbers of CPUs, off and with each mechanism."""
    values: dict[str, dict[int, float]] = {BASELINE: {}}
    for c in sorted(compared, key=lambda c: c.cpus):
        if c.shootdowns is not None and works(c.mode):
            values[BASELINE][c.cpus] = c.shootdowns.base
            values.setdefault(c.mode, {})[c.cpus] = c.shootdowns.own
    if len(values[BASELINE]) < 2:
        return Markup()
    up = counts_axis([value for points in values.values() for value in points.values()])
    lines = [
        Curve(mode, kind(mode), tuple((float(n), v) for n, v in points.items()), marks=True)
        for mode, points in values.items()
    ]
    return curves(
        f"{name}: shootdowns received over CPUs", cpus_axis(list(values[BASELINE])), up, lines
    )


def ratios_by_cpus(name: str, compared: Sequence[Comparison]) -> dict[str, Markup]:
    """Draw the ratio of each metric over numbers of CPUs, where times are comparable."""
    own = sorted((c for c in compared if works(c.mode)), key=lambda c: c.cpus)
    found = {}
    for metric in dict.fromkeys(m for c in own for m in c.ratios):
        points: dict[str, list[tuple[int, Interval]]] = {}
        for c in own:
            if metric in c.ratios:
                points.setdefault(c.mode, []).append((c.cpus, c.ratios[metric]))
        flat = [point for some in points.values() for point in some]
        cpus = list(dict.fromkeys(sorted(cpus for cpus, _ in flat)))
        if len(cpus) < 2:
            continue
        lines = [
            Curve(
                f"{mode} / off",
                kind(mode),
                tuple((float(cpus), ratio.middle) for cpus, ratio in some),
                tuple((ratio.low, ratio.high) for _, ratio in some),
                marks=True,
            )
            for mode, some in points.items()
        ]
        found[metric] = curves(
            f"{name}: {metric} over CPUs, ratio to off",
            cpus_axis(cpus),
            counts_axis([v for _, ratio in flat for v in (1.0, ratio.low, ratio.high)]),
            lines,
            one=True,
        )
    return found


def percent(share: Interval) -> str:
    """Return a share of 0 to 1 with its interval in percent."""
    middle, low, high = (100 * value for value in (share.middle, share.low, share.high))
    return f"{middle:.1f} % ({low:.1f}..{high:.1f})"


def _inside(axis: Axis) -> Axis:
    """Return the axis without the ticks that are not on it."""
    ticks = tuple(t for t in axis.ticks if axis.low <= t[0] <= axis.high)
    return Axis(axis.low, axis.high, axis.log, ticks)


def _time(ns: float) -> str:
    size, unit = next((u for u in _UNITS if ns >= u[0]), _UNITS[-1])
    return f"{ns / size:g} {unit}"
