# SPDX-License-Identifier: GPL-2.0-only
"""Run tests of a foreign suite without and with a mechanism forced on, in a guest; print KTAP.

A test passes when the mechanism adds nothing to what it complains of (see judge), and when it used
the mechanism if it is known to map files. If it fails, it is repeated without: what that shows as
well is no failure. Lines that begin with '# |' are a table for docs/foreign.md.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ceasefire import modes
from ceasefire.errors import Failure
from tests.foreign import arms, guest, judge
from tests.foreign.arms import Arm
from tests.foreign.judge import Run
from tests.foreign.suite import Suite, choose, load

_REPEATED = 3
_SHOWN_LINES = 400


def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0, 1 when a test failed, 2 for wrong use."""
    parser = argparse.ArgumentParser(
        prog="tests/foreign/run", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument(
        "--brief", action="store_true", help="run without it only what complains with it"
    )
    known = ", ".join(arm.name for arm in arms.ARMS)
    parser.add_argument("--with", dest="arm", default="fpr", help=f"{known} (default: fpr)")
    parser.add_argument("suite", help="mm-selftests or stress-ng")
    parser.add_argument("test", nargs="*", help="some of its tests (default: all)")
    args = parser.parse_intermixed_args(argv)
    try:
        suite = load(args.suite)
        names = choose(suite, args.test)
        arm = arms.choose(args.arm)
        arm.words()  # what is missing is said before the first result
        return compare(suite, names, _folder(), arm, brief=args.brief)
    except Failure as failure:
        print(f"tests/foreign/run: {failure}", file=sys.stderr)
        return failure.status


def _folder() -> Path:
    folder = Path(os.environ.get("CEASEFIRE_TEST_DIR", ""))
    if not folder.is_absolute() or not folder.is_dir():
        raise Failure("CEASEFIRE_TEST_DIR is no folder: give the guest a disk")
    return folder


def compare(
    suite: Suite, names: Sequence[str], folder: Path, arm: Arm, *, brief: bool = False
) -> int:
    """Run the tests and print a result for each; 1 when one of them failed.

    brief: what complains of nothing with the mechanism is not run without.
    """
    say("KTAP version 1")
    say(f"1..{len(names)}")
    say("# | test | result | " + " | ".join(arm.columns) + " |")
    failed = 0
    unused = []
    for number, name in enumerate(names, 1):
        without: list[Run] = []
        if not brief:
            without.append(guest.run(suite.commands[name], folder, suite.timeout))
        forced = guest.run(suite.commands[name], folder, suite.timeout, arm)
        trouble = judge.worse(without, forced)
        while trouble and len(without) <= _REPEATED:
            without.append(guest.run(suite.commands[name], folder, suite.timeout))
            trouble = judge.worse(without, forced)
        known = suite.difference(name, arm.name)
        if known is not None:
            trouble = judge.otherwise(forced, trouble, known.says, known.marks)
        if not forced.skipped:
            trouble += judge.unusable(arm, without, forced, maps=arm.mapping and name in suite.maps)
        for line in report(name, arm, without, forced, trouble):
            say(f"# {line}")
        if known is not None and not trouble:
            say(f"# {name}: differs, and may: {known.because}")
        skip = f" # SKIP it skips without {arm.title}, too" if forced.skipped else ""
        say(f"not ok {number} - {name}" if trouble else f"ok {number} - {name}{skip}")
        failed += bool(trouble)
        unused += [] if arm.uses(forced.counters) or forced.skipped else [name]
    say(f"# never used {arm.title}: {' '.join(unused) or 'none'}")
    for name, why in suite.left_out.items():
        say(f"# left out: {name}: {why}")
    return 1 if failed else 0


def report(
    name: str, arm: Arm, without: Sequence[Run], forced: Run, trouble: Sequence[str]
) -> Iterator[str]:
    """Yield the lines above a result: what was counted; for a failure all that was printed."""
    same = sorted(judge.marks(forced))
    row = " | ".join(str(forced.counters.get(column, 0)) for column in arm.columns)
    verdict = f"worse with {arm.title}" if trouble else "; ".join(same[:3]) or "passes"
    yield f"| {name} | {verdict} | {row} |"
    ours = tuple(mechanism.prefix for mechanism in modes.MECHANISMS)
    counted = {k: v for k, v in forced.counters.items() if k.startswith(ours) and v}
    yield f"{name}: " + " ".join(f"{key}={value}" for key, value in counted.items())
    yield from (f"{name}: only with {arm.title}: {mark}" for mark in trouble)
    if trouble or same:
        yield from (f"{name}: {line}" for line in _both("with", forced))
        for run in without:
            yield from (f"{name}: {line}" for line in _both("without", run))


def _both(title: str, run: Run) -> Iterator[str]:
    yield f"{title}: " + ("no end" if run.status is None else f"exit status {run.status}")
    yield from (f"{title}, kernel log: {line}" for line in run.complaints)
    lines = run.output.splitlines()
    if len(lines) > _SHOWN_LINES:
        yield f"{title}, {len(lines) - _SHOWN_LINES} lines before"
    yield from (f"{title}| {line}" for line in lines[-_SHOWN_LINES:])


def say(line: str) -> None:
    """Print a line at once: the job's log grows while a test runs."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
