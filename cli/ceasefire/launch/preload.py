# SPDX-License-Identifier: GPL-2.0-only
"""The environment in which the preload library lets file mappings of a program use FPR, and makes
its shared memory morsels.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from ceasefire import paths, remedies
from ceasefire.errors import Failure, UsageError
from ceasefire.launch.executable import is_asan

# Of the thread that is going to become the program.
_STATUS = Path("/proc/thread-self/status")


def variables(
    library: Path, globs: Sequence[str], excludes: Sequence[str], inherited_preload: str = ""
) -> dict[str, str]:
    """Return the variables to set.

    globs: which files; none means all. A glob cannot hold a colon, as the colon separates them.
    inherited_preload: the user's own LD_PRELOAD, which stays in force after ours; the runtime of
    AddressSanitizer stays first.
    """
    for text in (*globs, *excludes):
        if ":" in text or not text:
            raise UsageError(f"'{text}': a glob is not empty and has no colon; use ? in its place")
    values = {
        "CEASEFIRE_PATHS": ":".join(globs) if globs else "*",
        "LD_PRELOAD": _preloaded(library, inherited_preload),
    }
    if excludes:
        values["CEASEFIRE_EXCLUDE"] = ":".join(excludes)
    return values


def shared_tables(library: Path, least: int, inherited_preload: str = "") -> dict[str, str]:
    """Return the variables that make shared memory of least bytes and more morsels."""
    return {
        "CEASEFIRE_SHARED_TABLES": str(least),
        "LD_PRELOAD": _preloaded(library, inherited_preload),
    }


def _preloaded(library: Path, inherited: str) -> str:
    if re.search(r"[\s:]", str(library)):
        raise UsageError(f"{library}: the loader takes no preload library with a space or a colon")
    libraries = re.findall(r"[^\s:]+", inherited)
    libraries.insert(1 if asan_first(inherited) else 0, str(library))
    return ":".join(libraries)


def require_library() -> Path:
    """Return the preload library or say how to get it."""
    library = paths.preload_library()
    if library is None:
        how = remedies.tools("libceasefire-preload")
        raise Failure(f"there is no {paths.PRELOAD_NAME}: {how}")
    return library


def asan_first(preloaded: str) -> bool:
    """Say whether a value of LD_PRELOAD begins with the runtime of AddressSanitizer."""
    libraries = re.findall(r"[^\s:]+", preloaded)
    return bool(libraries) and is_asan(libraries[0])


def filter_is_on() -> bool:
    """Say whether the kernel filters our system calls, and so those of what we start."""
    try:
        text = _STATUS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True  # as the library sees it
    return re.search(r"^Seccomp:\s*[^0\s]", text, re.MULTILINE) is not None
