# SPDX-License-Identifier: GPL-2.0-only
"""Texts with figures of results, docs/results.md among them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ceasefire.__main__ import main
from ceasefire.bench.catalog import spec
from ceasefire.bench.report import markdown
from ceasefire.bench.results import store
from ceasefire.bench.verbs.keep import FOLDER
from ceasefire.errors import Failure

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "docs" / "results.md.j2"


def filled(text: str, found: Mapping[str, store.Results], place: Path) -> str:
    template = place / "text.md.j2"
    template.write_text(text, encoding="utf-8")
    return markdown.render(found, template)


@pytest.fixture
def made(suite_results: Path) -> dict[str, store.Results]:
    return {"made": store.read(suite_results)}


def test_results_document_is_what_template_and_data_give() -> None:
    folders = sorted((ROOT / FOLDER).iterdir())
    text = markdown.render({f.name: store.read(f) for f in folders}, TEMPLATE)
    there = TEMPLATE.with_suffix("").read_text(encoding="utf-8")
    assert text == there, "docs/results.md: run `make results`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{{ left("apache") }}', "0.10 %"),
        ('{{ left("apache", "stock", cpus=4) }}', "102.00 %"),
        ('{{ received("apache", "off") }}', "0.500"),
        ('{{ received("apache", cpus=16, results="made") }}', "0.00400"),
        ('{{ received("munmap-other") }}', "0"),
        ('{{ ratio("apache") }}', "1.18 (1.17..1.20)"),
        ('{{ ratio("munmap-other", "compute") }}', "1.23 (1.19..1.28)"),
        ('{{ latency("apache", "p50") }}', "0.75 (0.75..0.75)"),
        ('{{ latency("apache", "p50", "off", against="fpr") }}', "1.33 (1.33..1.33)"),
        ('{{ lost("munmap-other") }}', "21.9 % (20.6..23.3)"),
        ('{{ lost("munmap-other", "fpr", cpus=4) }}', "2.9 % (0.9..5.8)"),
        ('{{ rounds("apache") }}', "5"),
        (
            '{{ command("made") }}',
            "ceasefire bench run apache munmap-other compute-xz --cpus 2,4,16 "
            "--rounds 5 --seconds 1 --stock",
        ),
        (
            '{{ has("made"), has("x"), has("made", "apache"), has("made", "x") }}',
            "(True, False, True, False)",
        ),
        (
            '{{ machine("made") }}',
            "in a guest with emulated CPUs (TCG), 4 CPUs in the host, "
            "commit 0123456789ab, 2026-01-01",
        ),
        ("two\n\n{% if false %}\nx\n{% endif %}\n", "two\n\n"),
    ],
)
def test_functions(
    made: dict[str, store.Results], tmp_path: Path, text: str, expected: str
) -> None:
    assert filled(text, made, tmp_path) == expected


def test_tables(made: dict[str, store.Results], tmp_path: Path) -> None:
    text = filled('{{ table("made", ["apache"], cpus=[2, 16]) }}', made, tmp_path)
    head, line, first, second, empty, failed = text.splitlines()
    assert head.startswith("| | CPUs |") and head.endswith("| fpr / off | others / off |")
    assert line == "| --- " * 7 + "|"
    assert first == (
        "| `apache`: apache, made up <for> the tests | 2 | 0.500 | 0.00050 | 0.10 % | "
        "requests 1.18 (1.17..1.20) | sendfile: requests 1.36 (1.34..1.38); "
        "stock (another boot): requests 1.00 (0.98..1.01) |"
    )
    assert second.endswith("| 16 | 4.00 | 0.00400 | 0.10 % | | |")
    assert not empty and failed == "Failed: apache, 16 CPUs, fpr, round 5: no answer."
    few = filled('{{ table("made", ["compute-xz"]) }}', made, tmp_path)
    assert "| too few | time 0.98" in few and "others" not in few
    assert "| `apache` | requests: +22 %" in filled("{{ paper() }}", made, tmp_path)
    with pytest.raises(Failure, match="measured none of these"):
        filled("{{ paper(mode='latr') }}", made, tmp_path)
    with pytest.raises(Failure, match="no paper about mode off"):
        filled("{{ paper(mode='off') }}", made, tmp_path)


def test_modes_beside_each_other(made: dict[str, store.Results], tmp_path: Path) -> None:
    text = filled('{{ beside("made", ["apache", "compute-xz"]) }}', made, tmp_path)
    head, _, first, *_, last = text.splitlines()
    modes = head.split("| off | ")[1]
    assert head.startswith("| | CPUs | off |") and "fpr" in modes and "stock" in modes
    assert first.startswith("| `apache` | 2 | 0.500 |") and "| 0.10 % |" in first
    assert last.startswith("| `compute-xz` | 2 |") and "| too few |" in last
    assert "not measured" in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{{ table("x") }}', "there are no results 'x' (see `bench keep`), only: made"),
        ('{{ table("made", ["x"]) }}', "results 'made' have no benchmark x"),
        ('{{ table("made", cpus=[3]) }}', "nothing of mode fpr"),
        ('{{ left("x") }}', "no results have the benchmark x"),
        ('{{ left("apache", cpus=3) }}', "have no apache with 3 CPUs"),
        ('{{ left("compute-xz") }}', "too few shootdowns"),
        ('{{ ratio("apache", "x") }}', "there is no 'x', only: requests"),
        ('{{ ratio("apache", cpus=16) }}', "only: nothing"),
        ('{{ lost("apache") }}', "lost compute"),
        ("{{ x }}", "'x' is undefined"),
        ("a\n{{ x", "line 2"),
        ("{{ left() }}", "left() missing 1 required"),
    ],
)
def test_what_is_not_there_is_one_line(
    made: dict[str, store.Results], tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(Failure) as failure:
        filled(text, made, tmp_path)
    assert why in str(failure.value) and "\n" not in str(failure.value)
    assert str(failure.value).startswith("text.md.j2")


def test_the_results_have_to_be_named_where_several_have_a_benchmark(
    made: dict[str, store.Results], tmp_path: Path
) -> None:
    both = {**made, "again": made["made"]}
    with pytest.raises(Failure, match="say which results: again and made"):
        filled('{{ left("apache") }}', both, tmp_path)
    assert filled('{{ left("apache", results="again") }}', both, tmp_path) == "0.10 %"


def test_wrong_data_is_not_quoted(suite_results: Path, tmp_path: Path) -> None:
    path = suite_results / store.LINES
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"output": "same"', '"wrong": 1', 1), encoding="utf-8")
    with pytest.raises(Failure, match="wrong data in apache"):
        filled("text", {"made": store.read(suite_results)}, tmp_path)


def test_verb(suite_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "text.md"
    words = ["bench", "report", str(suite_results), "--markdown", str(file)]
    assert main(words) == 2  # no template
    (tmp_path / "text.md.j2").write_text('{{ left("apache") }}\n', encoding="utf-8")
    capsys.readouterr()
    assert main(words) == 0
    assert file.read_text(encoding="utf-8") == "0.10 %\n"
    assert capsys.readouterr().out == f"text: {file}\n"
    other = tmp_path / "other"
    other.write_text('{{ table("none") }}', encoding="utf-8")
    assert main([*words, "--template", str(other)]) == 1
    out, err = capsys.readouterr()
    assert not out and len(err.splitlines()) == 1
    assert file.read_text(encoding="utf-8") == "0.10 %\n"
    assert sorted(p.name for p in tmp_path.glob("text*")) == ["text.md", "text.md.j2"]
    assert main(["bench", "report", str(suite_results), "--template", "x"]) == 2


def lines_of(names: Sequence[str]) -> list[str]:
    """Return results of benchmarks of the suites, with all their modes and metrics."""
    benchmarks, _ = spec.load_all()
    lines: list[dict[str, Any]] = [
        {"type": "suite", "rounds": 2, "seconds": 1.0, "benchmarks": {n: {} for n in names}},
        {"type": "host", "cpus": 2, "comparable": True, "where": "in place", "host_cpus": 2},
    ]
    for name in names:
        bench = benchmarks.get(name)
        metrics = [m.name for m in bench.metrics] if bench else ["I/O", "compute"]
        for mode in (*bench.modes(), "stock") if bench else ("off", "fpr", "ideal-compute"):
            for number in range(2):
                sample = {"type": "sample", "benchmark": name, "mode": mode, "round": number}
                sample |= {"metrics": dict.fromkeys(metrics, 1.0), "operations": 10}
                sample |= {"latency_ns": {"p50": 1, "p99": 2, "p99.9": 3}}
                counts = {"nr_tlb_remote_flush_received": 100}
                lines.append({**sample, "counters": counts})
    return [json.dumps({"schema": 2, **line}) for line in lines]


def test_places_for_what_is_not_measured_yet_work() -> None:
    """The template shows more as soon as there is more: it must not fail then."""
    benchmarks, suites = spec.load_all()
    found = {
        "default": [bench.name for bench in suites["default"].benchmarks],
        "cpus8": [name for name, bench in benchmarks.items() if 8 in bench.cpus],
        "eviction": ["evict", "evict-processes", "lmdb-evict"],
        "eviction-databases": ["lmdb-evict", "leveldb-evict"],
        "others": ["alloc"],
    }
    text = markdown.render(
        {name: store.parse(lines_of(names)) for name, names in found.items()}, TEMPLATE
    )
    for name in ("apache", "lmdb-evict", "munmap-1", "compute-xz"):
        assert f"| `{name}`" in text
    assert "`munmap-victim` loses 0.0 %" in text
    assert "p99.9 1.00 (1.00..1.00); pages a second 1.00" in text
    assert "\n\n\n" not in text
