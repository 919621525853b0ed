# SPDX-License-Identifier: GPL-2.0-only
"""The harness and the verbs with real guests. Needs the kernel `run`; a guest takes ten seconds."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ceasefire import paths
from ceasefire.errors import GuestError, GuestTimeout
from ceasefire.vm import GuestResult, GuestSpec, run_guest
from ceasefire.vm.spec import DiskSpec, parse_disk

pytestmark = pytest.mark.guest

Runner = Callable[..., "subprocess.CompletedProcess[str]"]
LIMIT = 1200.0


def shell(text: str, **values: object) -> str:
    """Run a shell command in a guest, which must succeed, and return what it prints."""
    # The home of root in the guest need not be ours.
    values.setdefault("environment", (("CEASEFIRE_BUILD", str(paths.build_dir())),))
    spec = GuestSpec(timeout=LIMIT, **values)  # type: ignore[arg-type]
    result = run_guest(spec, ["sh", "-c", text], name="pytest")
    assert result.check() == 0, result.stderr.decode()
    return result.stdout.decode()


def has_qemu(mark: str) -> bool:
    """Say whether a QEMU runs whose kernel arguments hold the mark."""
    pattern = f"^[^ ]*qemu-system.*{mark}"
    return (
        subprocess.run(["pgrep", "-f", pattern], capture_output=True, check=False).returncode == 0
    )


def test_status_and_both_outputs_come_through_complete(root: Path) -> None:
    count = 300_000
    script = f"echo \"$A\"; seq {count}; printf '\\0\\377\\n'; echo err >&2; exit 37"
    done = subprocess.run(
        [f"{root}/ceasefire", "vm", "--env", "A=b c", "--", "sh", "-c", script],
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    expected = b"b c\n" + b"".join(b"%d\n" % i for i in range(1, count + 1)) + b"\0\xff\n"
    assert (done.returncode, done.stderr) == (37, b"err\n")
    assert done.stdout == expected


def test_kernel_complaint_is_status_70_and_shown(ceasefire: Runner) -> None:
    done = ceasefire("vm", "--", "sh", "-c", "echo 'BUG: made up by a test' >/dev/kmsg; exit 0")
    assert done.returncode == 70
    assert "BUG: made up by a test" in done.stderr


def test_panic_is_status_70(ceasefire: Runner) -> None:
    done = ceasefire(
        "vm",
        "--",
        "sh",
        "-c",
        "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; sleep 60",
    )
    assert done.returncode == 70
    assert "Traceback" not in done.stderr


def test_time_limit_is_status_124_and_ends_qemu(ceasefire: Runner) -> None:
    mark = f"mark={os.getpid()}.limit"
    started = time.monotonic()
    done = ceasefire("vm", "--timeout", "8", "--append", mark, "--", "sleep", "600")
    assert done.returncode == 124
    assert time.monotonic() - started < 60
    # An emulator that lost a code patch is started again, and that is said.
    said = [line for line in done.stderr.splitlines() if "lost a code patch" not in line]
    assert len(said) == 1
    assert not has_qemu(mark)


def test_killed_outright_qemu_ends_too(root: Path) -> None:
    mark = f"mark={os.getpid()}.kill"
    command = ["vm", "--append", mark, "--", "sh", "-c", "echo up; sleep 600"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ceasefire", *command],
        env={**os.environ, "PYTHONPATH": str(root / "cli")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    assert has_qemu(mark)
    process.kill()
    process.wait(600)
    deadline = time.monotonic() + 600
    while has_qemu(mark):
        assert time.monotonic() < deadline, "QEMU outlived the command"
        time.sleep(0.1)


def from_memory(
    text: str, *, limit: float = LIMIT, mark: str = "mark=0", disk: str = ""
) -> GuestResult:
    """Run a shell command in a guest that boots from memory."""
    disks = (parse_disk(disk),) if disk else ()
    spec = GuestSpec(
        memory="256M", files=(Path("/bin/true"),), disks=disks, append=(mark,), timeout=limit
    )
    return run_guest(spec, ["sh", "-c", text], name="pytest", cwd=Path("/"))


def test_memory_as_root_has_status_and_both_outputs_complete() -> None:
    result = from_memory("seq 100000; printf '\\0\\377\\n'; echo err >&2; exit 37")
    assert result.check() == 37
    expected = b"".join(b"%d\n" % i for i in range(1, 100_001)) + b"\0\xff\n"
    assert (result.stdout, result.stderr) == (expected, b"err\n")


def test_memory_as_root_and_no_end() -> None:
    mark = f"mark={os.getpid()}.memory"
    with pytest.raises(GuestTimeout):
        from_memory("sleep 600", limit=10.0, mark=mark).check()
    assert not has_qemu(mark)


def test_memory_as_root_and_booted_twice() -> None:
    result = from_memory("echo x >/run/disk/0; reboot -f; sleep 600", disk="empty:8M")
    with pytest.raises(GuestError, match="booted twice"):
        result.check()


def test_disk_that_cannot_be_mounted_is_an_error() -> None:
    kernel = DiskSpec("image", str(paths.kernel_image("run")), mount="/mnt")
    with pytest.raises(GuestError, match="cannot mount disk 0"):
        run_guest(GuestSpec(timeout=LIMIT).with_disks(kernel), ["true"], name="pytest").check()


def test_emulator_that_does_not_start(tmp_path: Path) -> None:
    broken = tmp_path / "qemu"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "version 7.2" && exit\n'
        "echo no such machine >&2\nexit 3\n"
    )
    broken.chmod(0o755)
    with pytest.raises(GuestError, match=r"did not boot .*:\nno such machine"):
        run_guest(GuestSpec(emulator=str(broken), accel="tcg"), ["true"], name="pytest").check()


def test_cpus_memory_nodes_and_disks(tmp_path: Path) -> None:
    image = tmp_path / "disk.img"
    image.write_bytes(b"first sector" + bytes(1 << 20))
    disks = (parse_disk("null_blk:100"), parse_disk("brd-ext4:32M"), parse_disk(f"image:{image}"))
    out = shell(
        "nproc && ls -d /sys/devices/system/node/node[0-9]* | wc -l && "
        "free -m | awk '/Mem/ {print $2}' && "
        "blockdev --getsize64 /run/disk/0 && findmnt -n -o FSTYPE /run/disk/1 && "
        "echo x >/run/disk/1/file && head -c 12 /run/disk/2 && "
        "echo overwritten | dd of=/run/disk/2 conv=fsync 2>/dev/null && "
        f"touch {tmp_path}/witness /usr/witness /etc/witness && "
        # udev has greeted nobody, nothing of the host's is in the place of another program, and
        # services have their folders.
        "ls /run/udev/data 2>/dev/null; command -v udevadm && ls -d /run/user",
        cpus=3,
        memory="600M",
        numa=2,
        disks=disks,
    )
    cpus, nodes, memory, size, kind, start, *last = out.split("\n")
    assert (cpus, nodes) == ("3", "2")
    assert 450 < int(memory) <= 600
    assert int(size) > 1 << 30
    assert (kind, start[:12]) == ("ext4", "first sector")
    assert [start[12:], *last] == [str(shutil.which("udevadm")), "/run/user", ""]
    assert image.read_bytes().startswith(b"first sector")
    assert list(tmp_path.iterdir()) == [image]
    assert not Path("/usr/witness").exists()
    assert not Path("/etc/witness").exists()


def test_icount_and_a_working_directory_that_virtme_hides() -> None:
    folder = Path("/var/tmp") / f"ceasefire-test-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / "file").write_text("here\n")
        spec = GuestSpec(cpus=1, icount=True, accel="tcg", timeout=LIMIT)
        result = run_guest(spec, ["cat", "file"], name="pytest", cwd=folder)
        assert (result.check(), result.stdout) == (0, b"here\n")
    finally:
        (folder / "file").unlink()
        folder.rmdir()


def test_verbs_in_a_guest(root: Path, started: str) -> None:
    program = started
    out = shell(
        f"{root}/ceasefire run --path 'a*' -- printenv CEASEFIRE_PATHS && "
        f"{program} stat --json -- true 2>&1 && "
        f"{program} stat -p 1 && {program} stat -I 100 -n 2 --json && {program} doctor"
    )
    paths_value, counted, *rest = out.splitlines()
    assert paths_value == "a*"
    assert "nr_tlb_remote_flush_received" in json.loads(counted)["counters"]
    assert any("page tables" in line for line in rest)
    assert len([line for line in rest if line.startswith('{"schema"')]) == 2
    assert "has FPR" in out
    for name in ("LATR", "Sharers"):
        assert re.search(rf"^pass +{name} +on for programs that ask$", out, re.MULTILINE)
    assert "Ready: on this kernel" in out
