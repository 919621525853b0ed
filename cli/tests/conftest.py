# SPDX-License-Identifier: GPL-2.0-only
"""Shared by the tests: running the command line, fixtures, the markers of tests that boot, made-up
kernels and results of a suite.
"""

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "cli"), str(ROOT)]

# A call that boots a guest takes ten to thirty seconds.
CALL_LIMIT = 2400.0


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, and let Control-C end what is tested."""
    # A shell ignores it in what it starts in the background, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "guest: boots a virtual machine, needs a built kernel")
    config.addinivalue_line("markers", "traced: its guest traces, and runs much of Python")
    config.addinivalue_line("markers", "long: takes long, or needs more kernels or programs")


@pytest.fixture
def root() -> Path:
    """Return the root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def started() -> str:
    """Return words of a shell that start the command line in a guest, quicker than ./ceasefire."""
    script = Path(__file__).with_name("data") / "start.py"
    return shlex.join([sys.executable, "-I", "-B", str(script)])


@pytest.fixture
def data() -> Path:
    """Return the directory of recorded inputs."""
    return Path(__file__).with_name("data")


Runner = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def ceasefire() -> Runner:
    """Return a function that runs the command line and collects what it prints."""

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "cli"), **variables}
        return subprocess.run(
            [sys.executable, "-m", "ceasefire", *words],
            capture_output=True,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=CALL_LIMIT,
            check=False,
        )

    return run


@pytest.fixture
def empty_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the build directory to a place of its own with nothing built.

    Nothing that is booted there is a guest of the job that runs the tests.
    """
    monkeypatch.delenv("CEASEFIRE_LOG_LIST", raising=False)
    (tmp_path / ".ceasefire-build").touch()
    monkeypatch.setenv("CEASEFIRE_BUILD", str(tmp_path))
    return tmp_path


FakeGuest = Callable[[str], None]


@pytest.fixture
def fake_guest(empty_build: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGuest:
    """Put a shell script in the place of virtme-run and QEMU; return what fills it in.

    The script finds the console in $log. It may write a process of its own to $PIDFILE.
    """
    image = empty_build / "linux" / "build-run" / "arch" / "x86" / "boot" / "bzImage"
    image.parent.mkdir(parents=True)
    image.touch()
    tools = empty_build / "venv" / "bin"
    tools.mkdir(parents=True)
    qemu = tools / "qemu-system-x86_64"
    qemu.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    qemu.chmod(0o755)
    script = tools / "virtme-run"
    script.touch(0o755)
    monkeypatch.setenv("PIDFILE", str(empty_build / "pid"))
    log = (
        'while [ "$1" != --qemu-bin ]; do shift; done; '
        "log=$(sed -n 's/.*word=file,id=console,path=\\(.*\\) found=1.*/\\1/p' \"$2\")"
    )

    def write(text: str) -> None:
        script.write_text(f"#!/bin/sh\n{log}\n{text}\n", encoding="utf-8")

    return write


_TLB_EVENTS = (
    *("nr_tlb_remote_flush", "nr_tlb_remote_flush_received"),
    *("nr_tlb_local_flush_all", "nr_tlb_local_flush_one"),
)
_SYSFS = {
    "fpr": {
        "enabled": "1",
        "parked": "300",
        "contexts": "2",
        "groups": "1",
        "tag_bytes": "8192",
        "pool_limit": "4096",
        "parked_limit": "8192",
        "stale_limit": "65536",
        "debt_age_ms": "1000",
    },
    "latr": {
        "enabled": "never [ask] always",
        "settle_ms": "12",
        "late_ms": "100",
        "held_limit": "4096",
    },
    "sharers": {"enabled": "never ask [always]"},
    "morsel": {"enabled": "[never] ask", "pages": "20", "limit": "40"},
}


@pytest.fixture
def stock_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for a kernel that only counts interrupts; return where its files are."""
    monkeypatch.setattr("ceasefire.counters.VMSTAT", tmp_path / "vmstat")
    monkeypatch.setattr("ceasefire.counters._INTERRUPTS", tmp_path / "interrupts")
    monkeypatch.setattr("ceasefire.modes.SYSFS", tmp_path / "sysfs")
    (tmp_path / "vmstat").write_text("pgfault 1\nnr_page_table_pages 3\n")
    (tmp_path / "interrupts").write_text("  CPU0 CPU1\nTLB: 120 30 TLB shootdowns\n")
    return tmp_path


@pytest.fixture
def kernel_events() -> list[str]:
    """Return the names of all counters of the kernel of this repository."""
    header = ROOT / "kernel/src/include/linux/ceasefire_events.h"
    found = re.findall(r'\bE\(\w+,\s*"(\w+)"\)', header.read_text(encoding="utf-8"))
    return [*_TLB_EVENTS, *found]


