# SPDX-License-Identifier: GPL-2.0-only
"""Ending a guest: time limit, Ctrl-C, closed output, too much output, what a guest can do to this
machine. A shell script stands in for virtme-run and QEMU.

The stand-in starts a grandchild in the background as virtme-run starts QEMU, so that what is
checked is that the whole process group goes and nothing stays behind.
"""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ceasefire.errors import GuestError, GuestTimeout, Interrupted
from ceasefire.vm import GuestSpec, accel, command, klog, run_guest

FakeGuest = Callable[[str], None]
SLEEPER = "sleep 600 & echo $! >$PIDFILE; wait"
WAIT = 600.0
LIMIT = 1 << 20
# The stand-in prints megabytes each second; a run that is not ended takes this long.
PATIENCE = 600.0
MESSAGES = "messages=$(sed -n 's/.* 2>>\\(.*\\)/\\1/p' \"$2\")"


def marks(status: int) -> str:
    return (
        "echo '[    1.0] ceasefire-vm: ready' >>$log; "
        f"echo '[    2.0] ceasefire-vm: command returned {status}' >>$log"
    )


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")


def wait_for_pid(pidfile: Path) -> int:
    deadline = time.monotonic() + WAIT
    while not (pidfile.exists() and pidfile.read_text().strip()):
        assert time.monotonic() < deadline, "the stand-in did not start"
        time.sleep(0.05)
    return int(pidfile.read_text())


def no_leftovers(build: Path) -> bool:
    return not list((build / "runs").iterdir())


def test_status_and_output_come_through(fake_guest: FakeGuest, empty_build: Path) -> None:
    fake_guest(f"echo out; echo err >&2; {marks(3)}")
    result = run_guest(GuestSpec(accel="tcg"), ["x"])
    assert result.check() == 3
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert no_leftovers(empty_build)


def test_time_limit_kills_the_whole_group(fake_guest: FakeGuest, empty_build: Path) -> None:
    fake_guest(SLEEPER)
    result = run_guest(GuestSpec(accel="tcg", timeout=1.0), ["x"])
    assert result.timed_out
    with pytest.raises(GuestTimeout, match="no end after 1 s") as caught:
        result.check()
    assert caught.value.status == 124
    assert not is_alive(int((empty_build / "pid").read_text()))
    assert no_leftovers(empty_build)


def test_a_guest_of_another_thread_is_stopped(fake_guest: FakeGuest, empty_build: Path) -> None:
    fake_guest(SLEEPER)
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=1) as pool:
        run = pool.submit(run_guest, GuestSpec(accel="tcg"), ["x"], stop=stop)
        pid = wait_for_pid(empty_build / "pid")
        stop.set()
        with pytest.raises(Interrupted):
            run.result(WAIT)
    assert not is_alive(pid)
    assert no_leftovers(empty_build)


