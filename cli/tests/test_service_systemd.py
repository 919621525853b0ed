# SPDX-License-Identifier: GPL-2.0-only
"""Services that systemd really starts, before and after `ceasefire enable`: do they run the same?

systemd is PID 1 of namespaces of its own. On a kernel without a mechanism the launcher says that
in the output of the service: so it has asked, and the program ran all the same. In a guest the
program says what it has got.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ceasefire.__main__ import main
from ceasefire.launch import prctl
from ceasefire.service import launcher
from ceasefire.vm import GuestSpec, run_guest

DATA = Path(__file__).with_name("data")
BOOT = DATA / "boot-systemd.sh"
SYSTEMD = Path("/lib/systemd/systemd")
LAUNCHER = "usr/local/libexec/ceasefire/ceasefire-exec"
# Says what a process has got, and is static.
WISHES = "/usr/local/bin/wishes"
SANDBOX = """
SystemCallFilter=@system-service
SystemCallArchitectures=native
NoNewPrivileges=yes
MemoryDenyWriteExecute=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
PrivateDevices=yes
User=nobody
CapabilityBoundingSet=
LockPersonality=yes
ProtectKernelModules=yes
"""
# No more than a static program of the C library takes.
TIGHT = (
    "prctl write exit_group brk arch_prctl set_tid_address set_robust_list rseq prlimit64 readlink "
    "readlinkat getrandom mprotect newfstatat fstat ioctl uname"
)
SERVICES = {
    "arguments": 'ExecStart=/bin/sh -c \'printf "%%s|" "$$0" "$$@"\' '
    "x $TWO ${TWO} $$TWO %n 'a;b' \\;",
    "name": 'ExecStart=@/bin/sh login -c \'tr "\\\\\\0" "|" </proc/$$$$/cmdline\'',
    "without-variables": "ExecStart=:/bin/echo $TWO ${TWO} %n",
    "by-name": "ExecStart=echo $TWO",
    "failing": "ExecStart=-/bin/false\nExecStart=/bin/echo after",
    "all-rights": "User=nobody\nExecStart=+/bin/sh -c 'id -u'",
    "some-rights": "User=nobody\nExecStart=!/bin/sh -c 'id -u; grep CapEff /proc/self/status'",
    "ambient": "User=nobody\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n"
    "ExecStart=/bin/sh -c 'grep CapEff /proc/self/status'",
    "static": f"ExecStart={WISHES}",
    "sandboxed": f"{SANDBOX}ExecStart={WISHES}",
    "tight": f"SystemCallFilter={TIGHT}\nExecStart={WISHES}",
    "denied": f"SystemCallFilter=~@mount ptrace\nExecStart={WISHES}",
    "hidden": f"TemporaryFileSystem=/usr/local/libexec:ro\nExecStart={WISHES}",
    "not-executable": f"NoExecPaths=/\nExecPaths=/usr/local/bin /usr/lib\nExecStart={WISHES}",
    "other-root": "RootDirectory=%t/root\nExecStart=/wishes",
}
SHARING = prctl.sharers_available()
# Two starts of systemd on an emulated CPU.
LIMIT = 1200.0
SAID = "ceasefire-exec: the program runs without {}: this kernel does not have it\n"


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a folder below /tmp: the only one that is seen in there and by services of others."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def tree(public: Path) -> Path:
    """Make the tree of a machine with all services, and programs that only have to be there."""
    root = public / "tree"
    programs = [LAUNCHER, WISHES[1:], "bin/sh", "bin/echo", "usr/bin/echo", "bin/false", "wishes"]
    for program in programs:
        path = root / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        path.chmod(0o755)
    units = root / "etc/systemd/system"
    units.mkdir(parents=True)
    (public / "out").mkdir()
    (public / "out").chmod(0o777)
    (public / "root").mkdir()
    for name, text in SERVICES.items():
        output = public / "out" / name
        (units / f"{name}.service").write_text(
            "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\n"
            'Environment="TWO=a b"\n'
            f"StandardOutput=append:{output}\nStandardError=append:{output}\n"
            + text.replace("%t/root", str(public / "root"))
            + "\n"
        )
    names = " ".join(f"{name}.service" for name in SERVICES)
    (units / "go.target").write_text(f"[Unit]\nDefaultDependencies=no\nWants={names} end.service\n")
    (units / "end.service").write_text(
        f"[Unit]\nDefaultDependencies=no\nAfter={names}\nSuccessAction=exit-force\n"
        "[Service]\nType=oneshot\nExecStart=/bin/true\n"
    )
    return root


@pytest.fixture
def programs(public: Path) -> list[Path]:
    """Build the launcher and the program of the services."""
    made = [public / "wishes", public / launcher.NAME]
    subprocess.run(["cc", "-static", DATA / "wishes.c", "-o", made[0]], check=True)
    source = DATA.parents[1] / "launcher" / "ceasefire-exec.c"
    flags = ["-O2", "-ffreestanding", "-fno-stack-protector", "-nostdlib", "-static"]
    subprocess.run(["cc", *flags, source, "-o", made[1]], check=True)
    shutil.copy(made[0], public / "root")
    return made


def started(public: Path) -> dict[str, str]:
    """Return what each service has written, and forget it."""
    found = {name: (public / "out" / name).read_text() for name in SERVICES}
    for name in SERVICES:
        (public / "out" / name).unlink()
    return found


def enable_all(tree: Path) -> None:
    for name in SERVICES:
        assert main(["enable", name, "--mode", "latr+sharers", "--root", str(tree)]) == 0


def boot(public: Path, tree: Path, programs: list[Path]) -> dict[str, str]:
    words: list[str | Path] = ["sh", BOOT, tree / "etc/systemd/system", *programs]
    subprocess.run(words, timeout=300, check=True)
    return started(public)


def test_services_run_as_before(public: Path, tree: Path, programs: list[Path]) -> None:
    namespaces = ["unshare", "-fpmC", "--mount-proc", "true"]
    if (
        os.geteuid() != 0
        or not SYSTEMD.exists()
        or subprocess.run(namespaces, capture_output=True, check=False).returncode != 0
    ):
        pytest.skip("systemd is not installed, or no rights for namespaces")
    before = boot(public, tree, programs)
    assert before["arguments"] == "x|a|b|a b|$TWO|arguments.service|a;b|;|"
    assert before["all-rights"] == "0\n"
    enable_all(tree)
    after = boot(public, tree, programs)
    for name, text in SERVICES.items():
        # Each ExecStart= has a launcher of its own.
        times = text.count("ExecStart=")
        for title, there in (("LATR", prctl.lazy_available()), ("Sharers", SHARING)):
            said = SAID.format(title)
            assert after[name].count(said) == (0 if there else times), name
            after[name] = after[name].replace(said, "")
        if WISHES not in text and "/wishes" not in text:
            assert after[name] == before[name], name


@pytest.mark.guest
def test_services_have_what_was_asked_for(public: Path, tree: Path, programs: list[Path]) -> None:
    units = tree / "etc/systemd/system"
    plain = public / "plain"
    shutil.copytree(units, plain)
    enable_all(tree)
    # What is written to /tmp in a guest is gone with it.
    each = f'for f in {public}/out/*; do echo "$(basename $f): $(tail -n 1 $f)"; rm $f; done'
    script = "; ".join(
        f"sh {BOOT} {folder} {programs[0]} {programs[1]} >/dev/null; {each}"
        for folder in (plain, units)
    )
    result = run_guest(GuestSpec(timeout=LIMIT), ["sh", "-c", script], name="pytest")
    assert result.check() == 0, result.stderr.decode()
    lines = result.stdout.decode().splitlines()
    asking = [name for name, text in sorted(SERVICES.items()) if "wishes" in text]
    assert len(asking) > 5
    for wishes in ("0 0", "1 1"):
        for name in asking:
            assert f"{name}: {wishes}" in lines, name
