# SPDX-License-Identifier: GPL-2.0-only
"""Where results go: one folder a run, with the raw lines, the table and the plots."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from ceasefire import paths
from ceasefire.errors import UsageError

LINES = "samples.jsonl"


class ResultFolder:
    """Collects the lines of a run as they come, so that an interrupted run keeps what it has."""

    def __init__(self, verb: str, chosen: str | None) -> None:
        if chosen is None:
            stamp = time.strftime("%Y%m%d-%H%M%S")
            self.path = paths.build_dir() / "bench" / f"{verb}-{stamp}"
        else:
            self.path = Path(chosen).absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--out {self.path}: {error.strerror}") from None
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
