# SPDX-License-Identifier: GPL-2.0-only
"""Wrong use is one line and status 2, missing kernel support 77, and there is no traceback."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ceasefire import doctor, modes
from ceasefire.__main__ import main

Runner = Callable[..., "subprocess.CompletedProcess[str]"]

WRONG: tuple[list[str], ...] = (
    [],
    ["nosuchverb"],
    ["--nosuchoption"],
    ["run"],
    ["run", "--"],
    ["run", "--nosuchoption", "--", "true"],
    ["run", "--max-size", "lots", "--", "true"],
    ["run", "--max-size", "512", "--", "true"],
    ["run", "--max-size", "1G", "--path", "*", "--", "true"],
    ["try"],
    ["try", "--max-size", "0", "--", "true"],
    ["try", "--rounds", "0", "--", "true"],
    ["try", "--data", "/nonexistent/dir", "--", "true"],
    ["try", "--cpus", "none", "--", "true"],
    ["stat", "--nosuchoption"],
    ["stat", "-I", "0"],
    ["stat", "-n", "3"],
    ["stat", "-p", "1", "--", "true"],
    ["doctor", "extra"],
    ["vm"],
    ["vm", "--cpus", "0", "--", "true"],
    ["vm", "--cpus", "65", "--", "true"],
    ["vm", "--numa", "3", "--cpus", "2", "--", "true"],
    ["vm", "--icount", "--cpus", "2", "--", "true"],
    ["vm", "--memory", "lots", "--", "true"],
    ["vm", "--memory", "1M", "--", "true"],
    ["vm", "--kernel", "nosuchkernel", "--", "true"],
    ["vm", "--disk", "floppy", "--", "true"],
    ["vm", "--allow-log", "(", "--", "true"],
    ["vm", "--disk", "null_blk:fast", "--", "true"],
    ["vm", "--disk", "image:/nonexistent", "--", "true"],
    ["vm", "--timeout", "0", "--", "true"],
    ["vm", "--env", "1=2", "--", "true"],
)


@pytest.mark.parametrize("words", WRONG, ids=lambda words: " ".join(words) or "(nothing)")
def test_wrong_use_is_one_line_and_status_2(
    words: list[str], ceasefire: Runner, fake_build: Path
) -> None:
    done = ceasefire(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("ceasefire")
    assert "Traceback" not in done.stderr


@pytest.fixture
def fake_build(empty_build: Path) -> Path:
    """Make a build directory whose kernel and library exist but are empty files."""
    for name in (
        "linux/build-run/arch/x86/boot/bzImage",
        "tools/lib/preload/libceasefire-preload.so",
    ):
        (empty_build / name).parent.mkdir(parents=True)
        (empty_build / name).touch()
    return empty_build


@pytest.mark.parametrize("verb", ["run", "try", "stat", "doctor", "vm"])
def test_every_verb_has_help(verb: str, ceasefire: Runner) -> None:
    done = ceasefire(verb, "--help")
    assert done.returncode == 0
    assert f"ceasefire {verb}" in done.stdout
    assert done.stderr == ""


def test_help_names_every_verb(ceasefire: Runner) -> None:
    done = ceasefire("--help")
    assert done.returncode == 0
    for verb in ("run", "try", "stat", "doctor", "bench", "vm"):
        assert f"\n  {verb} " in done.stdout


def test_kernel_that_is_not_built_is_a_line(ceasefire: Runner, empty_build: Path) -> None:
    done = ceasefire("vm", "--", "true")
    assert done.returncode == 1
    assert "make kernel" in done.stderr
    assert done.stderr.count("\n") == 1


def test_library_that_is_not_built_is_a_line(ceasefire: Runner, empty_build: Path) -> None:
    done = ceasefire("run", "--path", "*", "--", "true")
    assert done.returncode == 1
    assert "make tools" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(modes.FPR.present(), reason="this kernel has FPR")
def test_kernel_without_fpr_is_status_77(ceasefire: Runner, fake_build: Path) -> None:
    done = ceasefire("run", "--", "true")
    assert done.returncode == 77
    assert done.stderr.count("\n") == 1
    assert "FPR" in done.stderr


def test_dry_run_prints_and_runs_nothing(
    ceasefire: Runner, fake_build: Path, tmp_path: Path
) -> None:
    witness = tmp_path / "witness"
    done = ceasefire(
        "run", "--dry-run", "--path", "/a b/*", "--path", "*.db", "--exclude", "*.log", "--",
        "touch", str(witness), LD_PRELOAD="/lib/mine.so",
    )  # fmt: skip
    assert done.returncode == 0
    assert not witness.exists()
    assert "'CEASEFIRE_PATHS=/a b/*:*.db'" in done.stdout
    assert "'CEASEFIRE_EXCLUDE=*.log'" in done.stdout
    assert "libceasefire-preload.so:/lib/mine.so" in done.stdout
    assert done.stdout.rstrip().endswith(f"touch {witness}")


def test_glob_with_a_colon_is_refused(ceasefire: Runner, fake_build: Path) -> None:
    done = ceasefire("run", "--dry-run", "--path", "a:b", "--", "true")
    assert done.returncode == 2
    assert "colon" in done.stderr


@pytest.mark.parametrize("options", [[], ["--path", "*"]], ids=["switch", "library"])
@pytest.mark.parametrize(
    ("command", "status"),
    [(["sh", "-c", "exit 9"], 9), (["nosuchprogram"], 127), (["/etc/passwd"], 126)],
)
def test_run_ends_as_a_shell_would(
    command: list[str], status: int, options: list[str], ceasefire: Runner, fake_build: Path
) -> None:
    library = fake_build / "tools" / "lib" / "preload" / "libceasefire-preload.so"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", str(library)], check=True)
    done = ceasefire("run", "--force", *options, "--", *command)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


def test_wrapper_runs_from_anywhere(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "ceasefire"
    link.symlink_to(root / "ceasefire")
    done = subprocess.run(
        [link, "--version"], cwd="/", capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("ceasefire ")


def test_wrapper_names_what_is_missing(root: Path, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\nexec /usr/bin/python3 -S -I "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    done = subprocess.run(
        [root / "ceasefire", "--version"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "CEASEFIRE_BUILD": "/x"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 1
    assert "make deps" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    ["doctor --json", "doctor", "maps --json $$", "maps --all $$", "stat --help", "stat -a"],
)
def test_closed_output_is_no_traceback(words: str, root: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{{ sleep 1; {root}/ceasefire {words}; }} | true"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stderr == ""


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a verb have a mistake."""

    def fail(_args: object) -> int:
        raise KeyError("a\nb")

    monkeypatch.setattr(doctor, "main", fail)


def test_internal_error_is_a_line_that_says_how_to_see_more(
    broken: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CEASEFIRE_DEBUG", raising=False)
    assert main(["doctor"]) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert line.startswith("ceasefire doctor: internal error at test_cmdline.py:")
    assert line.endswith("(CEASEFIRE_DEBUG=1 shows where it comes from)\n")


def test_interrupt_within_another_error_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    def make(_args: object) -> int:
        type("Owner", (), {"field": Interrupted()})
        return 0

    monkeypatch.setattr(doctor, "main", make)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == ""


def test_internal_error_with_its_traceback(
    broken: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CEASEFIRE_DEBUG", "1")
    assert main(["doctor"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):\n")
    assert "in fail" in said
    assert said.splitlines()[-1].startswith("ceasefire doctor: internal error at ")
