# SPDX-License-Identifier: GPL-2.0-only
"""Unit files as systemd reads them: our reading is held against systemd's own."""

import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ceasefire.errors import Failure
from ceasefire.service.command import Command, commands_in
from ceasefire.service.syntax import Service, Setting, quoted, settings_in, unquoted, words_of

SYSTEMD = Path("/lib/systemd/systemd")
LAUNCHER = "/usr/libexec/ceasefire/ceasefire-exec"


def service(text: str) -> Service:
    return Service(settings_in(text, "x.service"))


def test_lines_that_go_on_comments_and_sections() -> None:
    text = (
        "\ufeff# a comment \\\n[Unit]\nExecStart=/not/this\n; another\n[Service]\n"
        "  ExecStart = /bin/a \\\n  # in the middle\n  b \\\n\tc\nnonsense\n"
        "Environment=X=1\\\\\nType=simple\\\n"
    )
    found = service(text)
    assert [" ".join(s.value.split()) for s in found.assigned("ExecStart")] == ["/bin/a b c"]
    assert found.value("Environment") == "X=1\\\\"
    assert found.value("Type") == "simple"
    # systemd leaves out what is no UTF-8.
    assert service("[Service]\nExecStart=/bin/\udce4\nUser=x\n").assigned("ExecStart") == []


def test_lists_are_emptied_and_files_known() -> None:
    first = settings_in("[Service]\nExecStart=/a\nExecStart=/b\nUser=x\n", "one")
    second = settings_in("[Service]\nExecStart=\nExecStart=/c\nUser=\n", "two")
    found = Service([*first, *second])
    assert [(s.value, s.where) for s in found.assigned("ExecStart")] == [("/c", "two")]
    assert found.files_with("ExecStart") == ["one", "two"]
    assert found.value("User") == ""


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("plain", "plain"),
        ('"a b"', "a b"),
        ("a\"b c\"'d e'", "ab cd e"),
        (r"a\x20b\040c\sd", "a b c d"),
        (r"\"\'\\", "\"'\\"),
        (r'"\t\u00e4"', "\tä"),
        (r"\xe4\344\x41", "\udce4\udce4A"),
        (r"\q", r"\q"),
        ("", ""),
    ],
)
def test_quotes_and_backslashes(raw: str, plain: str) -> None:
    assert unquoted(raw) == plain


@pytest.mark.parametrize("word", ["a b", 'a"b', "a\\", "100%", "$x", "ä", "'", "a\nb", "\udce4"])
def test_what_is_quoted_is_read_back(word: str) -> None:
    assert words_of(f"x {quoted(word)}", "x") == ["x", word.replace("%", "%%")]


def commands(value: str) -> list[Command]:
    return list(commands_in(Setting("Service", "ExecStart", value, "x.service")))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/bin/a", f"{LAUNCHER} --latr -- /bin/a"),
        ("/bin/a b  'c d' $E ${F} %i", f"{LAUNCHER} --latr -- /bin/a b  'c d' $E ${{F}} %i"),
        ("-/bin/a b", f"-{LAUNCHER} --latr -- /bin/a b"),
        ("@/bin/a b c", f"{LAUNCHER} --latr --argv0 b -- /bin/a c"),
        ('-@+/bin/a "b b"', f'-+{LAUNCHER} --latr --argv0 "b b" -- /bin/a'),
        ("!!/bin/a", f"!!{LAUNCHER} --latr -- /bin/a"),
        ("!/bin/a", f"!{LAUNCHER} --latr -- /bin/a"),
        ("/opt/$x/a $y", f"{LAUNCHER} --latr -- /opt/$$x/a $y"),
        (":/opt/$x/a $y", f":{LAUNCHER} --latr -- /opt/$x/a $y"),
        ('"/opt/a b/c" d', f'{LAUNCHER} --latr -- "/opt/a b/c" d'),
        (r'"-/opt/a\x5cb" d', f'-{LAUNCHER} --latr -- "/opt/a\\\\b" d'),
        (r"/opt/a\xe4\nb c", rf'{LAUNCHER} --latr -- "/opt/a\xe4\x0ab" c'),
        ("/bin/a ';' \\; \"x;\" y;", f"{LAUNCHER} --latr -- /bin/a ';' \\; \"x;\" y;"),
    ],
)
def test_launcher_stands_in_front_of_the_program(value: str, expected: str) -> None:
    (command,) = commands(value)
    assert command.with_launcher(LAUNCHER, ["--latr"], command.program) == expected


def test_several_commands_of_a_line() -> None:
    found = commands("/bin/a b ; -/bin/c ; ; @/bin/d e f ;")
    assert [(c.prefixes, c.program, c.name, c.arguments) for c in found] == [
        ("", "/bin/a", "", "b"),
        ("-", "/bin/c", "", ""),
        ("", "/bin/d", "e", "f"),
    ]


