# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire record` and `advise`: wrong use, missing rights, and what is left behind."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from ceasefire.__main__ import main
from ceasefire.errors import Failure, Unsupported
from ceasefire.files import write_whole
from ceasefire.record import cli, model, processes, recorder, tracefs


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["record"], "say what to record"),
        (["advise"], "say what to record"),
        (["record", "-p", "1", "--", "true"], "leave one of them out"),
        (["record", "-p", "0"], "at least 1"),
        (["advise", "--seconds", "1", "--", "true"], "--seconds goes with -p"),
        (["record", "-p", "1", "--seconds", "0"], "more than 0"),
        (["record", "--buffer", "1K", "--", "true"], "64K to 1G"),
        (["record", "--buffer", "much", "--", "true"], "not a size"),
        (["advise", "-i", "x", "--", "true"], "leave the command and -p out"),
        (["advise", "-i", "x", "-p", "1"], "leave the command and -p out"),
        (["record", "--repeat", "0", "--", "true"], "it is 1 to 1000"),
        (["record", "--repeat", "2", "-p", "1"], "give one, not -p or -i"),
        (["advise", "--repeat", "2", "-i", "x"], "give one, not -p or -i"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_a_pipe_is_no_input_for_several_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "_is_pipe", lambda _: True)
    assert main(["record", "--repeat", "2", "--", "cat"]) == 2
    assert "(< FILE)" in capsys.readouterr().err


def test_what_is_a_pipe_and_what_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_text("0123456789")
    read, write = os.pipe()
    with path.open("rb", buffering=0) as file, Path("/dev/null").open("rb") as null:
        file.read(4)
        assert (cli._is_pipe(read), cli._position(read)) == (True, None)
        assert (cli._is_pipe(file.fileno()), cli._position(file.fileno())) == (False, 4)
        assert (cli._is_pipe(null.fileno()), cli._position(null.fileno())) == (False, None)
    os.close(read)
    os.close(write)
    assert (cli._is_pipe(read), cli._position(read)) == (False, None)


class Repeated:
    """Stands for the recorder. script: the status of each run, and whether a signal ended it."""

    def __init__(self, *script: tuple[int, bool]) -> None:
        self.script = list(script)
        self.inputs: list[bytes] = []

    def command(self, _words: object, keep: recorder.Keep) -> recorder.Result:
        status, stopped = self.script.pop(0)
        self.inputs.append(os.read(0, 4))
        recording = model.Recording(
            model.Environment(["x"], "6.12", 2, False, False), runs=[model.Run(1, 2, 1.0)]
        )
        keep(recording)
        return recorder.Result(recording, status, [], stopped)


