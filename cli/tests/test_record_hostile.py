# SPDX-License-Identifier: GPL-2.0-only
"""What a recorded program can do to those who record it. Needs root and event tracing; where these
are missing there is the guest of test_record_guest.py, which runs the same tests.
"""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.driver.traced import HOSTILE, build

from ceasefire.__main__ import main
from ceasefire.errors import Failure
from ceasefire.record import guard, look, mappings, tracefs

ROOT = Path(__file__).resolve().parents[2]
# Ten times what a step takes on an emulated CPU.
LIMIT = 600
# Of those that are tried one comes about, however busy the machine is.
FEW = 1
NAMES = (
    b"form\x0cfeed",
    b"line\nfeed",
    b"\r",
    "\u2028".encode(),
    b"\xff\xfe",
    b"\x1b[2J",
    b"a (deleted)",
)


def tracing_is_possible() -> bool:
    try:
        tracefs.find()
    except Failure:
        return False
    return True


needs_tracing = pytest.mark.skipif(not tracing_is_possible(), reason="no tracing here")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program that does harm."""
    if place := os.environ.get(HOSTILE):
        return Path(place)
    source = Path(__file__).with_name("data") / "hostile.c"
    return build(source, tmp_path_factory.mktemp("hostile") / "built")


@pytest.fixture
def program(built: Path, tmp_path: Path) -> Path:
    """Return a copy that may come to harm."""
    folder = tmp_path / "place"
    folder.mkdir(mode=0o755)
    return Path(shutil.copy(built, folder / "hostile"))


@pytest.fixture
def output(tmp_path: Path) -> Iterator[Path]:
    """Return where the recording goes; afterwards no trace buffer is there."""
    yield tmp_path / "recording.json"
    end = time.monotonic() + LIMIT
    while left := instances():
        assert time.monotonic() < end, f"trace buffers stay: {left}"
        time.sleep(0.05)


def instances() -> list[str]:
    folder = tracefs.find() / "instances"
    return sorted(path.name for path in folder.glob(f"{tracefs.PREFIX}*"))


def start(*words: object) -> "subprocess.Popen[bytes]":
    """Start the command line in a process of its own, which does without a start of Python."""
    command = [os.fsdecode(_word(word)) for word in words]
    return subprocess.Popen(
        ["ceasefire"],
        preexec_fn=partial(_be_command, command),  # noqa: PLW1509 - there are no threads
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Python ignores SIGPIPE.
        restore_signals=False,
    )


def _be_command(words: list[str]) -> None:
    """Run the command line in the child, and end with its status."""
    status: object = 1
    try:
        # With a pipe among these the child tells the parent that the program runs.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdout, sys.stderr = map(_stream, (1, 2))
        status = main(words)
    except SystemExit as end:
        status = end.code
    finally:
        sys.stdout.flush()
        os._exit(status if isinstance(status, int) else 1)


def _stream(number: int) -> io.TextIOWrapper:
    raw = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", line_buffering=number == 2)


def _word(word: object) -> bytes:
    return word if isinstance(word, bytes) else os.fsencode(str(word))


def run(*words: object) -> "subprocess.CompletedProcess[bytes]":
    """Run the command line to its end, which must come by itself."""
    process = start(*words)
    try:
        out, err = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    assert b"internal error" not in err, err
    assert b"Traceback" not in err, err
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def recorded(output: Path) -> dict[str, Any]:
    record = json.loads(output.read_text())
    assert isinstance(record, dict)
    return record


def sites(record: dict[str, Any]) -> str:
    return " ".join(" ".join(site["frames"]) for site in record["sites"])


@needs_tracing
@pytest.mark.parametrize("trick", ["", "often", "fork", "close", "names"])
def test_program_is_recorded_all_the_same(trick: str, program: Path, output: Path) -> None:
    done = run("record", "-o", output, "--", program, trick, program)
    assert done.returncode == 3, done.stderr
    record = recorded(output)
    assert record["causes"]["munmap"]["sent"] >= FEW
    if trick in ("", "fork", "often"):
        assert "unmap_some" in sites(record)
        assert not record["nameless"]


@needs_tracing
@pytest.mark.parametrize("trick", ["fifo", "link"])
@pytest.mark.parametrize("verb", ["record", "advise"])
def test_program_that_replaces_itself(verb: str, trick: str, program: Path, output: Path) -> None:
    done = run(verb, "-o", output, "--", program, trick, program)
    assert done.returncode == 3, done.stderr
    if verb == "record":
        nameless = recorded(output)["nameless"]
        # The first look at the mappings may come before or after the program was replaced.
        reasons = [
            nameless[name] for name in (f"{program}", f"{program} (deleted)") if name in nameless
        ]
        assert len(reasons) == 1, nameless
        assert reasons[0] in (
            "it is not there any more",
            "another one is there now, no regular file",
        )
    else:
        assert "No names of functions in" in output.read_text()


@needs_tracing
def test_names_of_programs(built: Path, tmp_path: Path, output: Path) -> None:
    """Record one after the other: each has names of functions, and nothing is a letter too much."""
    paths = [tmp_path / os.fsdecode(name) for name in NAMES]
    for path in paths:
        shutil.copy(built, path)
    each = 'for program; do "$program"; status=$?; done; exit $status'
    done = run("record", "-o", output, "--", "sh", "-c", each, "sh", *paths)
    assert done.returncode == 3, done.stderr
    record = recorded(output)
    assert record["causes"]["munmap"]["sent"] >= FEW * len(NAMES)
    assert "unmap_some" in sites(record)
    assert not record["nameless"]
    page = run("advise", "-i", output)
    assert page.returncode == 0
    assert page.stdout.decode().replace("\n", "").isprintable()


@needs_tracing
def test_symbol_with_a_line_feed(program: Path, output: Path) -> None:
    content = program.read_bytes()
    assert b"\0unmap_some\0" in content
    program.write_bytes(content.replace(b"\0unmap_some\0", b"\0un\n\x1b\x07_some\0"))
    done = run("record", "-o", output, "--", program)
    assert done.returncode == 3, done.stderr
    assert "un\n\x1b\x07_some" in sites(recorded(output))
    page = run("advise", "-i", output)
    assert rb"un\n\x1b\x07_some" in page.stdout
    assert page.stdout.decode().replace("\n", "").isprintable()


@needs_tracing
def test_name_of_a_program_forges_no_events(program: Path, output: Path) -> None:
    lines = [
        "  prog-1 [000] ..... 1.000000: sys_enter: NR 9 (0, 4000, 1, 2, 3, 0)",
        "  prog-1 [000] ..... 1.000001: tlb_flush: pages:1 reason:remote ipi send (4)",
        "  prog-1 [000] ..... 1.000002: sys_exit: NR 9 = 0",
    ]
    name = "\n" + "\n".join(lines * 1) + "\n"
    path = program.with_name(name.replace("/", ""))
    program.rename(path)
    run("record", "-o", output, "--", shutil.which("env"), path, "", "")
    assert set(recorded(output)["causes"]) <= {"munmap", "exit", "cow", "fork", "mmap", "mprotect"}
    assert recorded(output)["causes"].get("mmap", {"sent": 0})["sent"] < 3
    assert "prog" not in recorded(output)["programs"]


@needs_tracing
def test_recorder_that_is_killed(program: Path, output: Path) -> None:
    process = start("record", "-o", output, "--", program, "kill")
    assert process.wait(LIMIT) == -signal.SIGKILL
    process.communicate(timeout=LIMIT)
    assert not output.exists()


@needs_tracing
def test_recorder_that_is_stopped(program: Path, output: Path) -> None:
    process = start("record", "-o", output, "--", program, "stop")
    assert os.waitid(os.P_PID, process.pid, os.WSTOPPED) is not None
    process.send_signal(signal.SIGCONT)
    assert process.wait(LIMIT) == 3
    assert recorded(output)["causes"]["munmap"]["sent"] >= FEW
    process.communicate(timeout=LIMIT)


@needs_tracing
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_program_that_does_not_listen(number: signal.Signals, program: Path, output: Path) -> None:
    process = start("record", "-o", output, "--", program, "deaf")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    time.sleep(0.5)
    process.send_signal(number)
    assert process.wait(LIMIT) == 128 + signal.SIGKILL
    assert recorded(output)["kind"] == "ceasefire recording"
    process.communicate(timeout=LIMIT)


@needs_tracing
def test_events_faster_than_they_are_read(program: Path, output: Path) -> None:
    with subprocess.Popen([program, "flood"], stdout=subprocess.PIPE) as flood:
        assert flood.stdout is not None
        flood.stdout.readline()
        begin = time.monotonic()
        done = run("record", "-o", output, "--buffer", "1M", "-p", flood.pid, "--seconds", "1")
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - begin < LIMIT / 2
        assert flood.poll() is None
        flood.kill()
    assert recorded(output)["calls"]["munmap"]["quiet"] > 1000


SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL]


@needs_tracing
@pytest.mark.parametrize("number", SIGNALS)
def test_signals_at_any_moment(number: signal.Signals, built: Path, tmp_path: Path) -> None:
    # Each at moments of its own.
    for turn in range(SIGNALS.index(number), 16, len(SIGNALS)):
        delay = 0.075 * turn
        output = tmp_path / f"{turn}"
        process = start("record", "-o", output, "--", built, "")
        time.sleep(delay)
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT)
        # Python itself may be interrupted, before our first line.
        assert b"Traceback" not in err or number == signal.SIGINT, err
        assert b"internal error" not in err
        end = time.monotonic() + LIMIT
        while instances():
            assert time.monotonic() < end, f"{number!r} after {delay} s: {instances()}"
            time.sleep(0.05)
        if output.exists():
            assert recorded(output)["kind"] == "ceasefire recording"


@needs_tracing
def test_options_of_others(program: Path, output: Path) -> None:
    top = tracefs.find() / "options"
    before = {name: (top / name).read_text() for name in ("raw", "sym-userobj", "context-info")}
    try:
        (top / "raw").write_text("1")
        (top / "sym-userobj").write_text("1")
        (top / "context-info").write_text("0")
        done = run("record", "-o", output, "--", program)
    finally:
        for name, value in before.items():
            (top / name).write_text(value.strip())
    assert done.returncode == 3
    assert recorded(output)["causes"]["munmap"]["sent"] >= FEW
    assert "unmap_some" in sites(recorded(output))


def test_guard_cleans_up(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = (
        "import os, pathlib, signal, sys\n"
        "from ceasefire.record.guard import Guard\n"
        "mark = pathlib.Path(sys.argv[1])\n"
        "guard = Guard(lambda: mark.write_text('clean') > 0)\n"
        "print(guard._pid, flush=True)\n"
        "if sys.argv[2] == 'release':\n"
        "    guard.release()\n"
        "else:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    for way in ("release", "kill"):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "cli")}
        subprocess.run(
            [sys.executable, "-c", code, mark, way], env=environment, timeout=LIMIT, check=False
        )
        end = time.monotonic() + LIMIT
        while way == "kill" and not mark.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert mark.exists() == (way == "kill")


def test_guard_that_was_stopped_is_released() -> None:
    one = guard.Guard(lambda: True)
    os.kill(one._pid, signal.SIGSTOP)
    one.release()
    with pytest.raises(ProcessLookupError):
        os.kill(one._pid, 0)


def test_mappings_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    region = mappings.Region(0, 1, "r--p", 0, "/x")
    hanging = time.sleep

    def maps_of(pid: int) -> list[mappings.Region]:
        if pid == 2:
            hanging(3600)
        return [region] if pid else []

    monkeypatch.setattr(look, "maps_of", maps_of)
    monkeypatch.setattr(look, "_LIMIT", 0.5)
    looker = look.Looker()
    assert looker.look([0, 1]) == [(1, [region])]
    assert looker.look([2]) == []
    assert looker.stuck
    assert looker.look([1]) == []