@pytest.fixture
def whole_kernel(stock_kernel: Path, kernel_events: list[str]) -> Path:
    """Stand in for a kernel with all counters, whose values are 1, 2 and so on."""
    lines = [f"{name} {number}\n" for number, name in enumerate(kernel_events, 1)]
    (stock_kernel / "vmstat").write_text("".join(["nr_page_table_pages 3\n", *lines]))
    for mechanism, values in _SYSFS.items():
        folder = stock_kernel / "sysfs" / mechanism
        folder.mkdir(parents=True)
        for name, value in values.items():
            (folder / name).write_text(f"{value}\n")
    return stock_kernel


# What each mode of the made-up results does: rate, shootdowns for each operation, latency in ns.
_MADE = {
    "apache": {
        "off": (100.0, 0.5, 40_000),
        "fpr": (122.0, 0.0005, 30_000),
        "sendfile": (140.0, 0.0, 25_000),
        "stock": (101.0, 0.51, 40_000),
    },
    "munmap-other": {
        "off": (78.0, 1.0, 0),
        "fpr": (97.0, 0.0, 0),
        "ideal-compute": (100.0, 0.0, 0),
    },
    "compute-xz": {"off": (10.0, 0.0, 0), "fpr": (10.05, 0.0, 0)},
}
_GROUPS = {"apache": "application", "munmap-other": "micro", "compute-xz": "overhead"}
_METRICS = {"apache": ["requests"], "munmap-other": ["I/O", "compute"], "compute-xz": ["time"]}


def _made_histogram(chance: random.Random, middle: int) -> list[list[int]]:
    counts: dict[int, int] = {}
    for _ in range(2000):
        ns = int(chance.lognormvariate(0, 0.4) * middle * (50 if chance.random() < 0.01 else 1))
        width = max(32, 1 << (ns.bit_length() - 1)) // 8
        counts[ns // width * width] = counts.get(ns // width * width, 0) + 1
    # One in 200,001 takes a second.
    return [*([ns, 100 * count] for ns, count in sorted(counts.items())), [1 << 30, 1]]


def _made_boot(cpus: int, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a boot: all modes but stock, or that one alone."""
    chance = random.Random(cpus)
    where = "in a guest with emulated CPUs (TCG)"
    yield {
        "type": "host",
        "cpus": cpus,
        "comparable": cpus <= 4,
        "where": where,
        "host_cpus": 4,
        "kernel_kind": kind,
        "date": "2026-01-01",
        "commit": "0123456789ab",
    }
    yield {"type": "environment", "kernel": f"6.12-{kind}", "cpu": "made up", "fpr": kind == "run"}
    for name, modes in _MADE.items():
        for number in range(5):
            for mode, (rate, shot, middle) in modes.items():
                if (mode == "stock") != (kind == "stock") or (name == "compute-xz" and cpus > 2):
                    continue
                line = {"type": "sample", "benchmark": name, "mode": mode, "round": number}
                around = {m: rate * chance.uniform(0.97, 1.03) for m in _METRICS[name]}
                if mode == "fpr" and "I/O" in around:
                    around["I/O"] *= 100  # as an emulator may have it: wide numbers
                line |= {"metrics": around, "operations": 10000, "output": "same"}
                line |= {"counters": {"nr_tlb_remote_flush_received": int(shot * cpus * 5000)}}
                if middle:
                    line |= {"latency_ns": {"p50": middle, "p99.9": middle * chance.uniform(4, 6)}}
                    line |= {"histogram": _made_histogram(chance, middle)}
                yield line


@pytest.fixture
def suite_results(tmp_path: Path) -> Path:
    """Return a folder with made-up results of a suite that have all there can be: several sizes of
    guests, one with times that mean nothing, an ideal, histograms, the stock kernel, a failure.
    """
    facts = {
        name: {
            "group": group,
            "title": f"{name}, made up <for> the tests",
            "modes": list(_MADE[name]),
            "metrics": [
                {"name": m, "path": m, "better": "less" if m == "time" else "more"}
                for m in _METRICS[name]
            ],
            "verify": "self",
            "paper": {"compute": "+21 %"} if name == "munmap-other" else {},
        }
        for name, group in _GROUPS.items()
    }
    lines: list[dict[str, Any]] = [
        {"type": "suite", "name": "made", "rounds": 5, "seconds": 1.0, "benchmarks": facts}
    ]
    for cpus in (2, 4, 16):
        lines += [*_made_boot(cpus, "run"), *_made_boot(cpus, "stock")]
    failed = {"benchmark": "apache", "mode": "fpr", "round": 5, "failed": "no answer"}
    lines.append({"type": "sample", **failed})
    folder = tmp_path / "made"
    folder.mkdir()
    text = "".join(json.dumps({"schema": 2, **line}) + "\n" for line in lines)
    (folder / "samples.jsonl").write_text(text, encoding="utf-8")
    return folder
