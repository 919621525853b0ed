# SPDX-License-Identifier: GPL-2.0-only
"""The file of a drop-in: written and removed as a whole, and systemd told.

When systemd does not take it, what was there before is there again.
"""

import contextlib
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ceasefire.errors import Failure, UsageError
from ceasefire.files import write_whole
from ceasefire.service import plan
from ceasefire.service.tree import Tree
from ceasefire.service.units import ETC, SUFFIX
from ceasefire.text import lines_of

# A unit that is restarted may take as long as it likes to stop: systemd has its own limits.
_RELOAD_LIMIT = 120.0


def path_of(name: str) -> str:
    """Return the path of the drop-in of a service."""
    return f"{ETC}/{name}.d/{plan.DROPIN}"


def present(tree: Tree, name: str) -> str | None:
    """Return what the drop-in of a service says, None if there is none. Errors: Failure."""
    path = path_of(name)
    if not _there(tree.entry(path)):
        return None
    text = tree.read(path)
    if text is None or plan.words_in(text) is None:
        raise Failure(f"{path} was not written by `ceasefire enable`: give it another name")
    return text


def all_of(tree: Tree) -> Iterator[tuple[str, list[str], str]]:
    """Yield the services that have a drop-in of ours: name, options, what the file says."""
    with contextlib.suppress(OSError):
        for folder in sorted(tree.place(ETC).iterdir()):
            name = folder.name.removesuffix(".d")
            if name == folder.name or not name.endswith(SUFFIX):
                continue
            with contextlib.suppress(Failure, ValueError):
                text = present(tree, name)
                words = plan.words_in(text) if text is not None else None
                if text is not None and words is not None:
                    yield name, shlex.split(words), text


def write(tree: Tree, name: str, text: str) -> None:
    """Put a drop-in in its place, and have systemd read it. Errors: Failure."""
    before = present(tree, name)
    try:
        _put(tree, name, text)
        _reload(tree)
    except BaseException as error:
        with contextlib.suppress(OSError):
            _put_back(tree, name, before)
        if isinstance(error, OSError):
            raise Failure(f"cannot write {path_of(name)}: {error.strerror}") from None
        raise


def remove(tree: Tree, name: str) -> None:
    """Take a drop-in away, and its folder if nothing else is there. Errors: Failure."""
    before = present(tree, name)
    if before is None:
        where = "" if tree.live else f" in {tree.root}"
        raise UsageError(f"{name} is not enabled{where}: there is no {path_of(name)}")
    try:
        _put_back(tree, name, None)
    except OSError as error:
        raise Failure(f"cannot remove {path_of(name)}: {error.strerror}") from None
    try:
        _reload(tree)
    except BaseException:
        with contextlib.suppress(OSError):
            _put(tree, name, before)
        raise


def restart(name: str) -> None:
    """Restart a service of this machine if it runs. Errors: Failure."""
    problem = _systemctl("try-restart", name)
    if problem:
        raise Failure(
            f"{name} did not restart: {problem}; `ceasefire disable {name}` takes it back"
        )


def _put(tree: Tree, name: str, text: str) -> None:
    path = tree.entry(path_of(name))
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True)
        # Everybody may read what systemd reads, whatever the umask is.
        path.parent.chmod(0o755)
    write_whole(path, text, mode=0o644)


def _put_back(tree: Tree, name: str, before: str | None) -> None:
    if before is not None:
        _put(tree, name, before)
        return
    path = tree.entry(path_of(name))
    path.unlink(missing_ok=True)
    # Others may have drop-ins there.
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def _reload(tree: Tree) -> None:
    if tree.live and (problem := _systemctl("daemon-reload", limit=_RELOAD_LIMIT)):
        raise Failure(f"systemctl daemon-reload failed, so nothing was changed: {problem}")


def _systemctl(*words: str, limit: float | None = None) -> str:
    """Have systemd do something; return what is wrong, "" when it worked."""
    try:
        done = subprocess.run(
            ["systemctl", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {limit:.0f} s"
    except OSError as error:
        return f"systemctl: {error.strerror}"
    if done.returncode == 0:
        return ""
    return next(iter(lines_of(done.stderr)), f"exit status {done.returncode}")


def _there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
