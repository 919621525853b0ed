# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire try` with real guests, which take ten seconds each. Needs the kernel `run`; the long
tests need `stock` too.
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ceasefire.counters import RECEIVED
from ceasefire.trial.samples import Sample, Trial, complete

pytestmark = pytest.mark.guest

Runner = Callable[..., "subprocess.CompletedProcess[str]"]
# More than a hundred runs of programs that take tenths of a second.
LIMIT = 2400.0
ROUNDS = 12
# That pages are given back in a run.
TIMES = 200


def build(source: Path, path: Path, *flags: str) -> Path:
    subprocess.run(["cc", "-O2", "-pthread", *flags, source, "-o", path], check=True)
    return path


def tried(root: Path, *words: str, **given: Any) -> "subprocess.CompletedProcess[str]":
    """Run `ceasefire try` as a user does, with an input."""
    return subprocess.run(
        [root / "ceasefire", "try", *words],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        **{"stdin": subprocess.DEVNULL, **given},
    )


def says_why(done: "subprocess.CompletedProcess[str]") -> None:
    """Check a trial in which nothing was done: there is no ratio, but a reason."""
    assert done.returncode == 0, done.stderr
    assert "FPR skipped nothing, so there is no ratio of runtimes." in done.stdout
    assert not re.search(r"\dx\b", done.stdout)
    assert "unclear" not in done.stdout
    assert "the mapping recycles" in done.stdout
    assert "The output is the same in all runs." in done.stdout


def test_true_has_no_ratio_but_a_reason(root: Path) -> None:
    done = tried(root, "--rounds", "2", "--modes", "off,fpr,sharers", "--", "true")
    says_why(done)
    assert "It unmapped none" in done.stdout or "no other CPU ran the program" in done.stdout
    # It has one thread.
    assert "Sharers narrowed nothing, so there is no ratio of runtimes." in done.stdout
    assert "It begins with a second thread, as one alone interrupts nobody" in done.stdout
    assert re.search(r"^flushes to nobody else +0 \(0\.\.0\) +0 \(0\.\.0\)$", done.stdout, re.M)
    # On a busy machine it also says that it still goes on.
    said = [line for line in done.stderr.splitlines() if not line.startswith("still ")]
    up = next(n for n, line in enumerate(said) if line.startswith("the guest is up after"))
    assert any(line.startswith("booting the run kernel") for line in said[:up])
    assert said[up].endswith("warming up: off, fpr, sharers ...")
    assert said[-2:] == ["round 1 of 2 done", "round 2 of 2 done"]


@pytest.mark.long
def test_wc_has_no_ratio_but_a_reason(root: Path) -> None:
    done = tried(root, "--rounds", "2", "--", "wc", "/etc/passwd")
    says_why(done)


@pytest.mark.long
def test_each_run_gets_the_input_of_a_pipe_and_its_mode(
    root: Path, data: Path, tmp_path: Path
) -> None:
    apart = build(data / "apart.c", tmp_path / "apart")
    text = "".join(f"line {number}\n" for number in range(1000))
    command = ["sh", "-c", f"n=$(wc -l); echo $n; [ $n = 1000 ] && exec {apart} {TIMES}"]
    names = ["off", "sharers", "fpr+sharers", "latr+sharers", "latr"]
    words = ["--rounds", "2", "--json", "--modes", ",".join(names), "--", *command]
    done = tried(root, *words, stdin=None, input=text)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["same"]
    assert [sample["status"] for sample in record["samples"]] == [0] * 3 * len(names)
    # Threads that use memory of their own interrupt each other, but for Sharers.
    for sample in record["samples"]:
        counted = sample["counters"]
        local, remote, fills = (
            counted[f"sharers_{name}"] for name in ("flush_local", "flush_remote", "fill")
        )
        if "sharers" in sample["mode"]:
            assert local >= TIMES and fills >= 2, sample
            assert counted[RECEIVED] < TIMES / 2, sample
        else:
            assert (local, remote, fills) == (0, 0, 0), sample
            assert counted[RECEIVED] >= TIMES / 2, sample
    for name in names[1:]:
        found = record["summary"][name]
        assert (found["narrowed"] >= TIMES) == ("sharers" in name)
        assert found["ratio"] is not None or name == "latr"


def test_program_that_fails_is_the_first_line(root: Path) -> None:
    done = tried(root, "--rounds", "2", "--", "rg")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "The program ended with status 2:"
    assert lines[1].startswith("  ")
    assert "rg" in lines[1] or "error" in lines[1]
    assert not re.search(r"\dx\b", done.stdout)


