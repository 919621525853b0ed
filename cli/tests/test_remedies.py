# SPDX-License-Identifier: GPL-2.0-only
"""What is missing comes with a line that helps, in a checkout and where there is none."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from ceasefire import paths, remedies
from ceasefire.bench.catalog import spec
from ceasefire.bench.measure import programs
from ceasefire.checks import guest
from ceasefire.errors import Failure
from ceasefire.launch import preload

ALL: list[Callable[[], str]] = [
    lambda: remedies.system("qemu-system-x86"),
    remedies.virtme,
    lambda: remedies.module("python3-rich"),
    remedies.applications,
    lambda: remedies.tools("ceasefire-bench"),
    lambda: remedies.made("emulator"),
    *(lambda kind=kind: remedies.kernel(kind) for kind in paths.KERNEL_KINDS),
]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, empty_build: Path) -> None:
    """Let there be no checkout, and nothing of ceasefire on this machine."""
    monkeypatch.setattr(paths, "checkout", lambda: None)
    monkeypatch.setattr(paths, "SYSTEM_LIB_DIRS", ())
    monkeypatch.setattr(programs, "_INSTALLED", ())


@pytest.mark.parametrize("remedy", ALL)
def test_a_checkout_has_targets(remedy: Callable[[], str]) -> None:
    assert remedy().startswith("run `make ")


@pytest.mark.parametrize("remedy", ALL)
@pytest.mark.usefixtures("installed")
def test_an_installed_command_names_no_target_of_its_own(remedy: Callable[[], str]) -> None:
    text = remedy()
    assert "\n" not in text
    assert "make " not in text or "in a checkout of ceasefire" in text


@pytest.mark.usefixtures("installed")
def test_what_needs_a_package_names_it() -> None:
    for function in (programs.search_path, lambda: programs.find("munmap-bench")):
        with pytest.raises(Failure, match="install the package ceasefire-bench"):
            function()
    with pytest.raises(Failure, match="install the package libceasefire-preload"):
        preload.require_library()


@pytest.mark.usefixtures("installed")
def test_every_failed_check_says_how_without_a_checkout() -> None:
    for found in guest.checks(boot=False):
        assert "make " not in found.fix or "in a checkout of ceasefire" in found.fix, found.name


@pytest.mark.usefixtures("installed")
def test_suites_are_beside_the_code() -> None:
    assert spec.folder() == paths.package_root() / "ceasefire" / "bench" / "suites"


def test_guests_see_code_and_interpreter(
    monkeypatch: pytest.MonkeyPatch, empty_build: Path, root: Path
) -> None:
    assert root in paths.needed_dirs()
    monkeypatch.setattr(paths, "checkout", lambda: None)
    monkeypatch.setattr("sys.prefix", "/var/tmp/environment")
    needed = paths.needed_dirs()
    assert {paths.package_root(), Path("/var/tmp/environment"), empty_build} <= set(needed)


def test_programs_beside_the_interpreter_are_found(
    monkeypatch: pytest.MonkeyPatch, empty_build: Path, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "virtme-run"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python3"))
    assert paths.find_program("virtme-run") == str(program)


def test_one_version_of_virtme_is_pinned(root: Path) -> None:
    assert remedies.VIRTME in (root / "requirements.in").read_text(encoding="utf-8").splitlines()
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"]["vm"] == [remedies.VIRTME]
