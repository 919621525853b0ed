# SPDX-License-Identifier: GPL-2.0-only
"""pbzip2 with less memory than its input has, compressing a file.

pbzip2 reads its input, it does not map it: what memory pressure evicts is page cache that nobody
has mapped. After the measurement what it wrote is decompressed by another program and compared
with the input by checksum. An operation is a mebibyte of input.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from ceasefire.bench.apps import common, limit
from ceasefire.errors import Failure

_CHUNK = 1 << 20
_LINE = "{:08} {:08x} text that repeats itself, but not quite: {:016}\n"


def main(args: argparse.Namespace) -> None:
    """Make the input if it is not there, compress it, decompress it, compare."""
    source, packed = Path("pbzip2-input").absolute(), Path("pbzip2-output").absolute()
    mib, most = args.mib * args.cpus, f"{args.limit * args.cpus}M"
    make_input(source, mib << 20)
    limited = [sys.executable, "-P", "-s", "-m", limit.__name__, "--memory", most, "--"]
    program = ["pbzip2", "-1", "-k", "-c", "-m4", f"-p{args.cpus}", str(source)]
    with packed.open("wb") as output, common.window() as found:
        done = subprocess.run(
            [*(limited if args.limit else []), *common.prefixed(args, program)],
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
    if done.returncode:
        raise Failure(f"pbzip2: {done.stderr.decode(errors='replace').strip()}")
    if args.limit and not limit.times_reached():
        raise Failure(f"pbzip2 never wanted more than {most}: there was no pressure")
    same = digest_of(source.read_bytes()) == unpacked(packed)
    common.result(mib, found, 0 if same else 1)


def make_input(path: Path, size: int) -> None:
    """Write text of so many bytes, the same in each run; quick if it is there."""
    if path.is_file() and path.stat().st_size == size:
        return
    written, number = 0, 0
    with path.open("wb") as file:
        while written < size:
            line = _LINE.format(number, number * 2654435761 % 2**32, number**5)
            written += file.write(line.encode()[: size - written])
            number += 1


def digest_of(data: bytes) -> str:
    """Return the checksum of some contents."""
    return hashlib.sha256(data).hexdigest()


def unpacked(path: Path) -> str:
    """Return the checksum of what is in a compressed file."""
    found = hashlib.sha256()
    command = [shutil.which("bzip2") or "pbzip2", "-dc", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while data := process.stdout.read(_CHUNK):
            found.update(data)
    return found.hexdigest() if process.returncode == 0 else f"status {process.returncode}"


def _options() -> argparse.ArgumentParser:
    options = common.parser(__doc__)
    options.add_argument("--mib", type=int, default=8, help="size of the input for each CPU")
    options.add_argument(
        "--limit",
        type=int,
        default=0,
        metavar="MIB",
        help="memory for each CPU (default: no limit)",
    )
    return options


if __name__ == "__main__":
    common.run_main(main, _options())
