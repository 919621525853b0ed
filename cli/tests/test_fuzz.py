# SPDX-License-Identifier: GPL-2.0-only
"""Random input for every parser of what a program can choose. Each ends soon, and raises nothing
but the error that it declares.

The seed is fixed, and printed with a failure. CEASEFIRE_FUZZ_SEED takes another one,
CEASEFIRE_FUZZ_ROUNDS does more rounds than the normal run.
"""

import io
import json
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from tests.driver import host, mutations

from ceasefire import counters, maps, text
from ceasefire.bench.cost import count
from ceasefire.bench.measure import agent, bound, runner
from ceasefire.bench.report import svg
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Folder
from ceasefire.errors import Failure
from ceasefire.files import open_regular
from ceasefire.launch import executable
from ceasefire.record import mappings, model, page, parse, recorder, symbols, tracefs, web
from ceasefire.record.stacks import Module, Place
from ceasefire.trial import report, samples
from ceasefire.vm import klog

SEED = int(os.environ.get("CEASEFIRE_FUZZ_SEED", "1"))
ROUNDS = int(os.environ.get("CEASEFIRE_FUZZ_ROUNDS", "150"))
# A round takes milliseconds.
ROUND_LIMIT = 600.0
DATA = Path(__file__).with_name("data")
TOKEN = "0123456789abcdef"

# What parsers look for, and what they should not fall over.
PIECES = [
    *(
        b"\n",
        b"\r",
        b"\x0b",
        b"\x0c",
        b"\x1c",
        b"\x85",
        "\u2028".encode(),
        b"\0",
        b"\xff",
        b"\x1b[",
    ),
    *(
        b" ",
        b"  ",
        b"-",
        b":",
        b"=",
        b"(",
        b")",
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b",",
        b"\\",
        b"<",
        b">",
    ),
    *(b"0", b"-1", b"9" * 25, b"9" * 5000, b"f" * 40, b"1e999", b"NaN", b"Infinity", b"1.5", b"0x"),
    *(b"null", b"true", b"[" * 3000, b'{"a":' * 3000, b"kB", b"VmFlags:", b"Size:", b"Rss:"),
    *(
        b"NR 11 (0, 1, 2, 3, 4, 5)",
        b"=> <7f00>",
        b"<stack trace>",
        b"<user stack trace>",
        b"-1 [000]",
    ),
    *(b"sys_enter: ", b"tlb_flush: pages:1 reason:x (4)", b"CPU:1 [LOST 9 EVENTS]", b"NR 59 = 0"),
    *(TOKEN.encode() + b" sample on 1 0 5 1", b"sample off ", b"text ", b"counters", b"metrics"),
    *(
        b"ceasefire-vm: command returned 0",
        b"ceasefire-test: mutation 0 mutated status 0",
        b"BUG: ",
    ),
]
MAPS = (DATA / "smaps.txt").read_bytes() + Path("/proc/self/maps").read_bytes()[:4000]
TRACE = b"""\
  prog-10    [001] d..1.   12.345678: sys_enter: NR 9 (0, 4000, 1, 2, 3, 0)
  prog-10    [001] d..1.   12.345679: sys_exit: NR 9 = 140000000000000
  prog-10    [001] d..1.   12.345680: sys_enter: NR 11 (7f5500000000, 4000, 0, 0, 0, 0)
  prog-10    [001] d..1.   12.345681: tlb_flush: pages:-1 reason:remote ipi send (4)
  prog-10    [001] d..1.   12.345682: csd_queue_cpu: cpu=0 callsite=x func=flush_tlb_func csd=0
  prog-10    [000] d..1.   12.345683: tlb_flush: pages:-1 reason:remote shootdown (1)
  prog-10    [001] d..1.   12.345684: sys_exit: NR 11 = 0
  prog-10    [001] d..1.   12.345685: task_newtask: pid=11 comm=a clone_flags=50f00 oom=0
  prog-11    [001] d..1.   12.345686: page_fault_user: address=0x7f12 ip=0x40 error_code=0x7
  prog-11    [001] d..1.   12.345687: sys_exit: NR 59 = 0
  prog-11    [001] d..1.   12.345688: sched_process_exit: comm=a pid=11 prio=120
CPU:1 [LOST 42 EVENTS]
"""
STACKS = b"""\
  prog-10    [001] d..1.   12.345681: tlb_flush: pages:-1 reason:remote ipi send (4)
  prog-10    [001] d..1.   12.345682: <stack trace>
 => native_flush_tlb_multi
 => __x64_sys_munmap+0x12/0x20
  prog-10    [001] d..1.   12.345683: <user stack trace>
 =>  <00007f0000001000>
 =>  <00007f0000002000>
"""
KLOG = (DATA / "klog-good.txt").read_bytes()
SAMPLE = {
    **{"schema": 2, "type": "sample", "benchmark": "b", "mode": "on", "round": 1, "wrong": 0},
    **{"metrics": {"rate": 1.5}, "operations": 3, "output": "x", "counters": {"a": 1}},
    **{"latency_ns": {"p50": 5}, "histogram": [[1, 2]]},
}
CYCLE = {
    **{"schema": 1, "type": "cycle", "case": "c", "variant": "plain", "repeat": 0, "ops": 2},
    **{"ns_per_op": 1.5, "counters": {"a": 1}},
}
BOUND = {
    **{"schema": 1, "type": "bound", "kind": "busy", "rounds": 2, "worst_ns": 3, "hz": 250.0},
    **{"wrong": 0, "counters": {"a": 1}, "latency_ns": {"p50": 5}, "histogram": [[1, 2]]},
}


