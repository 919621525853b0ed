# SPDX-License-Identifier: GPL-2.0-only
"""Machines on which Sharers does nothing: how the tools know, and that they say it in one line."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ceasefire import copies, modes
from ceasefire.bench.measure import agent, machine
from ceasefire.checks import here
from ceasefire.checks.base import INFO, PASS, Check
from ceasefire.errors import Unsupported

Machine = Callable[..., None]


@pytest.fixture
def machine_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return what makes up a machine whose kernel has sharers, switched on for those who ask."""
    monkeypatch.setattr(modes, "SYSFS", tmp_path)
    monkeypatch.setattr(copies, "_XEN", tmp_path / "guest_type")
    monkeypatch.setattr(copies, "_CLOCKS", tmp_path / "clocks")
    (tmp_path / "sharers").mkdir()

    def make(*, xen: str = "", clocks: str = "tsc acpi_pm", on: str = "ask") -> None:
        (tmp_path / "clocks").write_text(f"{clocks}\n")
        if xen:
            (tmp_path / "guest_type").write_text(f"{xen}\n")
        words = (f"[{w}]" if w == on else w for w in ("never", "ask", "always"))
        (tmp_path / "sharers/enabled").write_text(" ".join(words) + "\n")

    return make


def found() -> Check:
    return next(c for c in here.checks() if c.name == "Sharers")


@pytest.mark.parametrize(
    "facts",
    [{}, {"xen": "PVH"}, {"xen": "HVM"}, {"clocks": "kvm-clock tsc"}],
)
def test_machines_that_have_copies(facts: dict[str, str], machine_with: Machine) -> None:
    machine_with(**facts)
    assert copies.obstacle() == ""
    modes.SHARERS.obstacle()
    modes.parse("sharers").require()
    assert (found().result, found().found) == (PASS, "on for programs that ask")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"xen": "PV"}, "this is a PV guest of Xen"),
        ({"clocks": "hyperv_clocksource_tsc_page tsc"}, "this is a guest of Hyper-V"),
        ({"clocks": "tsc hyperv_clocksource_msr"}, "this is a guest of Hyper-V"),
    ],
)
def test_machines_that_have_none(
    facts: dict[str, str], why: str, machine_with: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine_with(**facts)
    for name in ("sharers", "fpr+sharers", "latr+sharers"):
        # Of the other mechanisms there is nothing here, and they come first.
        with pytest.raises(Unsupported) as error:
            modes.Mode(name, (modes.SHARERS,)).require()
        assert str(error.value).startswith(f"Sharers does nothing here: {why}")
        assert str(error.value).count(": choose another mode") == 1
        assert "\n" not in str(error.value)
    check = found()
    assert (check.result, check.found) == (INFO, f"on for programs that ask, but {why}")
    assert check.fix.startswith("choose another mode")
    # A benchmark is not begun, and no other kernel is what it takes.
    with pytest.raises(Unsupported) as error:
        machine.judge(*in_place(capsys))
    assert str(error.value) == f"Sharers does nothing here: {copies.obstacle()}"


def in_place(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    task = agent.Task("b", "sharers", 0, "false", {}, "", 1.0, "sharers")
    plan = agent.Plan([], [task], "", os.environ["PATH"])
    path = modes.SYSFS / "plan"
    path.write_text(plan.text())
    status = agent.main(str(path))
    return status, capsys.readouterr().err


def test_switched_off_comes_first(machine_with: Machine) -> None:
    machine_with(xen="PV", on="never")
    with pytest.raises(Unsupported, match="Sharers is switched off: echo ask > "):
        modes.parse("sharers").require()
    assert (found().result, found().found) == (INFO, "off")
    assert found().fix.startswith("echo ask > ")


def test_what_cannot_be_read_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_XEN", "_CLOCKS"):
        monkeypatch.setattr(copies, name, tmp_path / "none")
    assert copies.obstacle() == ""
