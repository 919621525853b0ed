# SPDX-License-Identifier: GPL-2.0-only
"""Where results go: one folder a run, with the raw lines, the table and the plots."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from ceasefire import paths
from ceasefire.errors import UsageError

LINES = "samples.jsonl"


def make_folder(verb: str, chosen: str | None) -> Path:
    """Return the folder that the user has chosen, or a new one of our own; it exists then."""
    if chosen is None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        path = paths.build_dir() / "bench" / f"{verb}-{stamp}"
    else:
        path = Path(chosen).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {path}: {error.strerror}") from None
    return path


class ResultFolder:
    """Collects the lines of a run as they come, so that an interrupted run keeps what it has."""

    def __init__(self, verb: str, chosen: str | None) -> None:
        self.path = make_folder(verb, chosen)
        self.lines = self.path / LINES
        if self.lines.exists():
            raise UsageError(f"--out {self.path}: there are results already, choose another folder")

    def add_record(self, record: Mapping[str, object]) -> None:
        """Append one line."""
        self.add_text(json.dumps(record) + "\n")

    def add_text(self, text: str) -> None:
        """Append lines as a benchmark program printed them."""
        with self.lines.open("a", encoding="utf-8") as file:
            file.write(text)
