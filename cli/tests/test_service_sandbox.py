# SPDX-License-Identifier: GPL-2.0-only
"""What a unit forbids its programs: what is refused, what is let in, what does not matter."""

import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from ceasefire.errors import Failure, UsageError
from ceasefire.service import sandbox
from ceasefire.service.syntax import Service, settings_in
from ceasefire.service.tree import Tree
from ceasefire.service.units import Unit

LAUNCHER = PurePosixPath("/usr/libexec/ceasefire/ceasefire-exec")
LIBRARY = PurePosixPath("/usr/lib/libceasefire-preload.so")


def service(*lines: str) -> Service:
    return Service(settings_in("[Service]\n" + "\n".join(lines), "/x/web.service"))


def unit(*lines: str) -> Unit:
    return Unit("web.service", PurePosixPath("/x/web.service"), (), service(*lines))


@pytest.fixture
def there(tmp_path: Path) -> Tree:
    return Tree(tmp_path, live=False)


@pytest.mark.parametrize(
    ("values", "allowed"),
    [
        ([], True),
        (["@system-service"], True),
        (["@process"], True),
        (["@known"], True),
        (["read write prctl"], True),
        (["read write"], False),
        (["@basic-io @file-system"], False),
        (["read", "prctl"], True),
        (["@system-service", "~@process"], False),
        (["@system-service", "~@privileged @resources"], True),
        (["@system-service", "~prctl", "prctl"], True),
        (["prctl:EPERM @basic-io"], False),
        (["~@privileged"], True),
        (["~prctl"], False),
        (["~@process:EPERM"], False),
        (["~@process", "prctl"], True),
        (["~@mount", "prctl"], True),
        (["~@mount", "~prctl"], False),
        (["read", ""], True),
        (["read", "", "~@mount"], True),
        (["@system-service", "", "read"], False),
    ],
)
def test_filters_with_and_without_prctl(values: list[str], allowed: bool) -> None:
    assert sandbox.allows_prctl(service(*(f"SystemCallFilter={v}" for v in values))) == allowed


def test_sets_with_prctl_are_those_of_systemd() -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")

    def members(name: str) -> list[str]:
        words = [analyze, "syscall-filter", name]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=True)
        return re.findall(r"^ +(\S+)$", done.stdout, re.MULTILINE)

    listed = subprocess.run(
        [analyze, "syscall-filter"], capture_output=True, text=True, timeout=600, check=True
    )
    sets = {name: members(name) for name in re.findall(r"^(@\S+)$", listed.stdout, re.MULTILINE)}
    found = {"prctl"}
    while more := {name for name, has in sets.items() if found & set(has)} - found:
        found |= more
    assert found == set(sandbox.PRCTL_SETS)


def test_filter_without_prctl_is_refused_and_says_what_to_do(there: Tree) -> None:
    with pytest.raises(Failure) as caught:
        sandbox.check_launcher(there, unit("SystemCallFilter=read"), LAUNCHER)
    says = str(caught.value)
    assert "SystemCallFilter= of web.service (/x/web.service) forbids prctl()" in says
    assert "`systemctl edit web.service`" in says


@pytest.mark.parametrize(
    "line",
    [
        "SystemCallFilter=@system-service",
        "SystemCallArchitectures=native",
        "NoNewPrivileges=yes",
        "MemoryDenyWriteExecute=yes",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "RestrictAddressFamilies=AF_UNIX",
        "RestrictNamespaces=yes",
        "PrivateDevices=yes",
        "DynamicUser=yes",
        "User=www",
        "CapabilityBoundingSet=",
        "ProtectKernelTunables=yes",
        "PrivateUsers=yes",
        "InaccessiblePaths=/srv -/usr/libexec/other",
    ],
)
def test_launcher_works_in_most_sandboxes(line: str, there: Tree) -> None:
    sandbox.check_launcher(there, unit(line), LAUNCHER)
    assert sandbox.additions(service(line), [LAUNCHER]) == []