def changed(chance: random.Random, data: bytes) -> bytes:
    """Return data with some random changes."""
    for _ in range(chance.randint(1, 8)):
        at = chance.randint(0, len(data))
        end = min(len(data), at + chance.choice((0, 1, 3, 20, 200)))
        kind = chance.randrange(5)
        if kind == 0:
            middle = chance.choice(PIECES)
        elif kind == 1:
            middle = chance.randbytes(end - at)
        elif kind == 2:
            middle = data[at:end] * 2
        elif kind == 3:
            other = chance.randint(0, len(data))
            middle = data[other : other + 100]
        else:
            middle = b""
        data = data[:at] + middle + data[end:]
    return data[: 1 << 16]


def inputs(name: str, *starts: bytes, rounds: int = ROUNDS) -> Iterator[bytes]:
    """Yield inputs; where one fails the seed of it is printed."""
    for number in range(rounds):
        chance = random.Random(f"{SEED}-{name}-{number}")
        print(f"{name}: round {number} of seed {SEED}")
        begin = time.monotonic()
        yield changed(chance, chance.choice(starts))
        assert time.monotonic() - begin < ROUND_LIMIT


def fed(data: bytes, name: str, take: Callable[[bytes], object]) -> None:
    """Give data in pieces of any size."""
    chance = random.Random(f"{SEED}-{name}-{len(data)}")
    while data:
        size = chance.choice((1, 7, 100, 10000))
        take(data[:size])
        data = data[size:]


def test_maps() -> None:
    for data in inputs("maps", MAPS):
        lines = text.decoded(data)
        for region in mappings.parse_maps(lines):
            assert region.start >= 0 and "\n" not in region.path
            mappings.usual_file(region.path)
        for mapping in maps.parse(lines.split("\n")):
            assert mapping.rights
        counters.parse_smaps(lines)
        counters.parse_status(lines, "Rss")
        counters.parse_vmstat(lines)
        counters.parse_interrupts(lines)
        tracefs.parse_stats(lines)


class Recorded:
    """Stands for the trace buffers."""

    def __init__(self, calls: bytes, stacks: bytes) -> None:
        self._texts = [text.decoded(calls), text.decoded(stacks)]

    def calls(self) -> Iterator[str]:
        yield self._texts[0]

    def stacks(self) -> Iterator[str]:
        yield self._texts[1]


def test_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    kept = tmp_path / "recording"
    for calls in inputs("trace", TRACE, TRACE * 20):
        stacks = changed(random.Random(calls), STACKS * 3)
        reader = recorder.Reader(cast(tracefs.Tracing, Recorded(calls, stacks)))
        reader.saw_maps(10, mappings.parse_maps(text.decoded(changed(random.Random(stacks), MAPS))))
        reader.end(lambda: False)
        state = reader.state
        recording = model.Recording(
            model.Environment(["x"], "1", 2, False, False),
            causes=state.causes,
            programs=state.programs,
            why_not=dict(state.why_not),
            by_source=state.by_source,
            lazy=state.lazy,
            files=dict(state.files),
            calls=state.calls,
            sites=recorder.named_sites(recorder.placed_sites(state), {}),
        )
        stream = io.StringIO()
        page.show(recording, stream)
        assert stream.getvalue().replace("\n", "").isprintable()
        assert web.document(recording).replace("\n", "").isprintable()
        kept.write_text(json.dumps(model.to_json(recording)))
        assert model.load(kept).total() == recording.total()


def test_single_fields_of_events() -> None:
    readers: list[Callable[[str], object]] = [
        *(parse.entered, parse.left, parse.flushed, parse.fault_address, parse.queued),
        *(parse.new_task, parse.function_of),
    ]
    fields = [line.partition(b": ")[2].partition(b": ")[2] for line in TRACE.split(b"\n")]
    for data in inputs("fields", *filter(None, fields)):
        for read in readers:
            read(text.decoded(data))


def test_recordings_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    part = model.Sum(9, 9, 8.0, 8.0, 1, 2.0)
    recording = model.Recording(
        model.Environment(["cat", "x"], "6.12", 2, False, True),
        causes={"munmap": part, "reclaim": part, "madvise:FREE": part},
        programs={"a": part, "b": part},
        why_not={"dirty": 1},
        files={"/a/b": 2},
        calls={"munmap": model.Calls(1, 2.0, 3, 4.0)},
        sites=[model.Site("a", "munmap", ["main", "f"], part)],
        machine_sent=100,
    )
    path = tmp_path / "recording"
    start = json.dumps(model.to_json(recording)).encode()
    for data in inputs("recording", start):
        path.write_bytes(data)
        try:
            found = model.load(path)
        except Failure:
            continue
        stream = io.StringIO()
        page.show(found, stream)
        assert stream.getvalue().replace("\n", "").isprintable()
        web.document(found)
        json.dumps(page.to_object(found))


