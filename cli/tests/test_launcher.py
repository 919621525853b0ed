# SPDX-License-Identifier: GPL-2.0-only
"""ceasefire-exec: what it asks the kernel for, what it becomes, and that it does nothing else."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from ceasefire import modes
from ceasefire.launch import prctl
from ceasefire.launch.activation import Activation
from ceasefire.service import launcher

# What data/sealed.c answers.
ALL, PART, CHILDREN, LAZY, SHARING, WRONG = 101, 102, 103, 104, 105, 99
EXEC = 203


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it as meson does."""
    folder = Path(__file__).resolve().parents[1] / "launcher"
    path = tmp_path_factory.mktemp("launcher") / launcher.NAME
    flags = re.findall(r"'(-[^']+)'", (folder / "meson.build").read_text(encoding="utf-8"))
    assert "-nostdlib" in flags
    warnings = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wmissing-prototypes"]
    subprocess.run(["cc", *warnings, *flags, folder / "ceasefire-exec.c", "-o", path], check=True)
    return path


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sealed") / "sealed"
    source = Path(__file__).with_name("data") / "sealed.c"
    subprocess.run(["cc", "-Wall", source, "-o", path], check=True)
    return path


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)


def asked(sealed: Path, *words: str | Path) -> list[int]:
    """Return the answers that it got, in a sandbox where any other system call would kill it."""
    done = run(sealed, *words, "--", "/nosuch/program")
    assert done.returncode == EXEC, done.stderr
    *others, last = done.stderr.splitlines()
    assert last == (
        "ceasefire-exec: /nosuch/program: there is no such program, or its interpreter is missing"
    )
    found = [re.fullmatch(r"ceasefire-exec: .* failed with error (\d+)", line) for line in others]
    return [int(match[1]) for match in found if match]


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ([], []),
        (["--latr"], [LAZY]),
        (["--sharers"], [SHARING]),
        (["--latr", "--sharers"], [LAZY, SHARING]),
        (["--fpr=0xffffffffffffffff"], [ALL]),
        (["--fpr=18446744073709551615"], [ALL]),
        (["--fpr=2147483648", "--fpr-context=2"], [PART, CHILDREN]),
        (["--fpr=4096"], [WRONG]),
        (["--argv0", "--latr"], []),
    ],
)
def test_what_it_asks_for(
    words: list[str], answers: list[int], program: Path, sealed: Path
) -> None:
    assert asked(sealed, program, *words) == answers


@pytest.mark.parametrize(
    ("how", "context", "answers"),
    [
        (Activation("", limit=prctl.ALL), None, [ALL]),
        (Activation("", limit=2**31), "children", [PART, CHILDREN]),
        (Activation("", lazy=True), None, [LAZY]),
        (Activation("", lazy=True, sharers=True), None, [LAZY, SHARING]),
        (Activation("", limit=0, lazy=False, sharers=False), None, []),
        (Activation("", variables={"LD_PRELOAD": "x"}), None, []),
    ],
)
def test_the_tools_tell_it_what_a_mode_takes(
    how: Activation, context: str | None, answers: list[int], program: Path, sealed: Path
) -> None:
    assert asked(sealed, program, *launcher.options(how, context)) == answers


def test_it_knows_every_mechanism() -> None:
    assert [m.name for m in modes.MECHANISMS if not launcher.knows(m)] == []


def test_it_becomes_the_program(program: Path) -> None:
    code = 'echo $$ "$0" "$@" "$ODD"; cat /proc/$$/comm; exit 7'
    # The shell that starts it is that process.
    outer = 'echo $$; exec "$@"'
    words = ["sh", "-c", outer, "sh", str(program), "--argv0", "a name", "--", "/bin/sh"]
    done = subprocess.run(
        [*words, "-c", code, "--", "--", "$HOME", ""],
        capture_output=True,
        text=True,
        env={**os.environ, "ODD": "a=b c"},
        timeout=600,
        check=False,
    )
    first, second, comm = done.stdout.splitlines()
    assert second == f"{first} -- -- $HOME  a=b c"
    assert (comm, done.returncode, done.stderr) == ("sh", 7, "")


def test_the_program_has_the_name_that_it_was_told(program: Path) -> None:
    code = "tr '\\0' '\\n' </proc/$$/cmdline | head -n 1"
    for options, name in (([], "/bin/sh"), (["--argv0", "-login"], "-login")):
        assert run(program, *options, "--", "/bin/sh", "-c", code).stdout == f"{name}\n"


@pytest.mark.skipif(prctl.lazy_available(), reason="this kernel has LATR")
def test_a_kernel_without_is_no_reason_not_to_start(program: Path) -> None:
    done = run(program, "--latr", "--sharers", "--", "/bin/echo", "started")
    assert (done.returncode, done.stdout) == (0, "started\n")
    assert done.stderr.splitlines() == [
        f"ceasefire-exec: the program runs without {title}: this kernel does not have it"
        for title in ("LATR", "Sharers")
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "say which program"),
        (["--"], "say which program"),
        (["--argv0", "x"], "say which program"),
        (["/bin/true"], "unknown option /bin/true"),
        (["--lat", "--", "/bin/true"], "unknown option --lat"),
        (["--argv0"], "--argv0 needs a name"),
        (["--fpr=", "--", "/bin/true"], "not a number: --fpr="),
        (["--fpr=1M", "--", "/bin/true"], "not a number: --fpr=1M"),
        (["--fpr=0x", "--", "/bin/true"], "not a number: --fpr=0x"),
        (["--fpr=18446744073709551616", "--", "/bin/true"], "too large a number"),
        (["x" * 9000, "--", "/bin/true"], "unknown option xxx"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(words: list[str], says: str, program: Path) -> None:
    done = run(program, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ceasefire-exec: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith("\n")


def test_what_cannot_be_executed_is_said(program: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program\n")
    for path, says in ((plain, "may not be executed"), (tmp_path, "may not be executed")):
        done = run(program, "--", path)
        assert (done.returncode, done.stderr) == (EXEC, f"ceasefire-exec: {path}: it {says}\n")
    plain.chmod(0o755)
    done = run(program, "--", plain)
    assert (done.returncode, "execve() failed with error 8\n" in done.stderr) == (EXEC, True)


def test_it_is_one_static_file(program: Path) -> None:
    headers = run("readelf", "-lW", program).stdout
    assert "INTERP" not in headers
    assert "DYNAMIC" not in headers
    assert re.search(r"GNU_STACK.* RW +0x", headers)