@pytest.mark.parametrize(
    ("line", "by"),
    [
        ("SystemCallFilter=@system-service", "SystemCallFilter"),
        ("SystemCallFilter=~@mount", "SystemCallFilter"),
        ("SystemCallLog=read", "SystemCallLog"),
        ("SystemCallArchitectures=native", "SystemCallArchitectures"),
        ("RestrictAddressFamilies=none", "RestrictAddressFamilies"),
        ("RestrictNamespaces=yes", "RestrictNamespaces"),
        ("RestrictNamespaces=user net", "RestrictNamespaces"),
        ("RestrictNamespaces=no", ""),
        ("MemoryDenyWriteExecute=true", "MemoryDenyWriteExecute"),
        ("MemoryDenyWriteExecute=off", ""),
        ("PrivateDevices=1", "PrivateDevices"),
        ("ProtectClock=on", "ProtectClock"),
        ("DynamicUser=yes", "DynamicUser"),
        ("NoNewPrivileges=yes", ""),
        ("ProtectSystem=strict", ""),
        ("PrivateTmp=yes", ""),
    ],
)
def test_library_sleeps_behind_any_filter(line: str, by: str) -> None:
    assert sandbox.filter_of(service(line)) == by
    if by:
        with pytest.raises(UsageError, match=f"{by}= of web.service makes a system call filter"):
            sandbox.check_library(unit(line), LIBRARY)
    else:
        sandbox.check_library(unit(line), LIBRARY)


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (["RootDirectory=/srv/root"], ["BindReadOnlyPaths"]),
        (["RootDirectory=/"], []),
        (["TemporaryFileSystem=/usr:ro"], ["BindReadOnlyPaths"]),
        (["TemporaryFileSystem=/var /usr/libexec"], ["BindReadOnlyPaths"]),
        (["TemporaryFileSystem=/var"], []),
        (["NoExecPaths=/", "ExecPaths=/usr/sbin"], ["ExecPaths"]),
        (["NoExecPaths=/", "NoExecPaths="], []),
        (["RootDirectory=/srv", "NoExecPaths=/"], ["BindReadOnlyPaths", "ExecPaths"]),
    ],
)
def test_our_files_are_let_in(lines: list[str], keys: list[str]) -> None:
    files = [LIBRARY, LAUNCHER]
    expected = [f"{key}={file}" for key in keys for file in files]
    assert sandbox.additions(service(*lines), files) == expected


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("RootImage=/srv/web.raw", "runs in an image of its own"),
        ("InaccessiblePaths=/usr/libexec", "hides /usr/libexec/ceasefire/ceasefire-exec"),
        ("InaccessiblePaths=/srv -/usr", "hides /usr/libexec/ceasefire/ceasefire-exec"),
    ],
)
def test_where_nothing_can_be_let_in(line: str, says: str, there: Tree) -> None:
    with pytest.raises(Failure, match=says):
        sandbox.check_launcher(there, unit(line), LAUNCHER)


def test_selinux(there: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = there.root / "etc/selinux/config"
    config.parent.mkdir(parents=True)
    for mode, refused in (("enforcing", True), ("permissive", True), ("disabled", False)):
        config.write_text(f"# SELINUX=enforcing\nSELINUX={mode}\nSELINUXTYPE=targeted\n")
        if not refused:
            sandbox.check_launcher(there, unit(), LAUNCHER)
            continue
        with pytest.raises(Failure, match="set SELinuxContext="):
            sandbox.check_launcher(there, unit(), LAUNCHER)
        sandbox.check_launcher(there, unit("SELinuxContext=a:b:c:s0"), LAUNCHER)
    live = Tree(there.root, live=True)
    monkeypatch.setattr(sandbox, "_SELINUX_LIVE", tmp_path / "enforce")
    sandbox.check_launcher(live, unit(), LAUNCHER)
    (tmp_path / "enforce").touch()
    with pytest.raises(Failure, match="SELinux is on:"):
        sandbox.check_launcher(live, unit(), LAUNCHER)
