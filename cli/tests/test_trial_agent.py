# SPDX-License-Identifier: GPL-2.0-only
"""The side of `ceasefire try` that works in the guest, here without one: what is run, in which
order, with which input, and what is said about it.
"""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from ceasefire import copies, modes
from ceasefire.launch import prctl
from ceasefire.trial import agent, samples

TOKEN = "0123456789abcdef"
PLAN = agent.Plan(
    token=TOKEN,
    rounds=3,
    modes=["off", "fpr"],
    sort=False,
    limit=None,
    variables={"WITH_FPR": "1"},
    input="",
    command=["true"],
)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for a kernel with FPR, for programs that are started by the preload library."""
    monkeypatch.setattr(modes, "SYSFS", tmp_path / "sysfs")
    monkeypatch.setattr(agent, "_WORK", tmp_path / "work")
    monkeypatch.setattr(prctl, "available", lambda: False)
    (tmp_path / "sysfs/fpr").mkdir(parents=True)
    (tmp_path / "sysfs/fpr/enabled").write_text("0\n")
    return tmp_path


def carried_out(capfd: pytest.CaptureFixture[str], *command: str, **changes: object) -> list[str]:
    """Carry out a plan; return what it prints for us."""
    plan = replace(PLAN, command=list(command), **changes)  # type: ignore[arg-type]
    assert agent.main(json.dumps(asdict(plan))) == 0
    out = capfd.readouterr().out
    return [line.removeprefix(f"{TOKEN} ") for line in out.splitlines() if line.startswith(TOKEN)]


def read(lines: list[str]) -> samples.Trial:
    reader = samples.Reader(TOKEN)
    for line in lines:
        reader(f"{TOKEN} {line}\n".encode())
    return reader.found()


def test_modes_take_turns_in_being_first(kernel: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = kernel / "log"
    lines = carried_out(capfd, "sh", "-c", f"echo ${{WITH_FPR:-0}} >>{log}")
    assert log.read_text().split() == ["0", "1", "1", "0"] * 2
    found = read(lines)
    assert samples.complete(found, PLAN.modes, 3)
    assert {s.status for s in found.samples} == {0}
    assert (kernel / "sysfs/fpr/enabled").read_text() == "1\n"
    # Each run is said before it begins.
    runs = [line.split()[1:3] for line in lines if line.startswith("run ")]
    assert runs == [[s.mode, str(s.round)] for s in found.samples]


def test_a_run_has_what_its_mode_says_and_nothing_else(
    kernel: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if what has started us had everything.
    has = {"fpr": True, "latr": True, "sharers": True, "abis": True}
    for name in ("latr", "sharers", "abis"):
        (kernel / "sysfs" / name).mkdir()
        (kernel / "sysfs" / name / "enabled").write_text("[never] ask always\n")
    monkeypatch.setattr(prctl, "available", lambda: True)
    monkeypatch.setattr(prctl, "lazy_available", lambda: True)
    monkeypatch.setattr(prctl, "sharers_available", lambda: True)
    monkeypatch.setattr(prctl, "abis_available", lambda: True)
    monkeypatch.setattr(prctl, "set_auto", lambda limit: has.update(fpr=bool(limit)))
    monkeypatch.setattr(prctl, "set_lazy", lambda *, on: has.update(latr=on))
    monkeypatch.setattr(prctl, "set_sharers", lambda *, on: has.update(sharers=on))
    monkeypatch.setattr(prctl, "set_abis", lambda *, on: has.update(abis=on))
    monkeypatch.setattr(copies, "obstacle", str)
    real, had = subprocess.Popen, []

    def start(*words: Any, **given: Any) -> Any:
        had.append("+".join(name for name in has if has[name]) or "off")
        return real(*words, **given)

    monkeypatch.setattr(subprocess, "Popen", start)
    names = ["off", "sharers", "fpr+sharers", "latr+sharers+abis", "latr"]
    carried_out(capfd, "true", modes=names, rounds=2, limit=prctl.ALL, variables={})
    # Others come after what is last here: it leaves nothing.
    assert had == [*names, *names[1:], "off", *names[2:], "off", "sharers"]
    assert not any(has.values())
    for name in ("latr", "sharers", "abis"):
        assert (kernel / "sysfs" / name / "enabled").read_text() == "ask\n"


def test_each_run_gets_all_of_the_input(kernel: Path, capfd: pytest.CaptureFixture[str]) -> None:
    given = kernel / "given"
    given.write_bytes(b"some\nlines\n" * 1000)
    code = "import sys; sys.exit(len(sys.stdin.buffer.read()) != 11000)"
    found = read(carried_out(capfd, sys.executable, "-c", code, input=str(given)))
    assert [s.status for s in found.samples] == [0] * 8


def test_without_input_there_is_none(kernel: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = read(carried_out(capfd, "sh", "-c", "! read word"))
    assert [s.status for s in found.samples] == [0] * 8


def test_program_that_fails_says_why_once(kernel: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = read(carried_out(capfd, "sh", "-c", "echo no pattern >&2; exit 2"))
    assert found.said("error") == ["no pattern"]
    assert [s.status for s in found.samples] == [2] * 8


def test_output_that_differs_is_shown_once(kernel: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = read(carried_out(capfd, "sh", "-c", "echo same; echo ${WITH_FPR:-0}"))
    assert len(found.differing("fpr")) == 4
    assert found.differing("off") == []
    assert [line for line in found.said("differ") if line[0] in "<>"] == ["< 0", "> 1"]


def test_lines_in_any_order_are_sorted(kernel: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["sh", "-c", "printf '%s\\n' b a | if [ $WITH_FPR ]; then sort; else cat; fi"]
    assert read(carried_out(capfd, *command)).differing("fpr")
    assert not read(carried_out(capfd, *command, sort=True)).differing("fpr")


def test_kernel_that_lacks_a_mode(kernel: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (kernel / "sysfs/fpr/enabled").unlink()
    assert agent.main(json.dumps(asdict(PLAN))) == 77
    assert f"{TOKEN} text in the guest: this kernel has no FPR" in capfd.readouterr().out
