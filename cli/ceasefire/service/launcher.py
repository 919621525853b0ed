# SPDX-License-Identifier: GPL-2.0-only
"""The launcher that drop-ins start, ceasefire-exec: where it is installed, what it is told.

A service asks for a mechanism before its program is executed, by prctl(), and systemd has no
setting for that. What ExecStartPre= does is gone with its process, and what PID 1 had, all services
would have. So a program of ours stands in front of that of the service and becomes it, with the
same PID, open files and limits. Only what is installed below /usr is used: what is built below a
home, ProtectHome= hides from the service, and its owner may change.
"""

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from ceasefire import modes, paths
from ceasefire.errors import Failure
from ceasefire.launch import prctl
from ceasefire.launch.activation import Activation
from ceasefire.paths import PRELOAD_NAME, SYSTEM_LIB_DIRS
from ceasefire.service.tree import Tree

NAME = "ceasefire-exec"
_FOLDERS = ("/usr/local/libexec/ceasefire", "/usr/libexec/ceasefire")
# Mechanism: the option for it, from how a program is started; "" if that does not ask for it.
_OPTIONS: dict[str, Callable[[Activation], str]] = {
    modes.FPR.name: lambda how: f"--fpr={how.limit:#x}" if how.limit else "",
    modes.LATR.name: lambda how: "--latr" if how.lazy else "",
    modes.SHARERS.name: lambda how: "--sharers" if how.sharers else "",
    modes.ABIS.name: lambda how: "--abis" if how.abis else "",
}


def knows(mechanism: modes.Mechanism) -> bool:
    """Say whether the launcher can ask for a mechanism."""
    return mechanism.name in _OPTIONS


def options(how: Activation, context: str | None) -> list[str]:
    """Return what the launcher is told; nothing if it is not needed."""
    found = [*filter(None, (option(how) for option in _OPTIONS.values()))]
    return [*found, *([f"--fpr-context={prctl.CONTEXTS[context]}"] if context else [])]


def launcher(tree: Tree) -> PurePosixPath:
    """Return the path of the launcher on that machine. Errors: Failure."""
    return _installed(tree, NAME, _FOLDERS)


def library(tree: Tree) -> PurePosixPath:
    """Return the path of the preload library on that machine. Errors: Failure."""
    return _installed(tree, PRELOAD_NAME, SYSTEM_LIB_DIRS)


def _installed(tree: Tree, name: str, folders: Sequence[str]) -> PurePosixPath:
    for folder in folders:
        if _is_file(tree, f"{folder}/{name}"):
            return PurePosixPath(folder) / name
    where = "" if tree.live else f" in {tree.root}"
    raise Failure(f"{name} is not installed{where}: {_how_to_install(tree, name)}")


def _how_to_install(tree: Tree, name: str) -> str:
    """Say how a file gets to where only root writes."""
    package = "ceasefire" if name == NAME else "libceasefire-preload"
    if paths.checkout() is None:
        return f"install the package {package} there"
    target = "" if tree.live else f"DESTDIR={tree.root} "
    return f"`make tools`, and then `{target}meson install -C $(scripts/paths tools)`"


def _is_file(tree: Tree, path: str) -> bool:
    place: Path = tree.place(path)
    try:
        return place.is_file()
    except OSError:
        return False
