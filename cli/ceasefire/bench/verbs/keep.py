# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench keep`: results small enough for the repository, for docs/results.md."""

import argparse
import re
from pathlib import Path

from ceasefire import paths
from ceasefire.bench.results import keep, store
from ceasefire.errors import Failure, UsageError
from ceasefire.files import write_whole
from ceasefire.output import say

FOLDER = "bench/results"
# Bytes of one file: people download all of them with the sources.
MOST = 300_000
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `bench keep`."""
    add = parser.add_argument
    add("folder", metavar="DIR", help="--out of a `bench run`")
    add("name", metavar="NAME", help="what docs/results.md.j2 calls these results")
    add("--to", metavar="DIR", help=f"where the folder NAME is made (default: {FOLDER})")


def main(args: argparse.Namespace) -> int:
    """Keep the results of a folder under a name, instead of those that are there."""
    if not _NAME.fullmatch(args.name):
        raise UsageError(f"the name '{args.name}': small letters, digits and - only")
    root = paths.checkout()
    if args.to is None and root is None:
        raise UsageError("say --to: there is no checkout that has a folder for results")
    place = Path(args.to) if args.to is not None else root / FOLDER if root is not None else Path()
    found = store.read(Path(args.folder))
    if not found.samples:
        raise Failure(f"{args.folder} has no samples")
    text = keep.kept((Path(args.folder) / store.LINES).read_text(encoding="utf-8").splitlines())
    if len(text) > MOST:
        raise Failure(f"{args.folder} needs {len(text)} bytes, at most {MOST} can be kept")
    folder = place / args.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / store.LINES, text)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from None
    say(f"kept {len(found.samples)} samples, {len(text)} bytes: {folder}; then: make results")
    return 0
