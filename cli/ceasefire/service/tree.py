# SPDX-License-Identifier: GPL-2.0-only
"""The files of a machine: of this one, or of a tree that is to become another one (`--root DIR`).

Links in such a tree are those of the other machine. An absolute one leads to a place in the tree,
and one with too many `..` stays in it, as after chroot(): nothing outside is read or written.
"""

import errno
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ceasefire.errors import Failure, UsageError
from ceasefire.files import open_regular
from ceasefire.text import decoded

_LINKS = 40
# Of a file with settings; a unit has a few KiB.
_MOST = 1 << 20
_BOOTED = Path("/run/systemd/system")


@dataclass(frozen=True)
class Tree:
    """A root directory. live: it is that of the running machine, with its systemd."""

    root: Path
    live: bool

    def place(self, path: PurePosixPath | str) -> Path:
        """Return where an absolute path of the machine is here; links are followed.

        What does not exist is where it would be. Errors: OSError for links without end.
        """
        done: list[str] = []
        todo = [part for part in str(path).split("/") if part not in ("", ".")][::-1]
        links = 0
        while todo:
            part = todo.pop()
            if part == "..":
                del done[-1:]
                continue
            try:
                target = (self.root.joinpath(*done) / part).readlink()
            except OSError:  # no link, or nothing there
                done.append(part)
                continue
            links += 1
            if links > _LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            if target.is_absolute():
                done.clear()
            todo += [p for p in str(target).split("/") if p not in ("", ".")][::-1]
        return self.root.joinpath(*done)

    def entry(self, path: PurePosixPath | str) -> Path:
        """Return the same, but where the last part is a link, the link itself."""
        pure = PurePosixPath(path)
        return self.place(pure.parent) / pure.name

    def shown(self, place: Path) -> PurePosixPath:
        """Return the path that a place has on the machine."""
        return PurePosixPath("/") / place.relative_to(self.root)

    def read(self, path: PurePosixPath | str) -> str | None:
        """Return what a file holds, None if there is none. Errors: Failure."""
        try:
            with open_regular(self.place(path), follow=False) as file:
                data = file.read(_MOST + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise Failure(f"cannot read {path}: {error.strerror or error}") from None
        if len(data) > _MOST:
            raise Failure(f"{path} is larger than {_MOST >> 20} MiB: this is no file with settings")
        return decoded(data)


def choose(root: str | None) -> Tree:
    """Return this machine, or the tree that the user has named; one that we may change."""
    if root is None:
        if not _BOOTED.is_dir():
            raise Failure("systemd does not run here: give --root DIR for the tree of a machine")
        if os.geteuid() != 0:
            raise Failure("changing services takes the rights of root: use sudo")
        return Tree(Path("/"), live=True)
    path = Path(root).absolute()
    if not path.is_dir():
        raise UsageError(f"--root {root}: there is no such folder")
    if path.resolve() == Path("/"):
        raise UsageError("--root / is this machine: leave --root out")
    return Tree(path.resolve(), live=False)
