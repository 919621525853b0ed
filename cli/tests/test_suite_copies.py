# SPDX-License-Identifier: GPL-2.0-only
"""What sharers cost: from counters of samples to tables, texts and the page."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ceasefire import counters
from ceasefire.__main__ import main
from ceasefire.bench.figures.copies import Copies, copies
from ceasefire.bench.measure import agent
from ceasefire.bench.report import markdown, page
from ceasefire.bench.results import keep, store
from ceasefire.errors import Failure

FACTS = {
    name: {"group": "micro", "title": name, "metrics": [{"name": "rate", "path": "rate"}]}
    for name in ("own", "quiet")
}


def sample(name: str, mode: str, number: int, **counted: int) -> dict[str, Any]:
    return {
        "type": "sample",
        "benchmark": name,
        "mode": mode,
        "round": number,
        "metrics": {"rate": 1.0},
        "operations": 1000,
        "counters": {counters.RECEIVED: 500, **counted},
    }


LINES: list[Mapping[str, Any]] = [
    {"type": "suite", "name": "made", "rounds": 2, "seconds": 1.0, "benchmarks": FACTS},
    {"type": "host", "cpus": 8, "host_cpus": 2, "where": "here", "comparable": False},
    sample("own", "off", 0, sharers_fill=0, pgfault=8000, page_tables_kib=40),
    sample("own", "sharers", 0, sharers_fill=3, pgfault=8004, page_tables_kib=90),
    sample("own", "sharers", 1, sharers_fill=1, pgfault=8000, page_tables_kib=120),
    sample("own", "off", 1, sharers_fill=0, pgfault=8000, page_tables_kib=30),
    sample("quiet", "off", 0, sharers_fill=0, pgfault=10, page_tables_kib=4),
    sample("quiet", "sharers", 0, sharers_fill=0, pgfault=10, page_tables_kib=4),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "made"
    place.mkdir()
    text = "".join(json.dumps({"schema": store.SCHEMA, **line}) + "\n" for line in LINES)
    (place / store.LINES).write_text(text, encoding="utf-8")
    return place


def test_costs_are_of_all_rounds(folder: Path) -> None:
    # What fills nothing has no costs.
    (found,) = copies(store.read(folder))
    assert found == Copies("own", "sharers", 8, 0.002, (8.0, 8.002), (40, 120))
    assert found.text() == (
        "0.00200 fills, 8.0020 page faults (off: 8.0000) for each operation, "
        "120 KiB of page tables (off: 40)"
    )


def test_costs_may_be_known_in_part() -> None:
    lines = [json.dumps({"schema": store.SCHEMA, **line}) for line in LINES[:2]]
    for mode, fills in (("off", 0), ("sharers", 5)):
        record = sample("own", mode, 0, sharers_fill=fills)
        lines.append(json.dumps({"schema": store.SCHEMA, **record}))
    (found,) = copies(store.parse(lines))
    assert (found.faults, found.tables) == (None, None)
    assert found.text() == "0.00500 fills for each operation"


def test_costs_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "compare", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "own tables cost" in out and "8.0020" in out and "120" in out
    text = page.render([store.read(folder)])
    assert "8 CPUs, sharers: 0.00200 fills, 8.0020 page faults" in text
    assert text.count("fills") == 1


def test_costs_in_a_text(folder: Path, tmp_path: Path) -> None:
    template = tmp_path / "text.md.j2"
    template.write_text('{{ copies("made") }}', encoding="utf-8")
    found = {"made": store.read(folder)}
    head, _, line = markdown.render(found, template).splitlines()
    assert head.startswith("| | CPUs | fills for each operation |")
    assert line == "| `own` | 8 | 0.00200 | 8.0000 | 8.0020 | 40 | 120 |"
    template.write_text('{{ copies("made", ["quiet"]) }}', encoding="utf-8")
    with pytest.raises(Failure, match="no CPU had tables of its own"):
        markdown.render(found, template)


def test_costs_are_kept(folder: Path) -> None:
    text = keep.kept((folder / store.LINES).read_text(encoding="utf-8").splitlines())
    assert copies(store.parse(text.splitlines())) == copies(store.read(folder))
    records = [json.loads(line) for line in text.splitlines()]
    kept = {r["benchmark"]: set(r["counters"]) for r in records if r["type"] == "sample"}
    assert kept["quiet"] == {counters.RECEIVED}
    assert kept["own"] == {counters.RECEIVED, "sharers_fill", "pgfault", "page_tables_kib"}


def test_page_tables_are_what_came_on_top(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    values = iter((100, 150, 400, 90))
    monkeypatch.setattr(counters, "page_tables_kib", lambda: next(values))
    tables = agent.Tables()
    assert tables.most() == 0
    for _ in range(3):
        tables.look()
    assert tables.most() == 300
    monkeypatch.undo()
    assert counters.page_tables_kib() > 0
    done = agent.run("exit 3", tmp_path, 60.0)
    assert done.status == 3 and done.counters[counters.TABLES] == 0
    assert done.counters["pgfault"] > 0
    assert agent.run("sleep 600", tmp_path, 0.1).status is None
