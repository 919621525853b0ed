# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire bench run --emulator NAME --sources LIST`: what guests of a suite begin with."""

import argparse
import json
import subprocess
from pathlib import Path

import pytest

from ceasefire.bench.catalog import spec
from ceasefire.bench.measure import programs, runner
from ceasefire.bench.verbs import run
from ceasefire.errors import Failure, UsageError
from ceasefire.vm import GuestSpec


def run_options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    return parser.parse_args(words)


def test_sources_are_chosen_in_the_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[GuestSpec, list[str]]] = []

    def run_guest(spec: GuestSpec, command: list[str], **_: object) -> None:
        seen.append((spec, command))
        raise Failure("no guest here")

    monkeypatch.setattr(runner, "run_guest", run_guest)
    monkeypatch.setattr(programs, "search_path", lambda: "")
    suite = spec.choose(["own-munmap-near"])
    args = run_options("--emulator", "built", "--sources", "uncached,inserted")
    args.out = str(tmp_path / "out")
    run.measure(suite, args)
    ((guest, command),) = seen[:1]
    assert guest.emulator == "built"
    file = tmp_path / "sources"
    # The same words with another file, and a command that shows what is left of them.
    at = command.index("/sys/kernel/mm/ceasefire/abis/sources")
    done = subprocess.run(
        [*command[:at], str(file), command[at + 1], "echo", "and", "then"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert file.read_text() == "uncached inserted\n" and done.stdout == "and then\n"
    lines = map(json.loads, (tmp_path / "out" / "samples.jsonl").read_text().splitlines())
    (host,) = [line for line in lines if line["type"] == "host"][:1]
    assert (host["emulator"], host["sources"]) == ("built", "uncached inserted")
    for words in (["--emulator", "built"], ["--sources", "inserted"]):
        with pytest.raises(UsageError, match="for guests"):
            run.measure(suite, run_options("--in-place", *words))
