# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire doctor`: what it finds on a bare machine, and its tables."""

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ceasefire import output, paths, tables
from ceasefire.checks import here, processor
from ceasefire.checks.base import FAIL, INFO, PASS, check
from ceasefire.doctor import complete, verdict
from ceasefire.launch import prctl

Runner = Callable[..., "subprocess.CompletedProcess[str]"]


def build_library(path: Path, source: str) -> Path:
    done = subprocess.run(
        ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=source, text=True, check=False
    )
    assert done.returncode == 0
    return path


def test_bare_machine_fails_and_says_how_to_fix_it(ceasefire: Runner, empty_build: Path) -> None:
    done = ceasefire("doctor")
    assert done.returncode == 1
    assert "make kernel" in done.stdout
    assert "make tools" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_json_has_every_check_with_its_fix(ceasefire: Runner, empty_build: Path) -> None:
    done = ceasefire("doctor", "--json")
    record = json.loads(done.stdout)
    assert done.returncode == 1
    assert record["usable"] == []
    for checks in record["groups"].values():
        for found in checks:
            assert found["result"] in (PASS, FAIL, INFO)
            assert found["fix"] or found["result"] != FAIL


def test_only_what_is_needed_decides() -> None:
    good = check("a", True, "there", "")
    luxury = check("b", False, "not there", "get it", needed=False)
    bad = check("c", False, "not there", "get it")
    assert luxury.result == INFO
    assert complete([good, luxury])
    assert not complete([good, bad])
    assert verdict([]).startswith("Neither")
    assert verdict(["In a virtual machine"]) == "Ready: in a virtual machine."


INTEL = (
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {}\nflags\t\t: fpu {}\n"
)
AMD = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nflags\t\t: fpu pcid\n"


@pytest.mark.parametrize(
    ("cpuinfo", "meltdown", "evict", "found"),
    [
        (INTEL.format(85, "pcid"), "Not affected", None, "pass: promised in time; pass: PCIDs"),
        (INTEL.format(87, "pcid"), "Mitigation: PTI", None, "info: no promise; info: page table"),
        (INTEL.format(85, ""), "Not affected", "1", "pass: the kernel believes; info: no PCIDs"),
        (AMD, "Not affected", None, "info: no promise known; pass: PCIDs"),
        (AMD, "Not affected", "0", "info: not believed; pass: PCIDs"),
        (AMD, "Vulnerable", "1", "pass: the kernel believes; pass: PCIDs"),
    ],
)
def test_processor(
    cpuinfo: str, meltdown: str, evict: str | None, found: str, tmp_path: Path
) -> None:
    texts = {
        "proc/cpuinfo": f"{cpuinfo}\n{INTEL.format(87, '')}",
        "sys/devices/system/cpu/vulnerabilities/meltdown": f"{meltdown}\n",
        "sys/kernel/mm/ceasefire/fpr/evict": evict,
    }
    for name, text in texts.items():
        if text is not None:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
    checks = processor.checks(tmp_path)
    assert not any(one.needed for one in checks)
    assert all(one.fix for one in checks if one.result == INFO)
    for one, line in zip(checks, found.split("; "), strict=True):
        result, words = line.split(": ")
        assert one.result == result
        assert words in one.found


def test_processor_that_nobody_knows(tmp_path: Path) -> None:
    assert [one.result for one in processor.checks(tmp_path)] == [INFO, INFO]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", ""),
        ("__attribute__((constructor)) void f(void) { __builtin_trap(); }", "ended with status"),
        (
            "#include <unistd.h>\n"
            '__attribute__((constructor)) void f(void) { if (write(2, "hey\\n", 4)) {} }',
            "hey",
        ),
    ],
)
def test_library_is_really_tried(source: str, problem: str, tmp_path: Path) -> None:
    library = build_library(tmp_path / "lib.so", source)
    found = here.preload_problem(library)
    assert found.startswith(problem) or problem in found
    assert bool(found) == bool(problem)


def test_library_that_is_none(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_text("not a library")
    assert "cannot be preloaded" in here.preload_problem(library)


@pytest.mark.parametrize(("switch", "result"), [(True, INFO), (False, FAIL)])
def test_library_is_needed_without_the_switch(
    switch: bool, result: str, empty_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prctl, "available", lambda: switch)
    monkeypatch.setattr(paths, "SYSTEM_LIB_DIRS", ())
    found = {check.name: check for check in here.checks()}
    assert found["preload library"].result == result
    assert found["whole programs"].result == (PASS if switch else INFO)


def test_plain_tables_are_aligned() -> None:
    stream = io.StringIO()
    tables.print_table(["name", "count"], [["a", "1"], ["bcd", "1,000"]], title="t", file=stream)
    assert stream.getvalue() == "t\nname  count\na         1\nbcd   1,000\n"


def test_numbers() -> None:
    assert output.number(1234567) == "1,234,567"
    assert output.number(0.1234) == "0.123"
    assert output.number(1234.5) == "1,234"
