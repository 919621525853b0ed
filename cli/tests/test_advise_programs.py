# SPDX-License-Identifier: GPL-2.0-only
"""The forecast of `ceasefire advise` for Apache and ripgrep, made on the kernel with FPR and on the
stock kernel, against what FPR then removes.
"""

import json
import shlex
import shutil
import sys
from pathlib import Path
from statistics import median

import pytest

from ceasefire.bench.measure import programs
from ceasefire.paths import build_dir
from ceasefire.vm import GuestSpec, run_guest
from ceasefire.vm.spec import parse_disk

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 3600.0
ROUNDS = 5
TOLERANCE = 0.2
FILES = 800
PROGRAMS = ("apache", "ripgrep")
DISK = "/run/disk/0"
# Each line of output that counts begins with a word; the programs print JSON or nothing.
SCRIPT = """
cd $DISK || exit 1
sent() { sed -n 's/^nr_tlb_remote_flush //p' /proc/vmstat; }
$ADVISE --json -o /run/page -- $RUN_OFF >/dev/null || exit 1
echo "page $(cat /run/page)"
[ "$KERNEL" = run ] || exit 0
$RUN_FPR >/dev/null || exit 1
for round in $(seq $ROUNDS); do
  a=$(sent); $RUN_OFF >/run/off || exit 1
  b=$(sent); $RUN_FPR >/run/fpr || exit 1
  c=$(sent)
  echo "sent $((b - a)) $((c - b))"
  echo "off $(tail -n 1 /run/off)"
  echo "fpr $(tail -n 1 /run/fpr)"
done
"""


def command(program: str, way: str) -> str:
    """Return the load, and what it is started by."""
    if program == "ripgrep":
        return f"mode-run {way} rg --mmap -j2 --no-ignore --count-matches struct files"
    words = ["-m", "ceasefire.bench.apps.apache", "--seconds", "3", "--cpus", "2"]
    return shlex.join(
        ["env", f"PYTHONPATH={ROOT / 'cli'}", sys.executable, *words, "--with", f"mode-run {way}"]
    )


def guest(program: str, kernel: str) -> list[str]:
    """Return what the script prints in a guest."""
    headers = sorted((build_dir() / "linux" / "include" / "linux").glob("*.h"))[:FILES]
    assert len(headers) == FILES
    values = {
        "KERNEL": kernel,
        "DISK": DISK,
        "ROUNDS": str(ROUNDS),
        "PATH": programs.search_path(),
    }
    lines = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    lines += [
        "export PATH",
        f"mkdir {DISK}/files",
        f"cp {shlex.join(map(str, headers))} {DISK}/files",
    ]
    script = "\n".join(lines) + SCRIPT
    for name, value in (
        ("$ADVISE", f"{ROOT}/ceasefire advise"),
        ("$RUN_OFF", command(program, "off")),
        ("$RUN_FPR", command(program, "fpr")),
    ):
        script = script.replace(name, value)
    spec = GuestSpec(
        kernel=kernel,
        timeout=LIMIT,
        disks=(parse_disk("brd-ext4:128M"),),
        environment=(("CEASEFIRE_BUILD", str(build_dir())),),
    )
    result = run_guest(spec, ["sh", "-c", script], name="pytest")
    assert result.check() == 0, result.stderr.decode()
    return result.stdout.decode().splitlines()


def forecast(lines: list[str]) -> float:
    """Return the share of the shootdowns that FPR would remove."""
    page = json.loads(
        next(line for line in lines if line.startswith("page ")).removeprefix("page ")
    )
    assert page["lost"] == 0
    found = page["forecast"]
    assert found["sent"] > 100
    return float(found["removed"] / found["sent"])


def removed(program: str, lines: list[str]) -> float:
    """Return the share that it removes: for each request, or of those of a run."""
    sent = [tuple(map(int, x.split()[1:])) for x in lines if x.startswith("sent ")]
    assert len(sent) == ROUNDS
    if program == "ripgrep":
        return median(1 - fpr / off for off, fpr in sent)
    loads = {
        way: [json.loads(x.partition(" ")[2]) for x in lines if x.startswith(f"{way} {{")]
        for way in ("off", "fpr")
    }
    assert not any(load["wrong"] for way in loads.values() for load in way)
    each = {
        way: [load["counters"]["nr_tlb_remote_flush"] / load["operations"] for load in found]
        for way, found in loads.items()
    }
    return float(median(1 - fpr / off for off, fpr in zip(each["off"], each["fpr"], strict=True)))


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    """Return a program that is installed."""
    needed = {"apache": ("apache2", "wrk"), "ripgrep": ("rg",)}[request.param]
    lost = [name for name in needed if shutil.which(name, path=programs.search_path()) is None]
    assert not lost, f"{lost[0]} is missing: make deps-bench"
    return str(request.param)


@pytest.fixture(scope="module")
def on_run(program: str) -> list[str]:
    """Return what the kernel with FPR has said."""
    return guest(program, "run")


def test_forecast_comes_true(program: str, on_run: list[str]) -> None:
    assert forecast(on_run) == pytest.approx(removed(program, on_run), rel=TOLERANCE)


def test_forecast_of_the_stock_kernel_comes_true(program: str, on_run: list[str]) -> None:
    stock = guest(program, "stock")
    assert forecast(stock) == pytest.approx(removed(program, on_run), rel=TOLERANCE)


def test_the_stock_kernel_has_no_fpr() -> None:
    spec = GuestSpec(kernel="stock", timeout=LIMIT)
    result = run_guest(spec, ["test", "!", "-e", "/sys/kernel/mm/ceasefire"], name="pytest")
    assert result.check() == 0
