# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire try` on this side of the guest: what is refused before a kernel boots, standard input,
signs of life, the load of this machine.
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ceasefire.errors import UsageError
from ceasefire.trial import life, load, stdin
from ceasefire.trial.agent import Plan

ROOT = Path(__file__).resolve().parents[2]
CALL_LIMIT = 600.0
Runner = Callable[..., "subprocess.CompletedProcess[str]"]
TOKEN = "0123456789abcdef"
PLAN = Plan(TOKEN, 1, ["off", "fpr"], False, 1, {}, "", ["true"])


@pytest.fixture
def no_boot(empty_build: Path) -> Path:
    """Make a build directory with a kernel; what stands for QEMU would be a failed boot."""
    for name in ("run", "stock"):
        image = empty_build / f"linux/build-{name}/arch/x86/boot/bzImage"
        image.parent.mkdir(parents=True)
        image.touch()
    tools = empty_build / "venv/bin"
    tools.mkdir(parents=True)
    for name in ("qemu-system-x86_64", "virtme-run"):
        (tools / name).write_text("#!/bin/sh\necho it was booted >&2; exit 1\n")
        (tools / name).chmod(0o755)
    return empty_build


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["--", "nosuch"], 127, "nosuch: command not found"),
        (["--", "/etc/passwd"], 126, "/etc/passwd is not executable"),
        (["--", "/etc"], 126, "/etc is a directory"),
        (["--data", "/no/such/folder", "--", "true"], 2, "there is no such directory"),
        (["--data", "/tmp", "--data", "/no/such", "--", "true"], 2, "/no/such: there is no such"),
        (["--modes", "off,fast", "--", "true"], 2, "'fast' is no mode"),
        (["--modes", "fpr", "--", "true"], 2, "give two or more"),
        (["--modes", "off,off", "--", "true"], 2, "twice"),
        (["--modes", "off,stock", "--path", "*", "--", "true"], 2, "--path is for FPR"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_does_not_exist_is_said_before_a_kernel_boots(
    words: list[str], status: int, says: str, no_boot: Path, ceasefire: Runner
) -> None:
    done = ceasefire("try", "--accel", "tcg", *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert not (no_boot / "logs").exists()
    assert not list(no_boot.glob("disks/*.ext4"))


def test_program_that_only_the_host_sees_is_refused(no_boot: Path, ceasefire: Runner) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        program = Path(folder) / "program"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        done = ceasefire("try", "--accel", "tcg", "--", str(program))
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert f"{program}: the guest has a folder of its own there" in done.stderr
        assert not (no_boot / "logs").exists()
        # What is called from its folder, or copied, is seen.
        for words in (["sh", "-c", f'cd {folder} && exec $0 "$@"', sys.executable], []):
            command = words or [sys.executable]
            data = [] if words else ["--data", folder]
            done = subprocess.run(
                [*command, "-m", "ceasefire", "try", "--accel", "tcg", *data, "--", str(program)],
                env={**os.environ, "PYTHONPATH": str(ROOT / "cli")},
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=CALL_LIMIT,
                check=False,
            )
            assert done.returncode == 70
            assert "it was booted" in done.stderr


def test_kernel_that_is_not_built_is_said_before_another_boots(
    no_boot: Path, ceasefire: Runner
) -> None:
    (no_boot / "linux/build-stock/arch/x86/boot/bzImage").unlink()
    done = ceasefire("try", "--accel", "tcg", "--modes", "off,fpr,stock", "--", "true")
    assert done.returncode == 1
    assert "make kernel-stock" in done.stderr
    assert not (no_boot / "logs").exists()


@pytest.fixture
def opened() -> Iterator[list[int]]:
    """Return a list of files that are closed afterwards."""
    numbers: list[int] = []
    yield numbers
    for number in numbers:
        os.close(number)


def test_input_of_a_pipe_is_kept_whole(tmp_path: Path, opened: list[int]) -> None:
    end, begin = os.pipe()
    opened.append(end)
    data = bytes(range(256)) * 4096

    def feed() -> None:
        with os.fdopen(begin, "wb") as pipe:
            pipe.write(data)

    thread = threading.Thread(target=feed)
    thread.start()
    assert stdin.keep(tmp_path / "kept", end)
    thread.join()
    assert (tmp_path / "kept").read_bytes() == data


def test_input_of_a_file_begins_where_it_is(tmp_path: Path, opened: list[int]) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    opened.append(os.open(tmp_path / "file", os.O_RDONLY))
    os.lseek(opened[0], 4, os.SEEK_SET)
    assert stdin.keep(tmp_path / "kept", opened[0])
    assert (tmp_path / "kept").read_bytes() == b"456789"


def test_terminal_and_nothing_are_no_input(tmp_path: Path, opened: list[int]) -> None:
    opened += [*pty.openpty(), os.open("/dev/null", os.O_RDONLY)]
    closed = os.dup(0)
    os.close(closed)
    for number in (opened[1], opened[2], closed):
        assert not stdin.keep(tmp_path / "kept", number)


@pytest.mark.parametrize("path", ["/dev/zero", "/"])
def test_input_that_cannot_be_kept_is_refused(path: str, tmp_path: Path, opened: list[int]) -> None:
    opened.append(os.open(path, os.O_RDONLY))
    with pytest.raises(UsageError, match="give a file, a pipe or </dev/null"):
        stdin.keep(tmp_path / "kept", opened[0])


def test_too_much_input_is_refused(
    tmp_path: Path, opened: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdin, "LIMIT", 100)
    (tmp_path / "file").write_bytes(bytes(101))
    opened.append(os.open(tmp_path / "file", os.O_RDONLY))
    with pytest.raises(UsageError, match="standard input has more than"):
        stdin.keep(tmp_path / "kept", opened[0])


def test_pipe_that_nobody_ends_says_what_is_waited_for(
    tmp_path: Path,
    opened: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(stdin, "_PATIENCE", 0.05)
    end, begin = os.pipe()
    opened.append(end)
    thread = threading.Thread(target=stdin.keep, args=(tmp_path / "kept", end))
    thread.start()
    said = ""
    deadline = time.monotonic() + 600
    while "reading standard input to its end" not in said:
        assert time.monotonic() < deadline
        said += capsys.readouterr().err
        time.sleep(0.01)
    os.close(begin)
    thread.join(60)
    assert not thread.is_alive()


def test_signs_of_life(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(life, "QUIET", 0.05)
    said = ""

    def wait_for(pattern: str) -> None:
        nonlocal said
        deadline = time.monotonic() + 600
        while not re.search(pattern, said):
            assert time.monotonic() < deadline, said
            said += capsys.readouterr().err
            time.sleep(0.01)

    with life.Life(PLAN) as signs:
        wait_for("still booting")
        signs(f"{TOKEN} run off 0\n".encode())
        # However slow this machine is.
        wait_for(r"the guest is up after \d+ s, warming up: off, fpr \.\.\.\n")
        wait_for("still in round 0, mode off")
        for number, text in ((0, r"warmed up after \d+ s"), (1, "round 1 of 1 done")):
            for mode in ("off", "fpr"):
                signs(f"{TOKEN} sample {mode} {number} 0 5 {'0' * 16} a=1\n".encode())
            wait_for(text)


def test_load_of_others_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    now = iter([100.0, 110.0])
    monkeypatch.setattr(load, "STAT", tmp_path / "stat")
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    (tmp_path / "stat").write_text("cpu  100 0 100 9 9 0 0 0 0 0\ncpu0 1\n")
    meter = load.Meter()
    # A child of ours is busy meanwhile; what it takes is not that of others.
    code = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    busy = 200 + ticks * 5
    (tmp_path / "stat").write_text(f"cpu  {busy - 100} 0 100 999 9 0 0 0 0 0\ncpu0 1\n")
    found = meter.read()
    assert 0.3 < found.others < 0.48
    assert f"other programs took {found.others:.1f} of its {os.cpu_count()} CPUs" in found.text()