def test_program_that_does_the_same_has_ratio_one(root: Path, data: Path, tmp_path: Path) -> None:
    steady = build(data / "steady.c", tmp_path / "steady")
    done = tried(root, "--rounds", str(ROUNDS), "--json", "--", str(steady), str(steady))
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    fpr = record["summary"]["fpr"]
    assert fpr["skipped"] > 0
    ratio = {name: round(value, 2) for name, value in fpr["ratio"].items()}
    assert ratio["least"] <= 1.00 <= ratio["greatest"]
    samples = [Sample(**{k: v for k, v in s.items() if k != "same"}) for s in record["samples"]]
    assert complete(Trial(tuple(samples)), ["off", "fpr"], ROUNDS)
    first = [s.mode for s in samples][::2]
    assert first == ["off", "fpr"] * (ROUNDS // 2) + ["off"]


@pytest.mark.long
def test_stock_kernel_is_one_of_the_modes(root: Path, data: Path, tmp_path: Path) -> None:
    steady = build(data / "steady.c", tmp_path / "steady")
    done = tried(
        root, "--rounds", "2", "--json", "--modes", "stock,off,fpr", "--", str(steady), str(steady)
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["modes"] == ["stock", "off", "fpr"]
    counted = {s["mode"]: "fpr_skip" in s["counters"] for s in record["samples"]}
    assert counted == {"stock": False, "off": True, "fpr": True}
    assert record["summary"]["off"]["ratio"] is not None
    assert record["same"]


@pytest.mark.long
def test_kernel_without_the_mode_is_status_77(root: Path) -> None:
    done = tried(root, "--kernel", "stock", "--", "true")
    assert done.returncode == 77
    assert "in the guest: this kernel has no FPR" in done.stderr


def recycles_each_file(record: dict[str, Any]) -> bool:
    """Tell whether each of 50 files was mapped so, and none was flushed for because it cannot be.

    While the other thread sleeps there is nobody to interrupt: such an munmap() flushes locally. So
    do those that find another one under way, and the first ones of a guest, which come before there
    is room for tags.
    """
    runs = [sample["counters"] for sample in record["samples"] if sample["mode"] == "fpr"]
    kinds = ("skip", "flush_local", "flush_tags", "flush_nested")
    unmapped = all(sum(c[f"fpr_{kind}"] for kind in kinds) >= 50 for c in runs)
    mapped = all(c["fpr_map"] >= 50 for c in runs)
    return mapped and unmapped and record["summary"]["fpr"]["skipped"] > 0


@pytest.mark.long
def test_files_of_the_host_recycle_too(root: Path, tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text(f"needle {number}\n" * 2000)
    command = ["rg", "--mmap", "-j2", "-c", "needle", str(tmp_path)]
    done = tried(root, "--rounds", "2", "--sort-output", "--json", "--", *command)
    assert done.returncode == 0, done.stderr
    assert recycles_each_file(json.loads(done.stdout))


def test_try_same_output(ceasefire: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "a tree"
    folder.mkdir()
    for number in range(50):
        (folder / f"{number}.txt").write_text(f"needle {number}\n" * 2000)
    command = ["rg", "--mmap", "-j2", "-c", "needle", str(folder)]
    done = ceasefire(
        "try", "--rounds", "2", "--sort-output", "--json", "--data", str(folder), "--", *command
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["same"]
    assert len(record["samples"]) == 6
    assert recycles_each_file(record)
    assert record["summary"]["fpr"]["received"] <= record["summary"]["off"]["received"]


def test_try_detects_different_output(ceasefire: Runner) -> None:
    command = ["sh", "-c", 'echo same; [ -z "$LD_PRELOAD" ] || echo different']
    done = ceasefire("try", "--rounds", "1", "--path", "*", "--", *command)
    assert done.returncode == 1
    assert "in mode fpr the program printed something else in 2 of 2 runs" in done.stderr
    assert "> different" in done.stdout


def test_try_reaches_a_static_program(ceasefire: Runner, data: Path, tmp_path: Path) -> None:
    program = build(data / "recycles.c", tmp_path / "recycles", "-static")
    folder = program.parent / "data"
    folder.mkdir()
    (folder / "file").write_text("content")
    done = ceasefire(
        "try", "--rounds", "1", "--json", "--data", str(folder), "--",
        str(program), str(folder / "file"), "8192",
    )  # fmt: skip
    # It prints whether it recycles, so the outputs differ by that.
    assert done.returncode == 1, done.stderr
    record = json.loads(done.stdout)
    assert "printed something else in 2 of 2 runs" in record["problem"]
    assert record["environment"]["way"] == "prctl"
    counts = {(s["mode"], s["round"]): s["counters"]["fpr_map"] for s in record["samples"]}
    assert counts == {("off", 0): 0, ("fpr", 0): 1, ("off", 1): 0, ("fpr", 1): 1}
