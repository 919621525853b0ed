# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench beside-cost`: what FPR costs the programs beside one that uses it."""

import argparse
from collections.abc import Iterable
from statistics import median

from ceasefire import modes
from ceasefire.bench.cost import beside
from ceasefire.bench.cost.count import METRIC
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Sample
from ceasefire.bench.verbs import options
from ceasefire.output import progress
from ceasefire.tables import print_table

LIMIT_PERCENT = 0.5
OFF = modes.OFF.name
FPR = modes.FPR.name
_MAX = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--boots", default="2", metavar="N", help="boots (default: 2)")
    parser.add_argument(
        "--repeats", default="9", metavar="N", help="repeats of each loop in a boot (default: 9)"
    )
    parser.add_argument("--out", metavar="DIR", help="where results go (default: the build folder)")


def main(args: argparse.Namespace) -> int:
    """Measure; 1 when a program beside pays more than it may."""
    boots = options.number("--boots", args.boots, _MAX)
    repeats = options.number("--repeats", args.repeats, _MAX)
    folder = store.Folder(args.out, "beside-cost", fresh=True)
    folder.add({"type": "suite", "name": "beside-cost", "rounds": boots * repeats})
    beside.measure(folder, boots, repeats)
    progress(f"raw lines: {folder.lines}")
    worst = print_samples(store.read(folder.path).samples)
    if worst > LIMIT_PERCENT:
        progress(f"beside a process with FPR {worst:+.2f} %: more than {LIMIT_PERCENT} %")
        return 1
    return 0


def print_samples(samples: Iterable[Sample]) -> float:
    """Print medians and spread of each loop; return the worst, in percent."""
    groups: dict[str, dict[str, list[float]]] = {}
    for sample in samples:
        group = groups.setdefault(sample.benchmark, {OFF: [], FPR: []})
        group[sample.mode].append(sample.metrics[METRIC])
    rows = []
    worst = float("-inf")
    for case, found in groups.items():
        off, fpr = median(found[OFF]), median(found[FPR])
        more = 100 * fpr / off - 100
        worst = max(worst, more)
        spread = max(100 * (max(v) - min(v)) / median(v) for v in found.values())
        verdict = "pass" if more <= LIMIT_PERCENT else "fail"
        rows.append(
            [case, f"{off:,.0f}", f"{fpr:,.0f}", f"{more:+.2f} %", f"{spread:.2f} %", verdict]
        )
    columns = (
        "case",
        "beside, without FPR",
        "with FPR",
        "more",
        "spread",
        f"limit {LIMIT_PERCENT} %",
    )
    print_table(columns, rows, title="guest instructions of one operation, medians")
    return worst
