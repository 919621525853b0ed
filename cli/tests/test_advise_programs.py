# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire advise` for Apache, ripgrep and a threaded Python script on several kernels: those
that are built here, and Debian's own 6.1, 6.12 and the newest (scripts/debian-kernels). Each run
comes to the same verdict, and the forecast of each kernel comes true on the one with FPR.
"""

import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.driver.traced import run_traced

from ceasefire import paths
from ceasefire.bench.measure import programs
from ceasefire.paths import build_dir
from ceasefire.vm import GuestSpec
from ceasefire.vm.spec import parse_disk

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).with_name("data")
LIMIT = 7200.0
# Of `advise` on each kernel; of the programs without and with FPR.
RUNS = int(os.environ.get("CEASEFIRE_ADVISE_RUNS", "10"))
ROUNDS = 5
# Of load. Apache starts and ends its threads as well, which FPR does not help with: that has to be
# little beside the requests, also where a busy host makes these few.
SECONDS = "20"
TOLERANCE = 0.2
FILES = 800
PROGRAMS = ("apache", "ripgrep", "python")
# The kernels, and how their releases begin; the newest one of a distribution is any after 6.12.
KERNELS = {"run": "6.12.", "stock": "6.12.", "bookworm": "6.1.", "trixie": "6.12."}
NEWEST = "trixie-backports"
ALL_KERNELS = (*KERNELS, NEWEST)
# A timer that comes late because the host is busy.
NOT_OURS = (r"WARNING: .* hrtimer_forward\+",)
DISK = "/run/disk/0"
# Each line of output that counts begins with a word; the programs print JSON or nothing.
START = """
cd $DISK || exit 1
received() { sed -n 's/^nr_tlb_remote_flush_received //p' /proc/vmstat; }
split -b 128K all parts/
echo "release $(uname -r)"
$SHOOTDOWNS parts/aa file=5 >/dev/null || exit 1
$CEASEFIRE record -o /run/recording -- $SHOOTDOWNS parts/aa file=200 dontneed=50 || exit 1
echo "page shootdowns $($CEASEFIRE advise --json -i /run/recording)"
"""
SCRIPT = """
$CEASEFIRE advise --json --repeat $RUNS -o /run/page -- $RUN_OFF >/dev/null </dev/null || exit 1
echo "page $PROGRAM $(cat /run/page)"
if [ "$KERNEL" = run ]; then
  $RUN_ON >/dev/null || exit 1
  for round in $(seq $ROUNDS); do
    a=$(received); $RUN_OFF >/run/off || exit 1
    b=$(received); $RUN_ON >/run/on || exit 1
    c=$(received)
    echo "$PROGRAM received $((b - a)) $((c - b))"
    echo "$PROGRAM off $(tail -n 1 /run/off)"
    echo "$PROGRAM fpr $(tail -n 1 /run/on)"
  done
