# SPDX-License-Identifier: GPL-2.0-only
"""Files that are there as a whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file, whole or not at all. Something that is no regular file is written to.

    Errors: OSError; what was there before is still there then.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
