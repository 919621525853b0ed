# SPDX-License-Identifier: GPL-2.0-only
"""Tests in guests that the emulator ends: those that have passed are not run again."""

from pathlib import Path
from typing import Any

import pytest
from tests.driver import traced

from ceasefire.errors import GuestError
from ceasefire.vm import GuestResult, GuestSpec, klog

LOST = klog.scan(["[    0.1] ceasefire-vm: ready", "[    9.1] Oops: int3: 0000 [#1]"])
FINE = klog.scan(["[    0.1] ceasefire-vm: ready", "[    9.1] ceasefire-vm: command returned 0"])


class Guests:
    """Guests that print and end as they are told, one after the other."""

    def __init__(self, *runs: tuple[str, klog.LogVerdict, int | None]) -> None:
        self.runs = list(runs)
        self.left: list[list[str]] = []

    def run(self, _: GuestSpec, words: list[str], **__: Any) -> GuestResult:
        self.left.append([word for word in words if word.startswith("--deselect=")])
        text, verdict, status = self.runs.pop(0)
        return GuestResult(
            *(status, text.encode(), b"", Path("/made/up.klog"), verdict),
            *(False, 1.0, "tcg", 60.0),
        )


def run(monkeypatch: pytest.MonkeyPatch, guests: Guests) -> tuple[int, str]:
    monkeypatch.setattr(traced, "run_guest", guests.run)
    return traced.run_tests_traced(GuestSpec(), ["python", "-m", "pytest"])


def test_what_has_passed_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    guests = Guests(
        ("t.py::a PASSED [ 10%]\nt.py::b[c d] PASSED [ 20%]\nt.py::e ", LOST, None),
        ("t.py::e PASSED [ 50%]\n", LOST, None),
        ("t.py::f PASSED [100%]\n4 passed\n", FINE, 0),
    )
    status, printed = run(monkeypatch, guests)
    assert status == 0
    assert printed.count("PASSED") == 4
    assert guests.left == [
        [],
        ["--deselect=t.py::a", "--deselect=t.py::b[c d]"],
        ["--deselect=t.py::a", "--deselect=t.py::b[c d]", "--deselect=t.py::e"],
    ]


def test_guest_that_ends_after_the_last_test(monkeypatch: pytest.MonkeyPatch) -> None:
    guests = Guests(("t.py::a PASSED [100%]\n", LOST, None), ("1 deselected\n", FINE, 5))
    assert run(monkeypatch, guests)[0] == 0


def test_no_test_at_all_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, Guests(("no tests ran\n", FINE, 5)))[0] == 5


def test_given_up_when_nothing_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    guests = Guests(*[("t.py::a ", LOST, None)] * 3)
    with pytest.raises(GuestError, match="int3"):
        run(monkeypatch, guests)
    assert not guests.runs


def test_failure_is_returned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, Guests(("t.py::a FAILED [100%]\n", FINE, 1)))[0] == 1