fi
"""


def command(program: str, way: str) -> str:
    """Return the load, and what it is started by."""
    if program == "ripgrep":
        return f"mode-run {way} rg --mmap -j2 --no-ignore --count-matches struct files"
    if program == "python":
        return f"mode-run {way} {shlex.join([sys.executable, str(DATA / 'hash_files.py')])} parts 4"
    words = ["-m", "ceasefire.bench.apps.apache", "--seconds", SECONDS, "--cpus", "2"]
    return shlex.join(
        ["env", f"PYTHONPATH={ROOT / 'cli'}", sys.executable, *words, "--with", f"mode-run {way}"]
    )


def image(kernel: str) -> str:
    """Return what a guest boots."""
    if kernel in paths.KERNEL_KINDS:
        return kernel
    done = subprocess.run(
        [ROOT / "scripts" / "debian-kernels"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(build_dir() / "debian" / kernel / "vmlinuz")


@functools.cache
def guest(kernel: str) -> list[str]:
    """Return what the script prints in a guest."""
    lost = [name for name in ("apache2", "wrk", "rg") if not shutil.which(name, path=search())]
    assert not lost, f"{lost[0]} is missing: make deps-bench"
    headers = sorted((build_dir() / "linux" / "include" / "linux").glob("*.h"))[:FILES]
    assert len(headers) == FILES
    folder = build_dir() / "runs" / f"advise-{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        program = folder / "shootdowns"
        flags = ["-static", "-g", "-O1", "-fno-omit-frame-pointer", "-pthread"]
        subprocess.run(["cc", *flags, DATA / "shootdowns.c", "-o", program], check=True)
        values = {"KERNEL": kernel, "DISK": DISK, "ROUNDS": str(ROUNDS), "RUNS": str(RUNS)}
        values |= {"PATH": search(), "SHOOTDOWNS": str(program)}
        values |= {"CEASEFIRE": str(ROOT / "ceasefire")}
        lines = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
        lines += ["export PATH", f"mkdir {DISK}/files {DISK}/parts"]
        lines += [f"cp {shlex.join(map(str, headers))} {DISK}/files"]
        lines += [f"cat {DISK}/files/* >{DISK}/all", START]
        for name in PROGRAMS:
            script = SCRIPT.replace("$RUN_OFF", command(name, "off"))
            lines += [f"PROGRAM={name}", script.replace("$RUN_ON", command(name, "fpr"))]
        spec = GuestSpec(
            kernel=image(kernel),
            timeout=LIMIT,
            disks=(parse_disk("brd-ext4:128M"),),
            environment=(("CEASEFIRE_BUILD", str(build_dir())),),
            allow_log=NOT_OURS,
        )
        result = run_traced(spec, ["sh", "-c", "\n".join(lines)])
    finally:
        shutil.rmtree(folder)
    assert result.check() == 0, result.stderr.decode()
    return result.stdout.decode().splitlines()


def search() -> str:
    return programs.search_path()


def page(kernel: str, program: str) -> dict[str, Any]:
    """Return what `advise` has found."""
    begin = f"page {program} "
    found = json.loads(
        next(line for line in guest(kernel) if line.startswith(begin)).removeprefix(begin)
    )
    assert isinstance(found, dict)
    assert found["lost"] == 0
    return found


def removed(program: str) -> float:
    """Return the share of those received that FPR removes: for each request, or of a run."""
    # A program may print nothing.
    split = [line.split(" ", 2) for line in guest("run")]
    lines = [words for words in split if len(words) == 3 and words[0] == program]
    received = [tuple(map(int, rest.split())) for _, what, rest in lines if what == "received"]
    assert len(received) == ROUNDS
    if program != "apache":
        return median(1 - on / off for off, on in received)
    loads = {
        way: [json.loads(rest) for _, what, rest in lines if what == way] for way in ("off", "fpr")
    }
    assert not any(load["wrong"] for way in loads.values() for load in way)
    each = {
        way: [
            load["counters"]["nr_tlb_remote_flush_received"] / load["operations"] for load in found
        ]
        for way, found in loads.items()
    }
    return float(median(1 - on / off for off, on in zip(each["off"], each["fpr"], strict=True)))


@pytest.mark.parametrize("kernel", ALL_KERNELS)
def test_the_kernel_is_that_one(kernel: str) -> None:
    release = next(x.split()[1] for x in guest(kernel) if x.startswith("release "))
    if kernel == NEWEST:
        assert tuple(map(int, release.split(".")[:2])) > (6, 12)
    else:
        assert release.startswith(KERNELS[kernel])


@pytest.mark.parametrize("kernel", ALL_KERNELS)
def test_known_numbers(kernel: str) -> None:
    """The program waits until its other thread runs, but that may be preempted right after."""
    found = page(kernel, "shootdowns")
    causes = found["causes"]
    assert 150 <= causes["munmap"]["received"] <= 205
    assert 150 <= causes["munmap"]["saved_received"] <= 205
    assert 35 <= causes["madvise:DONTNEED"]["received"] <= 55
    assert "unmap_file (shootdowns.c:" in " ".join(str(site) for site in found["sites"])
    # An answer that takes longer than the program is one to somebody else.
    last = causes.get("exit", {"wait_usec": 0.0})
    assert last["wait_usec"] <= 1e6 * found["environment"]["seconds"]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kernel", ALL_KERNELS)
def test_each_run_says_the_same(kernel: str, program: str) -> None:
    found = page(kernel, program)["forecast"]
    assert len(found["verdicts"]) == RUNS
    # Where a busy host stops one of two virtual CPUs, a run may have nothing to say.
    assert set(found["verdicts"]) <= {True, None}, found
    assert found["verdicts"].count(True) > RUNS // 2, found
    assert found["worth"] and found["agree"]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kernel", ALL_KERNELS)
def test_forecast_comes_true(kernel: str, program: str) -> None:
    found = page(kernel, program)["forecast"]
    assert found["share"] == pytest.approx(removed(program), rel=TOLERANCE)


def test_the_stock_kernel_has_no_fpr() -> None:
    assert not page("stock", "ripgrep")["environment"]["fpr"]
    assert page("run", "ripgrep")["environment"]["fpr"]
