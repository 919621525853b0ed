# SPDX-License-Identifier: GPL-2.0-only
"""What others have chosen (names, commands, output) is text: no markup, no escape sequences."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.driver.__main__ import report
from tests.driver.cases import Outcome, failed
from tests.driver.suites import Job

from ceasefire import counters, output, tables
from ceasefire.errors import Failure, GuestError, said
from ceasefire.record import page, web
from ceasefire.record.model import Environment, Recording, Site, Sum
from ceasefire.text import decoded, lines_of, quoted, shown, shown_lines

Runner = Callable[..., "subprocess.CompletedProcess[str]"]

# Clears the screen and sets its title, goes back, turns writing round, ends a line in five ways.
HOSTILE = "\x1b[2J\x1b]0;title\x07a\x08b\rc\x0bd\x0ce\x85f\u2028g\u202eh\x9b1mi\x7fj\udcffk"
MARKUP = ["[a-z]+", "[/a]", "[bold]x[/bold]", "[link=file:///etc/passwd]x", ":smile:", "\\[x]"]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Lie."""
        return True


def harmless(text: str) -> bool:
    """Say whether a terminal or an editor shows these characters and nothing else happens."""
    return all(char.isprintable() or char == "\n" for char in text)


def test_control_characters_are_shown() -> None:
    assert shown("plain \u00e9\u4e2d text [x] \\ ") == "plain \u00e9\u4e2d text [x] \\ "
    assert shown("a\nb\tc\x1b[m\x9b\u202e\udcff\U000e0041") == (
        r"a\nb\tc\x1b[m\x9b\u202e\xff\U000e0041"
    )
    assert harmless(shown(HOSTILE))
    assert shown(HOSTILE).isprintable()
    assert shown_lines("a\x0cb\nc") == "a\\x0cb\nc"
    assert lines_of(b"a\r\nb\x0cc\xff\n") == ["a", "b\\x0cc\\xff"]
    assert lines_of(b"") == []
    assert decoded(b"a\rb\n") == "a\rb\n"


@pytest.mark.parametrize(
    "word", [HOSTILE, "it's\n", "a b", "", "$(x)`", "\udcff1", "\x1bf0", "\\\n"]
)
def test_command_can_be_pasted(word: str) -> None:
    text = quoted(["printf", "%s", word])
    assert text.isprintable()
    done = subprocess.run(["bash", "-c", text], capture_output=True, check=True)
    assert done.stdout == os.fsencode(word)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("cell", [*MARKUP, HOSTILE, "pass", "a\nb"])
def test_tables_hold_text(cell: str, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb" if not terminal else "vt100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal() if terminal else io.StringIO()
    tables.print_table([cell, "n"], [[cell, "1"], [cell, "2"]], title=cell, file=stream)
    text = stream.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert text.count(shown(cell)) == 4
    assert harmless(text)


def test_lines_hold_text(capsys: pytest.CaptureFixture[str]) -> None:
    output.say(f"found {HOSTILE}\nceasefire: all is well")
    output.progress(f"found {HOSTILE}\nceasefire: all is well")
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert text.count("\n") == 1
        assert harmless(text)


def test_failures_are_one_line_and_quotes_are_marked() -> None:
    assert said(Failure(f"{HOSTILE}\nceasefire: fine")).isprintable()
    text = said(GuestError(f"it failed:\n{HOSTILE}\nceasefire vm: fine"))
    assert harmless(text)
    assert [line[:4] for line in text.split("\n")[1:]] == ["  | ", "  | "]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--dry-run", "--force", "--", HOSTILE],
        ["run", "--force", "--", HOSTILE],
        ["run", HOSTILE],
        [f"--{HOSTILE}"],
        [HOSTILE],
        ["run", "--max-size", HOSTILE, "--", "true"],
        ["vm", "--kernel", HOSTILE, "--", "true"],
        ["vm", "--env", HOSTILE, "--", "true"],
        ["try", "--data", HOSTILE, "--", "true"],
        ["advise", "-i", HOSTILE],
        ["record", "-o", f"{HOSTILE}/x", "--", "true"],
        ["maps", HOSTILE],
        ["stat", "--", HOSTILE],
        ["bench", "report", HOSTILE],
        ["bench", "run", HOSTILE],
        ["bench", HOSTILE],
    ],
    ids=lambda words: shown(" ".join(words))[:24],
)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_arguments_are_text(words: list[str], encoding: str, ceasefire: Runner) -> None:
    done = ceasefire(*words, PYTHONIOENCODING=encoding)
    assert harmless(done.stdout)
    assert harmless(done.stderr)
    assert "internal error" not in done.stderr
    assert done.stderr.count("\n") <= 1