@pytest.fixture
def input_file(tmp_path: Path) -> Iterator[None]:
    """Make a file of numbers the standard input, two of them read already."""
    path = tmp_path / "input"
    path.write_text("0123456789")
    before = os.dup(0)
    with path.open("rb", buffering=0) as file:
        file.read(2)
        os.dup2(file.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.mark.usefixtures("input_file")
def test_each_run_has_the_same_input() -> None:
    fake = Repeated((0, False), (3, False), (4, False))
    kept: list[int] = []
    found = cli._runs(
        cast(recorder.Recorder, fake), ["x"], 3, lambda recording: kept.append(len(recording.runs))
    )
    assert fake.inputs == [b"2345"] * 3
    # What there is so far is kept after each run, and the first failure is told.
    assert kept == [1, 2, 3]
    assert (found.status, len(found.recording.runs)) == (3, 3)
    assert found.recording.remarks == []


@pytest.mark.usefixtures("input_file")
def test_a_signal_ends_all_runs() -> None:
    fake = Repeated((0, False), (143, True), (0, False))
    found = cli._runs(cast(recorder.Recorder, fake), ["x"], 5, lambda _: None)
    assert (found.status, len(found.recording.runs)) == (143, 2)
    assert found.recording.remarks == ["A signal has ended run 2: the other 3 are missing."]


@pytest.mark.parametrize("words", [["record", "-o"], ["advise", "-o"], ["advise", "--html"]])
def test_targets_are_checked_before_anything_runs(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for target, says in ((tmp_path / "no" / "x", "no such directory"), (tmp_path, "directory")):
        assert main([*words, str(target), "--", "touch", str(tmp_path / "ran")]) == 1
        assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_no_tracefs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tracefs, "PLACES", (tmp_path / "tracing",))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    output = tmp_path / "r.json"
    assert main(["record", "-o", str(output), "--", "true"]) == 1
    assert "use sudo" in capsys.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises((Failure, Unsupported), match=r"mount -t tracefs|no tracing"):
        tracefs.find()
    assert not output.exists()


def fake_instance(path: Path) -> None:
    """Make what the kernel makes in a new instance."""
    for event in tracefs._EVENTS:
        folder = path / "events" / event
        folder.mkdir(parents=True)
        (folder / "filter").touch()
        (folder / "enable").touch()
    (path / "options").mkdir()


def test_recording_sets_up_and_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instances = tmp_path / "instances"
    instances.mkdir()
    removed: list[str] = []
    make = Path.mkdir

    def mkdir(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        make(path, mode, parents, exist_ok)
        if path.parent == instances:
            fake_instance(path)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(tracefs, "remove", lambda path: removed.append(path.name))
    with pytest.raises(ZeroDivisionError), tracefs.Tracing(tmp_path, 64) as tracing:
        calls = instances / f"ceasefire-{os.getpid()}-calls"
        assert (calls / "tracing_on").read_text() == "0"
        assert (calls / "events/tlb/tlb_flush/filter").read_text() == "reason == 1 || reason == 4"
        assert "id == 11" in (calls / "events/raw_syscalls/sys_enter/filter").read_text()
        assert not tracing.missing
        tracing.follow([1, 2])
        tracing.start()
        assert (calls / "set_event_pid").read_text() == "1 2"
        assert (calls / "tracing_on").read_text() == "1"
        raise ZeroDivisionError
    assert removed == [f"ceasefire-{os.getpid()}-{name}" for name in ("calls", "stacks")]


def test_kernel_without_a_tracepoint(tmp_path: Path) -> None:
    (tmp_path / "instances").mkdir()
    # Nothing is in the new directories: no event is there.
    with pytest.raises((Unsupported, Failure)), tracefs.Tracing(tmp_path, 64):
        pass


def test_left_over_instances(tmp_path: Path) -> None:
    instances = tmp_path / "instances"
    gone = subprocess.Popen(["true"])
    gone.wait()
    for name in (f"ceasefire-{gone.pid}-calls", f"ceasefire-{os.getpid()}-calls", "other"):
        (instances / name).mkdir(parents=True)
    tracefs.remove_left_over(tmp_path)
    # A real one has no files of its own; here they are in the way of rmdir().
    assert (instances / "other").is_dir()
    assert (instances / f"ceasefire-{os.getpid()}-calls").is_dir()


def test_command_that_does_not_exist() -> None:
    child = processes.Child(["/nosuch/program"])
    problem = child.release()
    os.waitpid(child.pid, 0)
    assert processes.NotStarted("x", problem).status == 127
    assert processes.NotStarted("x", 13).status == 126


@pytest.mark.parametrize(("word", "status"), [("exit 3", 3), ("kill -9 $$", 137)])
def test_status_of_the_command(word: str, status: int) -> None:
    child = processes.Child(["sh", "-c", word])
    assert child.release() == 0
    with recorder._process_file(child.pid) as wakes:
        while not child.ended([]):
            recorder._sleep(wakes, 10)
    assert child.status == status


def test_signal_is_passed_on() -> None:
    child = processes.Child(["sleep", "60"])
    assert child.release() == 0
    assert not child.ended([2])
    signals = [15]
    while not child.ended(signals):
        recorder._sleep([], 0.01)
    assert child.status == 143


def test_unreleased_child_is_ended() -> None:
    child = processes.Child(["true"])
    child.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_processes_are_looked_at() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert child.pid in processes.descendants(os.getpid(), 1000)
        assert processes.threads(child.pid) == [child.pid]
        assert processes.alive(child.pid)
        assert processes.maps_of(os.getpid())
    finally:
        child.kill()
    recorder._sleep([], 0.05)
    # A zombie now.
    assert not processes.alive(child.pid)
    child.wait()
    assert not processes.alive(child.pid)
    assert processes.threads(child.pid) == []
    assert processes.maps_of(child.pid) == []


def test_write_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "page"
    target.write_text("old")
    monkeypatch.setattr(Path, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
    write_whole(Path("/dev/null"), "new")
    assert Path("/dev/null").is_char_device()
