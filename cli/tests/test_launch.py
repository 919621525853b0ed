# SPDX-License-Identifier: GPL-2.0-only
"""Which way `ceasefire run` takes, and what it says where none reaches the program."""

import argparse
import contextlib
import ctypes
import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ceasefire import modes
from ceasefire.__main__ import main
from ceasefire.errors import Unsupported, UsageError
from ceasefire.launch import activation, executable, prctl, preload, shared

ASAN = "libasan.so"
# Sets up a seccomp filter that allows everything, and becomes the command.
FILTERED = """
import ctypes, os, struct, sys
code = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000))
program = struct.pack("<HxxxxxxQ", 1, ctypes.addressof(code))
call = ctypes.CDLL(None, use_errno=True).prctl
if call(38, 1, 0, 0, 0) or call(22, 2, program, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
"""
Runner = Callable[..., "subprocess.CompletedProcess[str]"]
ELF_32 = b"\x7fELF\x01\x01\x01".ljust(64, b"\0")


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    activation.add_arguments(parser)
    return parser.parse_args(words)


@pytest.fixture
def library(empty_build: Path) -> Path:
    """Make a build directory whose preload library exists."""
    path = empty_build / "tools" / "lib" / "preload" / "libceasefire-preload.so"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


@pytest.fixture
def older_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel have FPR, switched on, without the prctl; nothing is executed."""
    monkeypatch.setattr(os, "execvpe", lambda *_: pytest.fail("it was executed"))
    monkeypatch.setattr(modes.Mechanism, "present", lambda _: True)
    monkeypatch.setattr(modes.Mechanism, "enabled", lambda _: True)
    monkeypatch.setattr(prctl, "available", lambda: False)


def build(tmp_path: Path, name: str, *flags: str) -> Path:
    path = tmp_path / name
    source = "int main(void) { return 0; }"
    subprocess.run(["cc", *flags, "-x", "c", "-", "-o", path], input=source, text=True, check=True)
    return path


def test_numbers_are_those_of_the_kernel(root: Path) -> None:
    header = (root / "kernel/src/include/uapi/linux/ceasefire.h").read_text(encoding="utf-8")
    found = dict(
        re.findall(r"^#define (PR_(?:FPR|LATR|SHARERS)\w*)\s+(\S+)$", header, re.MULTILINE)
    )
    contexts = {f"PR_FPR_CONTEXT_{name.upper()}": n for name, n in prctl.CONTEXTS.items()}
    for name, number in found.items():
        ours = contexts[name] if name in contexts else getattr(prctl, name)
        assert ours == int(number, 0), name
    assert set(contexts) <= set(found)


@pytest.mark.skipif(prctl.available(), reason="this kernel has the prctl")
def test_kernel_without_the_prctl_is_an_error_with_a_name() -> None:
    with pytest.raises(OSError, match="prctl"):
        prctl.set_auto(prctl.ALL)


def test_without_paths_it_is_the_switch() -> None:
    found = activation.chosen(options(), switch=True)
    assert (found.limit, found.variables) == (prctl.ALL, {})
    assert "the kernel" in found.text


def test_size_is_the_limit_of_the_switch() -> None:
    found = activation.chosen(options("--max-size", "512M"), switch=True)
    assert found.limit == 512 << 20
    assert "up to 512M" in found.text
    assert activation.chosen(options("--max-size", "99999999999T"), switch=True).limit == prctl.ALL


@pytest.mark.parametrize("option", ["--path", "--exclude"])
def test_with_paths_it_is_the_library(option: str, library: Path) -> None:
    found = activation.chosen(options(option, "/data/*"), switch=True)
    assert found.limit is None
    assert found.variables["LD_PRELOAD"] == str(library)
    assert "preload library" in found.text


def test_size_and_path_exclude_each_other(library: Path) -> None:
    with pytest.raises(UsageError, match="--max-size goes with neither"):
        activation.chosen(options("--path", "*", "--max-size", "1G"), switch=True)


@pytest.mark.parametrize("size", ["lots", "0M", "512", "-1M", "1P", ""])
def test_what_is_no_size(size: str) -> None:
    with pytest.raises(UsageError):
        activation.chosen(options(f"--max-size={size}"), switch=True)


def test_older_kernel_takes_the_library(library: Path) -> None:
    found = activation.chosen(options(), switch=False)
    assert found.limit is None
    assert found.variables["CEASEFIRE_PATHS"] == "*"
    assert "no prctl(PR_FPR)" in found.text
    with pytest.raises(Unsupported, match="--max-size"):
        activation.chosen(options("--max-size", "1G"), switch=False)


def test_older_kernel_from_the_command_line(
    library: Path, older_kernel: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--dry-run", "--", "true"]) == 0
    assert f"LD_PRELOAD={library}" in capfd.readouterr().out
    assert main(["run", "--", str(build(tmp_path, "static", "-static"))]) == 77
    said = capfd.readouterr().err
    assert "statically linked" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "obstacle"),
    [([], ""), (["-static"], "statically linked"), (["-static-pie"], "statically linked")],
)
def test_obstacle_is_seen_in_the_program(flags: list[str], obstacle: str, tmp_path: Path) -> None:
    assert executable.preload_obstacle(build(tmp_path, "program", *flags)) == obstacle


@pytest.mark.parametrize(
    ("content", "obstacle"),
    [
        (ELF_32, "a 32-bit program"),
        (b"\x7fELF", ""),
        (b"\x7fELF\x02\x01\x01".ljust(64, b"\xff"), ""),
        (b"\x7fELF\x02\x01\x01".ljust(64, b"\0"), "statically linked"),
        (
            b"\x7fELF\x02\x01\x01".ljust(52, b"\0") + b"\0\0\xff\xff\xff\xff".ljust(12, b"\0"),
            "statically linked",
        ),
        (b"", ""),
    ],
    ids=["32 bit", "cut off", "offset", "no table", "4 GiB", "empty"],
)
def test_damaged_programs_are_no_traceback(content: bytes, obstacle: str, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(content)
    assert executable.preload_obstacle(path) == obstacle


def test_asan_has_to_come_first(tmp_path: Path) -> None:
    path = build(tmp_path, "checked", "-fsanitize=address")
    assert executable.preload_obstacle(path) == executable.ASAN
    assert "AddressSanitizer" in activation.obstacle(activation.Activation(""), str(path))
    found = activation.Activation("", variables={"LD_PRELOAD": f"/lib/{ASAN}:/lib/ours.so"})
    assert activation.obstacle(found, str(path)) == ""
    assert executable.preload_obstacle(build(tmp_path, "threads", "-fsanitize=thread")) == ""


@pytest.mark.parametrize(
    ("name", "asan"),
    [
        ("/usr/lib/libasan.so", True),
        ("libasan.so.8", True),
        ("libclang_rt.asan-x86_64.so", True),
        ("libclang_rt.asan.so", True),
        ("libasanity.so", False),
        ("libc.so.6", False),
        ("", False),
    ],
)
def test_names_of_the_runtime(name: str, asan: bool) -> None:
    assert executable.is_asan(name) == asan
    assert preload.asan_first(f" {name}:/lib/mine.so") == asan


def test_runtime_of_asan_stays_first() -> None:
    found = preload.variables(Path("/ours.so"), [], [], f"/lib/{ASAN} /lib/mine.so")
    assert found["LD_PRELOAD"] == f"/lib/{ASAN}:/ours.so:/lib/mine.so"
    found = preload.variables(Path("/ours.so"), [], [], "/lib/mine.so:/lib/other.so")
    assert found["LD_PRELOAD"] == "/ours.so:/lib/mine.so:/lib/other.so"


@pytest.mark.parametrize(
    ("status", "on"),
    [
        ("Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\n", False),
        ("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n", True),
        ("Name:\tx\nSeccomp:\t1\n", True),
        ("Name:\tx\n", False),
        (None, True),
    ],
    ids=["none", "filter", "strict", "kernel without", "no /proc"],
)
def test_filter_of_this_process(
    status: str | None, on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "status"
    if status is not None:
        path.write_text(status)
    monkeypatch.setattr(preload, "_STATUS", path)
    assert preload.filter_is_on() == on


def test_under_a_filter_path_is_a_line(root: Path, library: Path) -> None:
    command = [sys.executable, "-m", "ceasefire", "run", "--path", "*", "--", "true"]
    done = subprocess.run(
        [sys.executable, "-c", FILTERED, *command],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root / "cli")},
        timeout=600,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "a seccomp filter is on here" in done.stderr
    assert "leave --path and --exclude out" in done.stderr


def test_fifo_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path, 0o755)
    assert executable.preload_obstacle(path) == ""
    assert executable.binary_of(str(path)) == path


def test_what_is_not_there_has_no_obstacle(tmp_path: Path) -> None:
    assert executable.preload_obstacle(tmp_path / "none") == ""
    assert not executable.gains_privileges(tmp_path / "none")
    assert executable.binary_of("nosuchprogram") is None


def test_script_is_judged_by_its_interpreter(tmp_path: Path) -> None:
    static = build(tmp_path, "static", "-static")
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.write_text(f"#!{static} -x\n")
    outer.write_text(f"#! {inner}\n")
    for script in (inner, outer):
        script.chmod(0o755)
        assert executable.binary_of(str(script)) == static
    endless = tmp_path / "endless"
    endless.write_text(f"#!{endless}\n")
    endless.chmod(0o755)
    assert executable.binary_of(str(endless)) == endless


def test_setuid_of_somebody_else_gains_privileges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "program"
    shutil.copy("/bin/true", path)
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert not executable.gains_privileges(path)
    path.chmod(0o4755)
    assert executable.gains_privileges(path)
    monkeypatch.setattr(os, "geteuid", lambda: owner)
    assert not executable.gains_privileges(path)
    monkeypatch.setattr(os, "getegid", lambda: path.stat().st_gid + 1)
    path.chmod(0o2755)
    assert executable.gains_privileges(path)


@pytest.mark.parametrize("verb", ["run", "try"])
def test_static_program_and_path_is_a_line(
    verb: str, ceasefire: Runner, library: Path, tmp_path: Path
) -> None:
    static = build(tmp_path, "static", "-static")
    done = ceasefire(verb, "--path", "*", "--", str(static))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"{static} is statically linked" in done.stderr
    assert "leave --path and --exclude out" in done.stderr


def test_force_runs_it_all_the_same(ceasefire: Runner, library: Path, tmp_path: Path) -> None:
    static = build(tmp_path, "static", "-static")
    done = ceasefire("run", "--force", "-v", "--path", "*", "--", str(static))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "ceasefire run: the preload library treats the files that match\n"


def test_dry_run_shows_the_switch(ceasefire: Runner) -> None:
    done = ceasefire("run", "--dry-run", "--max-size", "2M", "--", "cat", "a b")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines == ["# prctl(PR_FPR, PR_FPR_SET_AUTO, 0x200000, 0, 0)", "cat 'a b'"]


def test_dry_run_shows_the_context(ceasefire: Runner) -> None:
    done = ceasefire("run", "--dry-run", "--context", "children", "--", "true")
    assert done.returncode == 0
    assert "# prctl(PR_FPR, PR_FPR_SET_CONTEXT, 2, 0, 0)\n" in done.stdout


def test_unknown_context_is_wrong_use(ceasefire: Runner) -> None:
    done = ceasefire("run", "--context", "everybody", "--", "true")
    assert done.returncode == 2
    assert "everybody" in done.stderr


def test_mode_off_switches_it_off_for_the_program(ceasefire: Runner) -> None:
    done = ceasefire("run", "--mode", "off", "--", "sh", "-c", "echo ran; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "ran\n", "")
    found = activation.without(options(), "off", switch=True)
    found = activation.of_process(found, lazy=False, sharers=False)
    assert (found.limit, found.lazy, found.sharers, found.variables) == (0, False, False, {})
    assert found.text == "no mapping is treated"
    assert activation.without(options(), "off", switch=False).limit is None


@pytest.mark.parametrize("option", [["--latr"], ["--mode", "latr"], ["--mode", "fpr+latr"]])
def test_dry_run_shows_that_it_is_lazy(option: list[str], ceasefire: Runner) -> None:
    done = ceasefire("run", "--dry-run", *option, "--", "true")
    assert done.returncode == 0
    assert "# prctl(PR_LATR, PR_LATR_SET, 1, 0, 0)\n" in done.stdout
    assert ("PR_FPR_SET_AUTO, 0xffff" in done.stdout) == ("fpr" in option[-1])


@pytest.mark.parametrize(
    ("mode", "fpr", "latr"),
    [("sharers", 0, 0), ("fpr+sharers", 1, 0), ("latr+sharers", 0, 1), ("sharers+latr+fpr", 1, 1)],
)
def test_dry_run_shows_that_cpus_note(mode: str, fpr: int, latr: int, ceasefire: Runner) -> None:
    option = ["--sharers"] if mode == "sharers" else ["--mode", mode]
    done = ceasefire("run", "--dry-run", *option, "--", "true")
    assert done.returncode == 0
    assert "# prctl(PR_SHARERS, PR_SHARERS_SET, 1, 0, 0)\n" in done.stdout
    assert ("PR_FPR_SET_AUTO, 0xffff" in done.stdout) == bool(fpr)
    assert ("# prctl(PR_LATR, PR_LATR_SET, 1, 0, 0)\n" in done.stdout) == bool(latr)


def test_what_treats_a_program_is_said() -> None:
    def text(*, lazy: bool, sharers: bool, fpr: bool = False) -> str:
        how = (
            activation.chosen(options(), switch=True)
            if fpr
            else activation.without(options(), "x", switch=True)
        )
        return activation.of_process(how, lazy=lazy, sharers=sharers).text

    note = "flushes go to CPUs that have used what is flushed"
    assert text(lazy=True, sharers=False) == "munmap is lazy"
    assert text(lazy=False, sharers=True) == note
    assert text(lazy=True, sharers=True) == f"munmap is lazy, {note}"
    assert text(lazy=False, sharers=True, fpr=True).endswith(f"mappings of all files, {note}")


@pytest.mark.skipif(prctl.sharers_available(), reason="this kernel has the prctl")
@pytest.mark.parametrize("option", [["--sharers"], ["--mode", "sharers"]])
def test_kernel_without_sharers_is_a_line(option: list[str], ceasefire: Runner) -> None:
    done = ceasefire("run", *option, "--", "true")
    assert done.returncode == 77
    assert done.stderr.count("\n") == 1
    assert "this kernel has no Sharers: boot the ceasefire kernel" in done.stderr
    done = ceasefire("run", "--force", *option, "--", "echo", "ran")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


@pytest.mark.parametrize(
    "words", [["--context", "children"], ["--path", "*"], ["--max-size", "1G"]]
)
def test_options_of_fpr_do_not_go_with_sharers_alone(words: list[str], ceasefire: Runner) -> None:
    done = ceasefire("run", "--sharers", *words, "--", "true")
    assert done.returncode == 2
    assert f"{words[0]} is for FPR, which mode sharers has not" in done.stderr
    assert done.stderr.count("\n") == 1
    if words[0] != "--path":
        done = ceasefire("run", "--dry-run", "--mode", "fpr+sharers", *words, "--", "true")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EPERM, errno.EINVAL])
def test_threads_of_our_own_are_no_error(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def call(*arguments: int) -> int:
        calls.append(arguments)
        ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(prctl, "_prctl", call)
    with (
        contextlib.nullcontext()
        if number == errno.EBUSY
        else pytest.raises(OSError, match=r"prctl\(PR_SHARERS\)")
    ):
        prctl.set_sharers(on=True)
    assert calls == [(prctl.PR_SHARERS, prctl.PR_SHARERS_SET, True, 0, 0)]


@pytest.mark.skipif(prctl.lazy_available(), reason="this kernel has the prctl")
def test_kernel_without_lazy_processes_is_a_line(ceasefire: Runner) -> None:
    done = ceasefire("run", "--latr", "--", "true")
    assert done.returncode == 77
    assert done.stderr.count("\n") == 1
    assert "this kernel has no LATR: boot the ceasefire kernel" in done.stderr


@pytest.mark.parametrize("words", [["--context", "children"], ["--path", "*"]])
def test_options_of_fpr_do_not_go_with_lazy(words: list[str], ceasefire: Runner) -> None:
    done = ceasefire("run", "--latr", *words, "--", "true")
    assert done.returncode == 2
    assert f"{words[0]} is for FPR" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["--path", "*"], ["--max-size", "1G"], ["--context", "process"], ["--exclude", "a"]]
)
def test_options_of_fpr_go_with_no_other_mode(words: list[str], ceasefire: Runner) -> None:
    done = ceasefire("run", "--mode", "off", *words, "--", "true")
    assert done.returncode == 2
    assert f"{words[0]} is for FPR, which mode off has not" in done.stderr
    assert done.stderr.count("\n") == 1


def test_unknown_mode_is_wrong_use(ceasefire: Runner) -> None:
    done = ceasefire("run", "--mode", "fast", "--", "true")
    assert done.returncode == 2
    assert "'fast' is no mode" in done.stderr


def test_why_a_command_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, script, good = tmp_path / "plain", tmp_path / "script", tmp_path / "good"
    plain.write_text("")
    script.write_text("#!/no/such/shell\n")
    good.write_text("#!/bin/sh\n")
    for path in (script, good):
        path.chmod(0o755)
    assert executable.missing("nosuchprogram") == ("nosuchprogram: command not found", 127)
    assert executable.missing(str(tmp_path / "none")) == (
        f"{tmp_path}/none: command not found",
        127,
    )
    assert executable.missing(str(plain)) == (f"{plain} is not executable", 126)
    assert executable.missing(str(tmp_path)) == (f"{tmp_path} is a directory", 126)
    found = (f"{script}: its interpreter /no/such/shell is not there", 126)
    assert executable.missing(str(script)) == found
    monkeypatch.chdir(tmp_path)
    for name in ("./good", str(good), "sh", "/bin/true"):
        assert executable.missing(name) is None


def test_shared_tables_take_the_library_in_any_mode(ceasefire: Runner, library: Path) -> None:
    for mode in ("fpr", "off", "latr"):
        done = ceasefire("run", "--mode", mode, "--shared-tables=16M", "--dry-run", "--", "true")
        assert done.returncode == 0, done.stderr
        assert f"CEASEFIRE_SHARED_TABLES={16 << 20}" in done.stdout
        assert f"LD_PRELOAD={library}" in done.stdout and "CEASEFIRE_PATHS" not in done.stdout
    both = ceasefire("run", "--path", "/a*", "--shared-tables", "--dry-run", "--", "true")
    assert f"CEASEFIRE_SHARED_TABLES={8 << 20}" in both.stdout
    assert "CEASEFIRE_PATHS=" in both.stdout and both.stdout.count(str(library)) == 1


@pytest.mark.parametrize(
    ("size", "says"),
    [("16", "such as 16M"), ("x", "not a size"), ("0M", "not a size")],
)
def test_size_of_shared_tables(size: str, says: str, ceasefire: Runner, library: Path) -> None:
    done = ceasefire("run", f"--shared-tables={size}", "--dry-run", "--", "true")
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1


def test_shared_tables_take_morsels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: Path
) -> None:
    how = shared.added(activation.Activation("no mapping is treated"), 1 << 23)
    assert how.text == "no mapping is treated, shared memory is morsels"
    monkeypatch.setattr(modes, "SYSFS", tmp_path)
    with pytest.raises(Unsupported, match="no morsels"):
        shared.require(how, "true")
    (tmp_path / "morsel").mkdir()
    (tmp_path / "morsel" / "enabled").write_text("[never] ask\n")
    with pytest.raises(Unsupported, match="echo ask > "):
        shared.require(how, "true")
    (tmp_path / "morsel" / "enabled").write_text("never [ask]\n")
    monkeypatch.setattr(preload, "filter_is_on", lambda: False)
    shared.require(how, "true")
    monkeypatch.setattr(preload, "filter_is_on", lambda: True)
    with pytest.raises(Unsupported, match="seccomp"):
        shared.require(how, "true")


def test_shared_tables_of_a_static_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "SYSFS", tmp_path)
    monkeypatch.setattr(preload, "filter_is_on", lambda: False)
    (tmp_path / "morsel").mkdir()
    (tmp_path / "morsel" / "enabled").write_text("never [ask]\n")
    program = build(tmp_path, "static", "-static")
    with pytest.raises(UsageError, match="leave --shared-tables out"):
        shared.require(activation.Activation(""), str(program))
