# SPDX-License-Identifier: GPL-2.0-only
"""Where things are: the checkout, the build directory outside it, kernels, libraries.

The build directory must be the one that `scripts/paths` prints; a unit test compares the two.
"""

import hashlib
import os
import shutil
from pathlib import Path

from ceasefire.errors import Failure

KERNEL_KINDS = ("run", "debug", "stock", "plain")
PRELOAD_NAME = "libceasefire-preload.so"
_SYSTEM_LIB_DIRS = ("/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
_ADMIN_DIRS = ("/usr/sbin", "/sbin", "/usr/local/sbin")


def checkout() -> Path | None:
    """Return the root of the repository this package runs from, None when it is installed."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "kernel").is_dir() and (root / "cli").is_dir() else None


def build_dir() -> Path:
    """Return the directory that holds everything which is built, fetched or logged."""
    chosen = os.environ.get("CEASEFIRE_BUILD")
    if chosen:
        return Path(chosen).absolute()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = checkout()
    if root is None:
        return cache / "ceasefire" / "installed"
    digest = hashlib.sha256(str(root).encode()).hexdigest()[:8]
    return cache / "ceasefire" / f"{root.name}-{digest}"


def linux_dir() -> Path:
    """Return the generated kernel tree."""
    return build_dir() / "linux"


def kernel_image(kernel: str) -> Path:
    """Return the bzImage of a kernel kind, or of a path given by the user."""
    if kernel in KERNEL_KINDS:
        return linux_dir() / f"build-{kernel}" / "arch" / "x86" / "boot" / "bzImage"
    return Path(kernel).absolute()


def kernel_release(kernel: str) -> str:
    """Return the release string of a built kernel kind, empty when it is not known."""
    try:
        release = linux_dir() / f"build-{kernel}" / "include" / "config" / "kernel.release"
        return release.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def logs_dir() -> Path:
    """Return the directory of guest logs, made if needed."""
    return _made(build_dir() / "logs")


def disks_dir() -> Path:
    """Return the directory of cached disk images, made if needed."""
    return _made(build_dir() / "disks")


def runs_dir() -> Path:
    """Return the directory of short-lived files of running guests, made if needed."""
    return _made(build_dir() / "runs")


def state_dir() -> Path:
    """Return the directory of remembered facts about this machine, made if needed."""
    return _made(build_dir() / "state")


def preload_library() -> Path | None:
    """Return the preload library: the one built here, else an installed one, else None."""
    candidates = [build_dir() / "tools" / "lib" / "preload" / PRELOAD_NAME]
    candidates += [Path(d) / PRELOAD_NAME for d in _SYSTEM_LIB_DIRS]
    return next((c for c in candidates if c.is_file()), None)


def require_preload_library() -> Path:
    """Return the preload library or say how to get it."""
    library = preload_library()
    if library is None:
        raise Failure(f"{PRELOAD_NAME} is not built: run `make tools` first")
    return library


def find_program(name: str) -> str | None:
    """Find a program on PATH, beside the interpreter of this package, or among admin tools."""
    return (
        shutil.which(name, path=str(build_dir() / "venv" / "bin"))
        or shutil.which(name)
        or shutil.which(name, path=os.pathsep.join(_ADMIN_DIRS))
    )


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