def test_a_deaf_guest_is_killed(
    fake_guest: FakeGuest, empty_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ceasefire.vm.guest._KILL_WAIT", 0.5)
    fake_guest("trap '' TERM; echo $$ >$PIDFILE; while :; do sleep 0.1; done")
    # On a busy machine it has not begun when its time is up.
    for limit in (1.0, 10.0, 100.0):
        assert run_guest(GuestSpec(accel="tcg", timeout=limit), ["x"]).timed_out
        if (empty_build / "pid").exists():
            break
    assert not is_alive(int((empty_build / "pid").read_text()))


def test_qemu_that_outlives_its_parent_is_killed(fake_guest: FakeGuest, empty_build: Path) -> None:
    fake_guest(f"sleep 600 >/dev/null 2>&1 & echo $! >$PIDFILE; {marks(0)}")
    assert run_guest(GuestSpec(accel="tcg"), ["x"]).check() == 0
    assert not is_alive(int((empty_build / "pid").read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interruption_leaves_nothing(
    number: signal.Signals, fake_guest: FakeGuest, empty_build: Path, root: Path
) -> None:
    fake_guest(SLEEPER)
    process = subprocess.Popen(
        [sys.executable, "-m", "ceasefire", "vm", "--accel", "tcg", "--", "true"],
        env={**os.environ, "PYTHONPATH": str(root / "cli")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pid = wait_for_pid(empty_build / "pid")
    process.send_signal(number)
    _, errors = process.communicate(timeout=WAIT)
    assert process.returncode == 130
    assert errors == b""
    assert not is_alive(pid)
    assert no_leftovers(empty_build)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interruption_while_it_is_started_leaves_nothing(
    number: signal.Signals,
    fake_guest: FakeGuest,
    empty_build: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_guest(SLEEPER)
    start = subprocess.Popen
    started = []

    def interrupted(*words: Any, **options: Any) -> Any:
        process = start(*words, **options)
        started.append(wait_for_pid(empty_build / "pid"))
        # It is there, and nobody else knows of it yet.
        os.kill(os.getpid(), number)
        return process

    monkeypatch.setattr("ceasefire.vm.guest.subprocess.Popen", interrupted)
    # Where the tests run in the background of a shell SIGINT is ignored.
    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_guest(GuestSpec(accel="tcg", timeout=WAIT), ["x"])
        assert signal.getsignal(number) == signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert not is_alive(started[0])
    assert no_leftovers(empty_build)


def test_killed_outright_leaves_no_process_and_the_next_run_sweeps(
    fake_guest: FakeGuest, empty_build: Path, root: Path
) -> None:
    # It is known only when it would end with its parent.
    fake_guest("setpriv --pdeathsig KILL -- sh -c 'echo $$ >$PIDFILE; exec sleep 600' & wait")
    process = subprocess.Popen(
        [sys.executable, "-m", "ceasefire", "vm", "--accel", "tcg", "--", "true"],
        env={**os.environ, "PYTHONPATH": str(root / "cli")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pid = wait_for_pid(empty_build / "pid")
    process.kill()
    process.wait(WAIT)
    deadline = time.monotonic() + WAIT
    while is_alive(pid):
        assert time.monotonic() < deadline, "QEMU outlived the command"
        time.sleep(0.05)
    fake_guest(marks(0))
    assert run_guest(GuestSpec(accel="tcg"), ["x"]).check() == 0
    assert no_leftovers(empty_build)


def test_complaint_of_the_kernel_wins_over_the_status(fake_guest: FakeGuest) -> None:
    fake_guest(f"{marks(0)}; echo '[    1.5] BUG: Bad page state in process a' >>$log")
    with pytest.raises(GuestError, match="Bad page state") as caught:
        run_guest(GuestSpec(accel="tcg"), ["x"]).check()
    assert caught.value.status == 70


LOST = "echo '[    0.1] Oops: int3: 0000 [#1] SMP NOPTI' >>$log; exit 255"
TIMER = (
    'echo "[    0.1] Kernel panic - not syncing: IO-APIC + timer doesn\'t work!" >>$log; exit 255'
)


@pytest.mark.parametrize(
    ("flaw", "said"), [(LOST, "lost a code patch"), (TIMER, "was too slow with a timer")]
)
def test_flaw_of_the_emulator_is_booted_again(
    flaw: str,
    said: str,
    fake_guest: FakeGuest,
    empty_build: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    once = empty_build / "once"
    fake_guest(f"if [ ! -e {once} ]; then touch {once}; {flaw}; fi; {marks(0)}")
    assert run_guest(GuestSpec(accel="tcg"), ["x"]).check() == 0
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0] and "once more" in lines[0]
    assert len(list((empty_build / "logs").iterdir())) == 2


def test_patch_lost_every_time_is_a_failure(fake_guest: FakeGuest, empty_build: Path) -> None:
    fake_guest(LOST)
    with pytest.raises(GuestError, match="Oops: int3"):
        run_guest(GuestSpec(accel="tcg"), ["x"]).check()
    assert len(list((empty_build / "logs").iterdir())) == 3


def test_guest_that_does_not_boot_shows_why(fake_guest: FakeGuest) -> None:
    fake_guest("echo '[    0.1] no root file system' >>$log; exit 255")
    with pytest.raises(GuestError, match=r"did not boot .*:\n.*no root file system"):
        run_guest(GuestSpec(accel="tcg"), ["x"]).check()


def test_guest_that_ends_early_is_not_a_success(fake_guest: FakeGuest) -> None:
    fake_guest("echo '[    1.0] ceasefire-vm: ready' >>$log; exit 0")
    with pytest.raises(GuestError, match="ended before its command did"):
        run_guest(GuestSpec(accel="tcg"), ["x"]).check()


def test_failing_sink_does_not_block_the_guest(fake_guest: FakeGuest, empty_build: Path) -> None:
    fake_guest(f"head -c 1000000 /dev/zero; {marks(0)}")

    def broken(_chunk: bytes) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_guest(GuestSpec(accel="tcg", timeout=WAIT), ["x"], stdout=broken)
    assert no_leftovers(empty_build)


def test_old_logs_are_dropped(
    fake_guest: FakeGuest, empty_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ceasefire.vm.files._KEPT_LOGS", 3)
    fake_guest(marks(0))
    logs = empty_build / "logs"
    logs.mkdir()
    for number in range(9):
        (logs / f"vm-2000010{number}-000000-1.klog").touch()
    run_guest(GuestSpec(accel="tcg"), ["x"])
    assert len(list(logs.iterdir())) == 4


def test_kvm_verdict_is_kept_for_this_boot_only(
    empty_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "kvm"
    device.touch()
    monkeypatch.setattr(accel, "DEVICE", device)
    asked: list[int] = []

    def boots() -> bool:
        asked.append(1)
        return False

    assert accel.remembered() is None
    assert not accel.kvm_works(boots)
    assert not accel.kvm_works(boots)
    assert len(asked) == 1
    assert accel.remembered() is False
    monkeypatch.setattr(accel, "_boot_id", lambda: "another boot")
    assert accel.remembered() is None
    assert not accel.kvm_works(boots)
    assert len(asked) == 2


def test_without_the_device_nothing_is_booted(
    empty_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accel, "DEVICE", tmp_path / "none")
    assert not accel.kvm_works(lambda: pytest.fail("booted"))


# What a guest can do to this machine


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the limits small."""
    monkeypatch.setattr("ceasefire.vm.guest.LOG_LIMIT", LIMIT)


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("yes >>$log", "on its console"),
        (f"{MESSAGES}; yes >>$messages", "of messages of QEMU"),
        ("yes", "on standard output"),
        ("yes >&2", "on standard error"),
    ],
)
def test_guest_that_prints_for_ever_is_ended(
    where: str, what: str, fake_guest: FakeGuest, empty_build: Path
) -> None:
    fake_guest(f"{marks(0)}; {where}")
    result = run_guest(GuestSpec(accel="tcg", timeout=PATIENCE), ["x"], limit=LIMIT)
    assert not result.timed_out
    with pytest.raises(GuestError, match=f"printed more than 1 MiB {what}, guest killed"):
        result.check()
    assert max(result.log.stat().st_size, len(result.stdout), len(result.stderr)) <= LIMIT + 1000
    last = result.log.read_bytes().splitlines()[-1].decode()
    assert last == f"ceasefire vm: cut here: the guest printed more than 1 MiB {what} and was ended"
    assert no_leftovers(empty_build)


def test_guest_that_ends_after_too_much_fails_too(fake_guest: FakeGuest) -> None:
    fake_guest(f"{marks(0)}; head -c {LIMIT + 1} /dev/zero >>$log")
    with pytest.raises(GuestError, match="more than 1 MiB on its console"):
        run_guest(GuestSpec(accel="tcg", timeout=PATIENCE), ["x"]).check()


def test_as_much_as_the_limit_is_kept_whole(fake_guest: FakeGuest) -> None:
    text = "head -c 1048000 /dev/zero"
    fake_guest(f"{text} >>$log; {text}; {text} >&2; {marks(4)}")
    result = run_guest(GuestSpec(accel="tcg", timeout=PATIENCE), ["x"], limit=LIMIT)
    assert result.check() == 4
    assert (len(result.stdout), len(result.stderr)) == (1048000, 1048000)
    assert result.log.read_bytes().startswith(bytes(1048000))


def test_complaint_before_the_cut_is_still_told(fake_guest: FakeGuest) -> None:
    fake_guest("echo '[    1.5] BUG: Bad page state in process a' >>$log; yes >>$log")
    with pytest.raises(GuestError, match="Bad page state"):
        run_guest(GuestSpec(accel="tcg", timeout=PATIENCE), ["x"]).check()


def test_output_that_is_not_kept_has_no_limit(fake_guest: FakeGuest) -> None:
    fake_guest(f"head -c {3 * LIMIT} /dev/zero; {marks(0)}")
    size = 0

    def count(chunk: bytes) -> None:
        nonlocal size
        size += len(chunk)

    run_guest(GuestSpec(accel="tcg"), ["x"], stdout=count, limit=None).check()
    assert size == 3 * LIMIT


def test_reader_that_fails_in_any_way_does_not_block_the_guest(
    fake_guest: FakeGuest, empty_build: Path
) -> None:
    fake_guest(f"head -c 1000000 /dev/zero; {marks(0)}")

    def broken(_chunk: bytes) -> None:
        raise KeyError("what the guest did not say")

    with pytest.raises(KeyError):
        run_guest(GuestSpec(accel="tcg", timeout=PATIENCE), ["x"], stdout=broken)
    assert no_leftovers(empty_build)


def test_files_of_a_guest_are_private(fake_guest: FakeGuest, empty_build: Path) -> None:
    seen = empty_build / "seen"
    fake_guest(f'stat -c %a "${{2%/*}}" "${{2%/*}}/.." "$log" >{seen}; {marks(0)}')
    result = run_guest(GuestSpec(accel="tcg"), ["x"])
    assert seen.read_text().split() == ["700", "700", "600"]
    assert stat.S_IMODE(result.log.stat().st_mode) == 0o600


def test_no_core_and_no_file_for_a_status(tmp_path: Path) -> None:
    text = command.emulator_script("qemu", tmp_path / "console", tmp_path / "messages")
    assert "ulimit -c 0\n" in text
    assert "file,id=ret,path=*) word=file,id=ret,path=/dev/null" in text


def test_name_that_is_not_utf8(fake_guest: FakeGuest) -> None:
    fake_guest(f"{marks(0)}")
    run_guest(GuestSpec(accel="tcg"), ["cat", "\udcff"]).check()


@pytest.mark.parametrize("status", ["9" * 5000, "1234", "99999999999999999999"])
def test_forged_status_is_none(status: str) -> None:
    assert klog.scan([f"[    1.0] ceasefire-vm: command returned {status}"]).status is None