def test_elf_files(tmp_path: Path) -> None:
    built = tmp_path / "built"
    subprocess.run(["cc", "-g", DATA / "recycles.c", "-o", built], check=True)
    content = built.read_bytes()
    places = (0, 64, 0x1000, 0x1180, 0x1200, 1 << 40)
    # What leads the reader: headers at the start, and the table of sections at the end.
    for number, head in enumerate(inputs("elf", content[:900], rounds=max(ROUNDS // 10, 1))):
        chance = random.Random(head)
        table = content[-2400:]
        if chance.random() < 0.7:
            # Of the same length, so that what follows stays in its place.
            table = changed(chance, table)[: len(table)].ljust(len(table), b"\0")
        path = tmp_path / f"elf{number % 4}"
        path.write_bytes(head[:900].ljust(900, b"\0") + content[900:-2400] + table)
        with open_regular(path) as file:
            module = Module(str(path), *symbols.identity(file))
        limits = symbols.Limits(cpu=5, seconds=30.0, memory=1 << 29)
        found = symbols.resolve([Place(module, place) for place in places], limits)
        assert set(found.problems) <= {str(path)}
        assert all(isinstance(name, str) for name in found.names.values())
        executable.preload_obstacle(path)
        executable.gains_privileges(path)
        executable.binary_of(str(path))


def test_output_of_try() -> None:
    sample = f"sample fpr 1 0 5 {'0' * 16} fpr_skip=9 b=-1"
    good = f"{TOKEN} run off 0\n{TOKEN} {sample}\n{TOKEN} text hello\nnoise\n".encode()
    for data in inputs("try", good, good * 5):
        reader = samples.Reader(TOKEN)
        fed(data, "try", reader)
        found = reader.found()
        assert all(line.isprintable() for _, line in found.texts)
        if samples.complete(found, ["off", "fpr"], 1):
            report.verdict(found, ["off", "fpr"])


def test_output_of_benchmarks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    task = agent.Task("b", "on", 0, "x", {"rate": "metrics.rate"}, "operations", 1.0)
    line = json.dumps(SAMPLE).encode()
    kept: list[dict[str, Any]] = []
    for data in inputs("bench", line, b"noise\n" + line + b"\n"):
        done = agent.Done(0, data, data, "0" * 16, 1.0, {})
        monkeypatch.setattr(agent, "run", lambda *_, done=done: done)
        record = agent.sample(task, tmp_path)
        json.dumps(record, allow_nan=False)
        assert store.well_formed(json.dumps(record).encode()) is not None
        monkeypatch.setattr(Folder, "add", lambda _, record: kept.append(record))
        folder = Folder(str(tmp_path / "results"), "x")
        fed(data + b"\n", "bench", runner.Lines(folder, 2, runner.Progress(10, 1.0)))
    assert all(record["type"] in ("sample", "environment") for record in kept)


def test_results_of_others() -> None:
    lines = [json.dumps(SAMPLE), json.dumps({"schema": 2, "type": "host", "cpus": 2})]
    for data in inputs("results", "\n".join(lines).encode()):
        try:
            store.parse(text.decoded(data).split("\n"))
        except Failure as failure:
            assert str(failure)
    for data in inputs("cycle", f"{json.dumps(CYCLE)}\n".encode()):
        for record in count.samples_in(text.decoded(data).split("\n"), 0):
            line = json.dumps({"schema": store.SCHEMA, **record}, allow_nan=False)
            assert store.well_formed(line.encode()) is not None
    for data in inputs("bound", f"{json.dumps(BOUND)}\n".encode()):
        for record in bound.samples_in(text.decoded(data).split("\n")):
            line = json.dumps({"schema": store.SCHEMA, **record}, allow_nan=False)
            assert store.well_formed(line.encode()) is not None


def test_logs_and_reports_of_guests() -> None:
    report = (
        b'<testsuites><testsuite><testcase name="a"><failure>x</failure></testcase></testsuite>'
    )
    for data in inputs("klog", KLOG, report + b"</testsuites>"):
        lines = data.decode(errors="replace")
        verdict = klog.scan(lines.split("\n"))
        assert text.shown_lines(klog.describe(verdict)).replace("\n", "").isprintable()
        mutations.read_attempts(lines.split("\n"))
        host.junit_cases(lines)


def test_text() -> None:
    for data in inputs("text", b"a name", MAPS[:300]):
        name = text.decoded(data)
        assert text.shown(name).isprintable()
        assert text.quoted([name]).isprintable()
        picture = svg.bars(name, [svg.Bar(name, 1.0, name, "off")])
        assert picture.replace("\n", "").isprintable()
        shown = [found.text for found in ElementTree.fromstring(picture).iter() if found.text]
        assert text.shown(name) in shown or not name.strip()
        assert all(line.isprintable() for line in text.lines_of(data))
