# SPDX-License-Identifier: GPL-2.0-only
"""Where the programs are that benchmarks run: built here, installed, or of this machine."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from ceasefire import paths, remedies
from ceasefire.errors import Failure

_INSTALLED = (Path("/usr/libexec/ceasefire"), Path("/usr/local/libexec/ceasefire"))


def find(name: str) -> Path:
    """Return a benchmark program: the one built here, else an installed one."""
    built = sorted(paths.built("tools/bench").glob(f"*/{name}"))
    for candidate in (*built, *(folder / name for folder in _INSTALLED)):
        if candidate.is_file():
            return candidate
    raise Failure(f"there is no {name}: {remedies.tools('ceasefire-bench')}")


def search_path() -> str:
    """Return PATH with the benchmark programs in front: built here, else installed."""
    built = paths.built("tools/bench")
    folders = [f for f in (*sorted(built.glob("*/")), *_INSTALLED) if f.is_dir()]
    if not folders:
        raise Failure(f"there are no benchmark programs: {remedies.tools('ceasefire-bench')}")
    return os.pathsep.join([*map(str, folders), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def missing(names: Iterable[str]) -> list[str]:
    """Return which of these programs this machine has not."""
    path = search_path()
    return [name for name in dict.fromkeys(names) if shutil.which(name, path=path) is None]


def python_words() -> str:
    """Return words that start this Python so that it finds this package."""
    words = ["env", f"PYTHONPATH={paths.package_root()}", "PYTHONDONTWRITEBYTECODE=1"]
    # Nothing from the current folder and none of the user's own packages.
    words += [sys.executable, "-P", "-s"]
    return shlex.join(words)
