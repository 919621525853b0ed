# SPDX-License-Identifier: GPL-2.0-only
"""Where things are: the checkout, the build directory outside it, kernels, libraries.

The build directory must be the one that `scripts/paths` prints; a unit test compares the two.
"""

import contextlib
import hashlib
import os
import pwd
import re
import shutil
import sys
from pathlib import Path

from ceasefire import build_folder
from ceasefire.errors import Failure

KERNEL_KINDS = ("run", "debug", "stock", "plain")
PRELOAD_NAME = "libceasefire-preload.so"
# Debian has a folder for each architecture, below /usr/local, too.
SYSTEM_LIB_DIRS = (
    *("/usr/local/lib/x86_64-linux-gnu", "/usr/local/lib64", "/usr/local/lib"),
    *("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"),
)
_ADMIN_DIRS = ("/usr/sbin", "/sbin", "/usr/local/sbin")


def checkout() -> Path | None:
    """Return the root of the repository this package runs from, None when it is installed."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "kernel").is_dir() and (root / "cli").is_dir() else None


def package_root() -> Path:
    """Return the folder from which Python imports this package."""
    return Path(__file__).resolve().parents[1]


def build_dir() -> Path:
    """Return the directory that holds everything which is built, fetched or logged."""
    root = checkout()
    if root is not None and re.search(r"[\s:]", str(root)):
        raise Failure(
            f"this clone is at '{root}': the kernel's build takes no path with a space or a colon, "
            "move the clone to another one"
        )
    chosen = os.environ.get("CEASEFIRE_BUILD")
    if chosen:
        # A relative path would be another place in each folder, and what is in it is run.
        if not chosen.startswith("/"):
            raise Failure(f"CEASEFIRE_BUILD is '{chosen}': give an absolute path")
        return Path(chosen)
    # The XDG rules say to ignore a relative path there.
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if cache.startswith("/"):
        return _below(Path(cache))
    home = os.environ.get("HOME", "")
    if not home.startswith("/"):
        raise Failure(f"HOME is '{home}', no absolute path: set it or CEASEFIRE_BUILD")
    return _below(Path(home) / ".cache")


def _below(cache: Path) -> Path:
    root = checkout()
    if root is None:
        return cache / "ceasefire" / "installed"
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    return cache / "ceasefire" / f"{root.name}-{digest}"


def build_dirs() -> list[Path]:
    """Return the build directories in which something may be built already, our own first.

    For root also those of the user who called sudo and of the owner of the checkout.
    """
    folders = [build_dir()]
    if os.geteuid() == 0 and not os.environ.get("CEASEFIRE_BUILD"):
        for user in filter(None, _users()):
            # No such user; a home that not even root may enter.
            with contextlib.suppress(KeyError, PermissionError):
                folder = _below(Path(pwd.getpwuid(user).pw_dir) / ".cache")
                folders += [folder] if folder.is_dir() else []
    return folders


def needed_dirs() -> list[Path]:
    """Return the directories that our own processes read in a guest, wherever they are."""
    # An installed command has its package, and the environment of its interpreter.
    own = checkout() or package_root()
    return [own, Path(sys.prefix), *build_dirs()]


def built(part: str) -> Path:
    """Return where a part of the build directory is built; `scripts/paths --built` is the same.

    Errors: Failure when strangers can change what is there.
    """
    folder = next((folder for folder in build_dirs() if (folder / part).exists()), None)
    if folder is None:
        return build_dir() / part
    if not build_folder.trusted(folder, _users()):
        raise Failure(
            f"{folder} belongs to a stranger, or strangers can write to it: what is built there "
            "is not run (chown and chmod it, or set CEASEFIRE_BUILD)"
        )
    return folder / part


def _users() -> list[int]:
    """Return the users whose code is run here anyway: who called sudo, who owns the checkout."""
    called = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    users = [int(called)] if called.isdecimal() else []
    root = checkout()
    return users if root is None else [*users, root.stat().st_uid]


def linux_dir() -> Path:
    """Return the generated kernel tree."""
    return built("linux")


def kernel_image(kernel: str) -> Path:
    """Return the bzImage of a kernel kind, or of a path given by the user."""
    if kernel in KERNEL_KINDS:
        return built(f"linux/build-{kernel}/arch/x86/boot/bzImage")
    return Path(kernel).absolute()


def kernel_release(kernel: str) -> str:
    """Return the release string of a built kernel kind, empty when it is not known."""
    try:
        release = built(f"linux/build-{kernel}/include/config/kernel.release")
        return release.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def logs_dir() -> Path:
    """Return the directory of guest logs, made if needed."""
    return _made("logs")


def disks_dir() -> Path:
    """Return the directory of cached disk images, made if needed."""
    return _made("disks")


def runs_dir() -> Path:
    """Return the directory of short-lived files of running guests, made if needed."""
    return _made("runs")


def state_dir() -> Path:
    """Return the directory of remembered facts about this machine, made if needed."""
    return _made("state")


def preload_library() -> Path | None:
    """Return the preload library: the one built here, else an installed one, else None."""
    candidates = [built(f"tools/lib/preload/{PRELOAD_NAME}")]
    candidates += [Path(d) / PRELOAD_NAME for d in SYSTEM_LIB_DIRS]
    return next((c for c in candidates if c.is_file()), None)


def find_program(name: str) -> str | None:
    """Find a program on PATH, beside the interpreter of this package, or among admin tools."""
    return (
        shutil.which(name, path=str(built("venv/bin")))
        or shutil.which(name)
        or shutil.which(name, path=str(Path(sys.executable).parent))
        or shutil.which(name, path=os.pathsep.join(_ADMIN_DIRS))
    )


def _made(name: str) -> Path:
    """Make a part of the build directory; nothing cleans it up under us from now on."""
    folder = build_dir()
    chosen = bool(os.environ.get("CEASEFIRE_BUILD"))
    build_folder.use(folder, owner=checkout(), chosen=chosen, users=_users())
    path = folder / name
    path.mkdir(exist_ok=True)
    return path
