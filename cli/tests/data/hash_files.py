# SPDX-License-Identifier: GPL-2.0-only
"""Threads that map files, hash them and unmap them, as a script of a user might: DIR ROUNDS."""

import hashlib
import mmap
import sys
import threading
from pathlib import Path

THREADS = 2


def hash_all(files: list[Path], rounds: int) -> None:
    """Hashing lets go of the interpreter's lock, so the threads run beside each other."""
    for path in files * rounds:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            hashlib.sha256(content).digest()


files = sorted(Path(sys.argv[1]).iterdir())
threads = [
    threading.Thread(target=hash_all, args=(files[number::THREADS], int(sys.argv[2])))
    for number in range(THREADS)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
