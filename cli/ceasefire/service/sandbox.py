# SPDX-License-Identifier: GPL-2.0-only
"""What a unit forbids its programs, as far as it matters to the launcher and the preload library.

The launcher makes two system calls, prctl() and execve(). What is about privileges, the network,
memory that is writable and executable, or files that may be written (NoNewPrivileges=,
RestrictAddressFamilies=, MemoryDenyWriteExecute=, ProtectSystem=, User=, DynamicUser=, ...) is no
obstacle for it. These are:

SystemCallFilter= without prctl(): refused. Whoever has left it out decides whether it may come in.
NoExecPaths=, RootDirectory=, TemporaryFileSystem=: the drop-in lets our files in, read-only.
RootImage=, InaccessiblePaths= on our files: refused, as nothing can be let in there.
SELinux: refused, as the domain of a service comes from the file that systemd itself starts.

The preload library sleeps behind any system call filter, because a filter may kill a program for a
flag that it does not know; all settings that make one are obstacles for it.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ceasefire.errors import Failure, UsageError
from ceasefire.service.syntax import Service, settings_in
from ceasefire.service.tree import Tree
from ceasefire.service.units import Unit

# Sets of system calls that have prctl().
PRCTL_SETS = ("prctl", "@process", "@system-service", "@known")
# Switches and lists that make systemd set up a filter. A switch is on, a list is not empty.
_FILTER_SWITCHES = (
    *("MemoryDenyWriteExecute", "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality"),
    *("ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectClock"),
    *("ProtectHostname", "PrivateDevices", "DynamicUser"),
)
_FILTER_LISTS = (
    *("SystemCallFilter", "SystemCallLog", "SystemCallArchitectures"),
    "RestrictAddressFamilies",
)
_NAMESPACES = "RestrictNamespaces"
_NO = ("", "0", "no", "n", "false", "f", "off")
_SELINUX_LIVE = Path("/sys/fs/selinux/enforce")
_SELINUX_CONFIG = "/etc/selinux/config"


def check_launcher(tree: Tree, unit: Unit, launcher: PurePosixPath) -> None:
    """Raise when the launcher cannot start the programs of a unit."""
    _check_files(unit, [launcher])
    if not allows_prctl(unit.service):
        where = ", ".join(unit.service.files_with("SystemCallFilter"))
        raise Failure(
            f"SystemCallFilter= of {unit.name} ({where}) forbids prctl(): if it may use that, add "
            f"SystemCallFilter=prctl below [Service] with `systemctl edit {unit.name}`"
        )
    if _selinux(tree) and not unit.service.value("SELinuxContext"):
        raise Failure(
            f"SELinux is on{'' if tree.live else ' there'}: with a launcher {unit.name} would not "
            "get into its domain; set SELinuxContext= in the unit first"
        )


def check_library(unit: Unit, library: PurePosixPath) -> None:
    """Raise when the preload library does nothing in the programs of a unit."""
    _check_files(unit, [library])
    if setting := filter_of(unit.service):
        raise UsageError(
            f"{setting}= of {unit.name} makes a system call filter, behind which the preload "
            "library sleeps: leave --path and --exclude out"
        )


def additions(service: Service, files: Sequence[PurePosixPath]) -> list[str]:
    """Return lines that let the programs of a unit see and execute files of ours."""
    lines = []
    hidden = service.value("RootDirectory").strip("/") or any(
        _covers(word.partition(":")[0], file)
        for word in service.words("TemporaryFileSystem")
        for file in files
    )
    if hidden:
        lines += [f"BindReadOnlyPaths={file}" for file in files]
    if service.words("NoExecPaths"):
        lines += [f"ExecPaths={file}" for file in files]
    return lines


def allows_prctl(service: Service) -> bool:
    """Say whether the filter of a unit, if it has one, lets prctl() pass."""
    # The first assignment says whether the list is of what is allowed or of what is not.
    assigned = service.assigned("SystemCallFilter")
    if not assigned:
        return True
    allowing = not assigned[0].value.startswith("~")
    listed = False
    for setting in assigned:
        inverted = setting.value.startswith("~")
        for word in setting.value.removeprefix("~").split():
            name, _, errno = word.partition(":")
            if name in PRCTL_SETS:
                # An error in a list of what is allowed: the call fails with it.
                listed = inverted != allowing and not (allowing and errno)
    return listed == allowing


def filter_of(service: Service) -> str:
    """Return a setting that makes systemd set up a system call filter, "" if there is none."""
    for key in _FILTER_SWITCHES:
        if service.is_on(key):
            return key
    for key in _FILTER_LISTS:
        if service.assigned(key):
            return key
    return _NAMESPACES if service.value(_NAMESPACES).lower() not in _NO else ""


def _check_files(unit: Unit, files: Sequence[PurePosixPath]) -> None:
    if unit.service.value("RootImage"):
        raise Failure(
            f"{unit.name} runs in an image of its own (RootImage=), where nothing can be let in: "
            "run what is in it with `ceasefire run`, installed there"
        )
    for word in unit.service.words("InaccessiblePaths"):
        for file in files:
            if _covers(word, file):
                raise Failure(
                    f"InaccessiblePaths={word} of {unit.name} hides {file}: leave that folder out"
                )


def _covers(word: str, file: PurePosixPath) -> bool:
    return file.is_relative_to(PurePosixPath("/") / word.lstrip("-+"))


def _selinux(tree: Tree) -> bool:
    if tree.live:
        return _SELINUX_LIVE.exists()
    # As a unit file but without sections.
    text = tree.read(_SELINUX_CONFIG) or ""
    modes = [s.value for s in settings_in(text, _SELINUX_CONFIG) if s.key == "SELINUX"]
    return bool(modes) and modes[-1] in ("enforcing", "permissive")
