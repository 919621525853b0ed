# SPDX-License-Identifier: GPL-2.0-only
"""Draws one figure a case: shootdowns received on the left, throughput on the right.

SVG for reports, PNG for looking at. The left side is on a logarithmic scale, because what FPR
leaves over is thousands of times less than what it removes.
"""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from ceasefire.bench.analyze import Figures, Ratio
from ceasefire.bench.plan import CASES

# It takes settings from a file in the current folder, which may be that of somebody else.
with contextlib.chdir("/"):
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Dark and light apart even when printed in grey.
_OFF = "#b5b5b5"
_ON = "#1f5fa8"
_IDEAL = "#e08a1e"
_FLOOR = 1e-6
_WIDTH = 0.36

RatioOf = Callable[[Figures], Ratio | None]


def draw_all(figures: Sequence[Figures], folder: Path) -> list[Path]:
    """Draw every case among the figures; return the files."""
    written = []
    with mpl.rc_context({"font.size": 11, "svg.fonttype": "none", "axes.axisbelow": True}):
        for case in sorted({figure.case for figure in figures}):
            chosen = [figure for figure in figures if figure.case == case]
            drawing = _draw_case(case, chosen)
            for suffix in ("svg", "png"):
                path = folder / f"case-{case}.{suffix}"
                drawing.savefig(path, dpi=130)
                written.append(path)
    return written


def _draw_case(case: int, figures: Sequence[Figures]) -> Figure:
    rated = [figure for figure in figures if figure.comparable]
    panels = 2 if rated else 1
    width = 4.0 + 1.1 * len(figures) + (3.2 + 1.6 * len(rated) if rated else 0)
    drawing = Figure(figsize=(max(width, 6.5), 4.6), layout="constrained")
    axes = drawing.subplots(
        1,
        panels,
        squeeze=False,
        width_ratios=[1.5 + len(figures), 1.5 + 1.6 * len(rated)][:panels],
    )[0]
    drawing.suptitle(f"Case {case}: {CASES[case]}", fontweight="bold")
    _draw_received(axes[0], figures)
    if rated:
        _draw_rates(axes[1], rated)
    return drawing


def _label(figure: Figures) -> str:
    text = f"{figure.cpus} CPUs"
    if figure.processes > 1:
        text += f"\n{figure.processes} processes"
    if figure.pages > 1:
        text += f"\n{figure.pages} pages"
    return text


def _draw_received(axes: Axes, figures: Sequence[Figures]) -> None:
    """Bars: shootdowns received for each operation, without and with FPR."""
    places = range(len(figures))
    for offset, colour, name, values in (
        (-0.5, _OFF, "without MAP_FPR", [figure.received_off for figure in figures]),
        (0.5, _ON, "with MAP_FPR", [figure.received_on for figure in figures]),
    ):
        shown = [
            (place, value) for place, value in zip(places, values, strict=True) if value is not None
        ]
        if not shown:
            continue
        # No bar at all for zero, only the figure.
        axes.bar(
            [place + offset * _WIDTH for place, _ in shown],
            [value or _FLOOR / 2 for _, value in shown],
            _WIDTH,
            color=colour,
            label=name,
        )
        for place, value in shown:
            axes.annotate(
                "0" if value == 0 else f"{value:.2g}",
                (place + offset * _WIDTH, value or _FLOOR / 2),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=9,
            )
    axes.set_yscale("log")
    highest = max(figure.received_off or 0.0 for figure in figures)
    axes.set_ylim(_FLOOR / 2, max(1.0, highest) * 30)
    axes.set_xlim(-0.7, len(figures) - 0.3)
    axes.set_xticks(list(places), [_label(figure) for figure in figures])
    axes.set_ylabel("shootdowns received per I/O operation")
    axes.grid(axis="y", color="#e5e5e5")
    axes.legend(loc="upper left", ncols=2, frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_rates(axes: Axes, figures: Sequence[Figures]) -> None:
    """Points with their range: operations per second, relative to without MAP_FPR."""
    series: list[tuple[str, str, str, RatioOf]] = [
        ("I/O with MAP_FPR", _ON, "o", lambda f: f.io_vs_off),
        ("I/O, ideal", _IDEAL, "o", lambda f: f.ideal_io_vs_off),
        ("compute with MAP_FPR", _ON, "s", lambda f: f.compute_vs_off),
        ("compute, ideal", _IDEAL, "s", lambda f: f.ideal_compute_vs_off),
    ]
    present = [entry for entry in series if any(entry[3](figure) for figure in figures)]
    top = 1.0
    for index, (name, colour, marker, ratio_of) in enumerate(present):
        shift = (index - (len(present) - 1) / 2) * 0.2
        points = [(place + shift, ratio_of(figure)) for place, figure in enumerate(figures)]
        shown = [(x, ratio) for x, ratio in points if ratio is not None]
        axes.errorbar(
            [x for x, _ in shown],
            [ratio.median for _, ratio in shown],
            yerr=[
                [ratio.median - ratio.low for _, ratio in shown],
                [ratio.high - ratio.median for _, ratio in shown],
            ],
            fmt=marker,
            color=colour,
            markerfacecolor=colour if marker == "o" else "white",
            markersize=7,
            capsize=3,
            label=name,
        )
        for x, ratio in shown:
            axes.annotate(
                f"{ratio.median:.2f}",
                (x, ratio.high),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=9,
            )
            top = max(top, ratio.high)
    axes.axhline(1.0, color="#808080", linewidth=1)
    axes.set_ylim(0, top * 1.45)
    axes.set_xlim(-0.7, len(figures) - 0.3)
    axes.set_xticks(range(len(figures)), [_label(figure) for figure in figures])
    axes.set_ylabel("operations per second / without MAP_FPR\n(medians, lowest to highest round)")
    axes.grid(axis="y", color="#e5e5e5")
    axes.legend(loc="upper center", ncols=2, frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
