# SPDX-License-Identifier: GPL-2.0-only
"""The list of modes: their names, their order, what they switch."""

from pathlib import Path

import pytest

from ceasefire import counters, modes
from ceasefire.errors import Unsupported, UsageError

LAZY = modes.Mechanism("lazy", "Lazy", "lazy_skip", ("waiting",))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for a kernel with one more mechanism, which is all that the tools know of it."""
    monkeypatch.setattr(modes, "SYSFS", tmp_path)
    monkeypatch.setattr(modes, "MECHANISMS", (modes.FPR, LAZY))
    for name in ("fpr", "lazy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "enabled").write_text("0\n")
    (tmp_path / "lazy/waiting").write_text("7\n")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "off",
        "fpr",
        "latr",
        "sharers",
        "abis",
        "fpr+latr",
        "fpr+sharers",
        "latr+sharers",
        "sharers+abis",
        "stock",
    ],
)
def test_name_of_a_mode_is_what_was_asked_for(name: str) -> None:
    assert modes.parse(name).name == name


def test_combinations_have_one_name(kernel: Path) -> None:
    assert modes.parse("lazy+fpr") == modes.parse("fpr+lazy")
    assert modes.parse("lazy+fpr").mechanisms == (modes.FPR, LAZY)


@pytest.mark.parametrize(
    "name", ["", "on", "FPR", "fpr+", "fpr+fpr", "off+fpr", "stock+sharers", "off+sharers", "a\nb"]
)
def test_what_is_no_mode(name: str) -> None:
    with pytest.raises(UsageError, match="one of off, fpr, latr, sharers, abis, stock"):
        modes.parse(name)


def test_list_has_each_once(kernel: Path) -> None:
    assert [m.name for m in modes.parse_list("off,fpr+lazy")] == ["off", "fpr+lazy"]
    for text in ("off,off", "fpr+lazy,lazy+fpr"):
        with pytest.raises(UsageError, match="twice"):
            modes.parse_list(text)


def test_each_mode_is_first_equally_often() -> None:
    rounds = [list(modes.order(["off", "fpr", "lazy"], number)) for number in range(6)]
    assert [first for first, *_ in rounds] == ["off", "fpr", "lazy"] * 2
    assert all(sorted(names) == ["fpr", "lazy", "off"] for names in rounds)


@pytest.mark.parametrize(
    ("mode", "fpr", "lazy"), [("off", 1, 0), ("fpr", 1, 0), ("lazy", 1, 1), ("fpr+lazy", 1, 1)]
)
def test_switches_of_a_mode(mode: str, fpr: int, lazy: int, kernel: Path) -> None:
    (kernel / "lazy/enabled").write_text("1\n")
    modes.parse(mode).set_switches()
    found = [int((kernel / name / "enabled").read_text()) for name in ("fpr", "lazy")]
    # A program asks for FPR itself; what is for all programs is switched.
    assert found == [fpr, lazy]


def test_what_a_kernel_does_not_offer(kernel: Path) -> None:
    with pytest.raises(Unsupported, match=f"Lazy is switched off: echo 1 > {kernel}/lazy/enabled"):
        modes.parse("lazy").require()
    (kernel / "lazy/enabled").write_text("1\n")
    modes.parse("lazy").require()
    (kernel / "lazy/enabled").unlink()
    with pytest.raises(Unsupported, match="has no Lazy"):
        modes.parse("lazy").require()
    modes.OFF.require()
    with pytest.raises(Unsupported, match="a kernel without FPR: boot that one"):
        modes.STOCK.require()
    (kernel / "fpr/enabled").unlink()
    modes.STOCK.require()


@pytest.mark.parametrize("switch", ["never [ask] always", "[never] ask always"])
def test_mode_off_is_refused_where_all_programs_have_one(switch: str, kernel: Path) -> None:
    (kernel / "lazy/enabled").write_text(f"{switch}\n")
    modes.OFF.require()
    (kernel / "lazy/enabled").write_text("never ask [always]\n")
    with pytest.raises(Unsupported, match="all programs have Lazy here: echo 1 > "):
        modes.OFF.require()
    (kernel / "fpr/enabled").write_text("1\n")
    modes.parse("fpr").require()


def test_values_of_all_mechanisms_are_read(kernel: Path) -> None:
    assert counters.gauges() == {"waiting": 7}