@pytest.fixture
def mapper(tmp_path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Map files with hostile names in another process; return it and the names."""
    names = [b"form\x0cfeed", b"a\rb", b"a\nb", b"esc\x1b[2J", b"\xff", "ls\u2028p".encode()]
    names += [b"[bold]x", b"x (deleted)", b"tail \t"]
    code = (
        "import mmap, os, sys\n"
        "keep = []\n"
        "for name in sys.argv[1:]:\n"
        "    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)\n"
        "    os.ftruncate(fd, 4096)\n"
        "    keep.append(mmap.mmap(fd, 4096))\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    paths = [os.fsencode(tmp_path) + b"/" + name for name in names]
    with subprocess.Popen(
        [sys.executable, "-c", code, *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid, names
        process.kill()


def test_names_of_mapped_files(mapper: tuple[int, list[bytes]], ceasefire: Runner) -> None:
    pid, names = mapper
    done = ceasefire("maps", str(pid), COLUMNS="1000")
    assert done.returncode == 0, done.stderr
    assert harmless(done.stdout)
    # The kernel escapes line feeds itself.
    expected = [shown(os.fsdecode(name.replace(b"\n", b"\\012"))) for name in names]
    assert all(f"/{name}" in done.stdout for name in expected)
    done = ceasefire("maps", "--json", str(pid))
    paths = {json.loads(line)["path"] for line in done.stdout.splitlines()}
    for name in names:
        assert any(os.fsencode(p).endswith(b"/" + name.replace(b"\n", b"\\012")) for p in paths)


@pytest.mark.parametrize("end", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_names_of_files_forge_no_lines_of_proc(end: str) -> None:
    head = f"1000-2000 r--p 00000000 fe:00 5   /a{end}Size:  99 kB{end}VmFlags: fr"
    smaps = f"{head}{end}VmFlags: fr{end}\nSize:   4 kB\nVmFlags: rd fr \n"
    assert counters.parse_smaps(smaps) == (1, 4)
    status = f"Name:\ta{end}FPRParked:\t99 kB{end}\nFPRParked:\t7 kB\n"
    assert counters.parse_status(status, "FPRParked") == 7


def hostile_recording() -> Recording:
    """Return a recording of a program that chose its names with care."""
    part = Sum(sent=10, received=9, saved=8.0)
    names = [HOSTILE, *MARKUP, "<script>alert(1)</script>", "a\nForecast: all is well"]
    return Recording(
        Environment([HOSTILE, *names], "6.1", 2, False, True),
        causes={"munmap": part},
        programs=dict.fromkeys(names, part),
        why_not={HOSTILE: 3},
        files={f"/{name}": 5 for name in names},
        sites=[Site(name, "munmap", [name, HOSTILE], part) for name in names],
        missing=[HOSTILE],
    )


def test_recording_with_hostile_names(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = hostile_recording()
    monkeypatch.setenv("TERM", "dumb")
    stream = io.StringIO()
    page.show(recording, stream)
    assert harmless(stream.getvalue())
    assert "\nForecast: all is well" not in stream.getvalue()
    document = web.document(recording)
    assert harmless(document)
    assert "<script>" not in document
    document.encode("utf-8")


def test_report_of_the_driver() -> None:
    job = Job(name="a/b", kind="host", command="x")
    outcome = Outcome((failed(HOSTILE, f"{HOSTILE}\n9 passed, 0 failed"),))
    text = report(job, outcome, 1.0, "[1/1]", verbose=True)
    assert harmless(text)
    assert "9 passed, 0 failed" not in text.split("\n")
