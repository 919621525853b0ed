# SPDX-License-Identifier: GPL-2.0-only
"""PostgreSQL and its page tables: what is compared with what, and what is missed is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from ceasefire.bench.apps import postgres as app
from ceasefire.bench.measure import postgres
from ceasefire.bench.results import store
from ceasefire.bench.verbs import postgres as verb
from ceasefire.errors import Failure


def line(way: str, tables: int, faults: int, rate: float, **more: Any) -> str:
    found = {"type": "postgres", "way": way, "round": 0, "backends": 16, "objects": 0}
    return json.dumps({**found, "tables": tables, "faults": faults, "rate": rate, **more})


def samples(*lines: str) -> list[store.Sample]:
    texts = [json.dumps({"schema": store.SCHEMA, "type": "host", "cpus": 2})]
    texts += [json.dumps({"schema": store.SCHEMA, **s}) for s in postgres.samples_in(lines)]
    return list(store.parse(texts).samples)


def test_tables_of_the_object_count() -> None:
    (found,) = postgres.samples_in([line("shared-tables", 100, 5, 1.0, objects=30)])
    assert found["metrics"] == {"tables": 130, "faults": 5, "rate": 1.0}


@pytest.mark.parametrize(
    ("shared", "missed"),
    [
        ((1200, 50, 99.0), []),
        ((3100, 50, 99.0), ["page tables"]),
        ((1200, 100, 99.0), ["page faults"]),
        ((1200, 50, 90.0), ["transactions"]),
    ],
)
def test_what_is_missed(
    shared: tuple[int, int, float], missed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ways = (("plain", 9000, 100, 100.0), ("shared-tables", *shared), ("no buffers", 1000, 20, 50.0))
    found = verb.print_samples(samples(*(line(*way) for way in ways)))
    assert [m.split(" of")[0].split(" are")[0] for m in found] == missed
    shown = capsys.readouterr().out
    assert "8,000" in shown and f"{shared[0] - 1000:,}" in shown


def test_without_one_of_them_there_is_no_verdict() -> None:
    with pytest.raises(Failure, match="no samples of: no buffers"):
        verb.print_samples(samples(line("plain", 9, 1, 1.0), line("shared-tables", 9, 1, 1.0)))


@pytest.mark.parametrize("text", ["no JSON", "{}", line("plain", 1, 1, 1.0)[:-1]])
def test_damaged_lines_are_a_failure(text: str) -> None:
    with pytest.raises(Failure, match="damaged"):
        list(postgres.samples_in([text]))


def test_the_newest_release_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_PROGRAMS", tmp_path)
    with pytest.raises(Failure, match="make deps-bench"):
        app.programs()
    for release in ("9", "15", "17"):
        folder = tmp_path / release / "bin"
        folder.mkdir(parents=True)
        for name in ("postgres", "initdb", *(["pgbench"] if release != "17" else [])):
            (folder / name).touch()
    assert app.programs() == tmp_path / "15" / "bin"