@pytest.mark.parametrize("value", ['/bin/a "b', "-", "@/bin/a", "'", "/bin/a \\", "|/bin/a", "-@"])
def test_what_systemd_would_not_start_is_one_line(value: str) -> None:
    with pytest.raises(Failure, match="cannot read ExecStart"):
        commands(value)


# With what makes a difference: quotes, prefixes, variables, specifiers, names, semicolons.
TRICKY = [
    "/bin/echo a b",
    "-/bin/echo $ONE ${TWO} $$THREE %% %n",
    "@/bin/echo 'my name' a \"b c\" d\\x20e",
    ":/bin/echo $ONE %n",
    "-@:+/bin/echo name $ONE",
    "!!/bin/echo a ';' \\; \"x;y\" z;",
    "/bin/echo '' \"\" a",
    '"/bin/echo" \\u00e4 \\"q\\"',
    "echo by-name",
    "/bin/echo --option -- --latr --argv0 x",
    "/bin/echo one ; /bin/echo two ; @/bin/echo three 3",
]


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a folder that another user may read; pytest's own ones are private."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def command_lines(units: Path, names: list[str]) -> list[list[str]]:
    """Have systemd itself read services, and return the command lines that it has found.

    It refuses to try as root, and needs a folder of its own.
    """
    state = units.parent / "state"
    state.mkdir(exist_ok=True)
    state.chmod(0o777)
    wants = "".join(f"Wants={name}\n" for name in names)
    (units / "all.target").write_text(f"[Unit]\nDefaultDependencies=no\n{wants}")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run(
        [*(nobody if os.geteuid() == 0 else []), SYSTEMD, "--test", "--user", "--unit=all.target"],
        env={
            **{"SYSTEMD_UNIT_PATH": str(units), "HOME": str(state), "XDG_RUNTIME_DIR": str(state)},
            **{"PATH": os.environ["PATH"], "SYSTEMD_LOG_LEVEL": "warning"},
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    found = []
    for name in names:
        part = re.search(rf"^\t-> Unit {name}:\n((?:\t\t.*\n)*)", done.stdout, re.MULTILINE)
        assert part, done.stderr
        start = re.search(r"^\t\t-> ExecStart:\n((?:\t\t\t.*\n)*)", part[1], re.MULTILINE)
        found.append(re.findall(r"Command Line: (.*)", start[1]) if start else [])
    return found


def test_systemd_reads_the_same_as_we_do(public: Path) -> None:
    if not SYSTEMD.exists() or shutil.which("setpriv") is None:
        pytest.skip("systemd is not installed")
    before, after = public / "before", public / "after"
    names = []
    for folder in (before, after):
        folder.mkdir()
    for number, value in enumerate(TRICKY):
        names.append(f"unit-{number}.service")
        head = "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\n"
        (before / names[-1]).write_text(f"{head}ExecStart={value}\n")
        lines = [c.with_launcher("/bin/true", ["--latr"], c.program) for c in commands(value)]
        text = "".join(f"ExecStart={line}\n" for line in lines)
        (after / names[-1]).write_text(f"{head}{text}")
    originals, ours = command_lines(before, names), command_lines(after, names)
    for value, original, our in zip(TRICKY, originals, ours, strict=True):
        told = commands(value)
        assert len(original) == len(our) == len(told), value
        for command, old, new in zip(told, original, our, strict=True):
            # The name comes first; with @ it is that, without it is the path.
            name, _, arguments = _first(old)
            words = f" --argv0 {name}" if command.name else ""
            rest = f" {arguments}" if arguments else ""
            assert new == f"/bin/true --latr{words} -- {command.program}{rest}", value


def _first(line: str) -> tuple[str, str, str]:
    """Split what systemd prints behind the first word, which may be in quotes."""
    found = re.fullmatch(r'("(?:\\.|[^"\\])*"|\S+)( ?)(.*)', line)
    assert found
    return found[1], found[2], found[3]


def test_damaged_units_are_one_line() -> None:
    chance = random.Random(12)
    pieces = [
        *("[Service]", "ExecStart", "=", "\n", " ", "\\", '"', "'", ";", "@", "-", "$", "%"),
        *("/bin/a", "\\x", "\\xe4", "\\x0a", "\\n", "\\u12", "\\;", "\0", "\udc80", "\ufeff"),
        *("\t", "#", "é", "+", "!!", ":"),
    ]
    read = refused = 0
    for _ in range(20_000):
        words = [chance.choice(pieces) for _ in range(chance.randrange(1, 16))]
        found = service("[Service]\nExecStart=/bin/a" + "".join(words))
        for setting in found.assigned("ExecStart"):
            try:
                for command in commands_in(setting):
                    line = command.with_launcher(LAUNCHER, ["--latr"], command.program)
                    # What was one line is one line of UTF-8, and the same when it is read again.
                    assert "\n" not in line
                    assert line.encode()
                    assert len(commands(line)) == 1
                    read += 1
            except Failure as problem:
                assert "cannot read ExecStart" in str(problem)
                refused += 1
    assert read > 5000
    assert refused > 500
