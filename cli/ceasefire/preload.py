# SPDX-License-Identifier: GPL-2.0-only
"""The environment that makes a program's file mappings use FPR through the preload library."""

import re
from collections.abc import Sequence
from pathlib import Path

from ceasefire.errors import UsageError


def variables(
    library: Path, globs: Sequence[str], excludes: Sequence[str], inherited_preload: str = ""
) -> dict[str, str]:
    """Return the variables to set.

    globs: which files; none means all. A glob cannot hold a colon, as the colon separates them.
    inherited_preload: the user's own LD_PRELOAD, which stays in force after ours.
    """
    for text in (*globs, *excludes):
        if ":" in text or not text:
            raise UsageError(f"'{text}': a glob is not empty and has no colon; use ? in its place")
    if re.search(r"[\s:]", str(library)):
        raise UsageError(f"{library}: the loader takes no preload library with a space or a colon")
    values = {
        "CEASEFIRE_PATHS": ":".join(globs) if globs else "*",
        "LD_PRELOAD": f"{library}:{inherited_preload}" if inherited_preload else str(library),
    }
    if excludes:
        values["CEASEFIRE_EXCLUDE"] = ":".join(excludes)
    return values
