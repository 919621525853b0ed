# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench list`."""

import argparse
import json

from ceasefire.bench.catalog import spec
from ceasefire.bench.measure import schedule
from ceasefire.tables import print_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench list`."""
    parser.add_argument("--json", action="store_true", help="print JSON, an object a benchmark")


def main(args: argparse.Namespace) -> int:
    """Print all benchmarks and suites."""
    benchmarks, suites = spec.load_all()
    inside = {
        name: [s.name for s in suites.values() if name in {b.name for b in s.benchmarks}]
        for name in benchmarks
    }
    if args.json:
        for bench in benchmarks.values():
            record = {"name": bench.name, "group": bench.group, "title": bench.title}
            modes = {"modes": bench.modes(), "cpus": list(bench.cpus)}
            print(json.dumps({**record, **modes, "suites": inside[bench.name]}))
        return 0
    rows = [
        [b.name, b.group, ", ".join(map(str, b.cpus)), ", ".join(b.modes()), b.title]
        for b in benchmarks.values()
    ]
    print_table(("benchmark", "group", "CPUs", "modes", "what"), rows, numbers_from=9)
    rows = [[s.name, str(len(s.benchmarks)), minutes(s), s.title] for s in suites.values()]
    print_table(("suite", "benchmarks", "minutes", "what"), rows, title="Suites", numbers_from=9)
    return 0


def minutes(suite: spec.Suite) -> str:
    """Return about how many minutes a suite takes on two free cores."""
    seconds = sum(boot.seconds(suite.seconds) for boot in schedule.boots(suite, chosen=suite.modes))
    return f"about {max(1, round(seconds / 60))}"
