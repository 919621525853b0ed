# SPDX-License-Identifier: GPL-2.0-only
"""The root of a guest that boots from memory: busybox and some files of this machine, no device.

A guest whose root is this machine's file tree cannot do without the device that brings it. This
one can: it may hibernate. The files are at the paths that they have here, with the libraries they
are linked with. The archive is a cpio of the kind that the kernel unpacks (newc).
"""

import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from ceasefire import paths
from ceasefire.errors import Failure

SCRIPT = "/guest.sh"
# Its standard output and error, see memory_command().
_OUT, _ERR = "/dev/vport0p1", "/dev/vport0p2"
# Device nodes and all that the kernel has to tell are mounted. It ends by itself, or not at all.
_INIT = f"""#!/bin/busybox sh
# Written by the harness for one run: the first process of a guest that boots from memory.
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t debugfs debug /sys/kernel/debug
sh {SCRIPT} </dev/null >{_OUT} 2>{_ERR}
poweroff -f
"""
_FOLDERS = ("/dev", "/proc", "/sys", "/run", "/tmp", "/mnt", "/bin", "/usr")
_LINKS = {"/sbin": "bin", "/usr/bin": "../bin", "/usr/sbin": "../bin"}
_LIBRARY = re.compile(r"(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_LDD_LIMIT = 60.0
_FOLDER, _FILE, _LINK = 0o040755, 0o100755, 0o120777


def archive(files: Sequence[Path], script: Path) -> bytes:
    """Return an archive with these files; the script is what the guest runs before it ends."""
    busybox = paths.find_program("busybox")
    if busybox is None or libraries(Path(busybox)):
        raise Failure("busybox-static is missing: run `make deps`")
    content = {str(path): path.read_bytes() for path in files}
    content |= {lib: Path(lib).read_bytes() for path in files for lib in libraries(path)}
    content |= {"/bin/busybox": Path(busybox).read_bytes(), SCRIPT: script.read_bytes()}
    content["/init"] = _INIT.encode()
    parts = [_entry(name, _FOLDER, b"") for name in _folders(content)]
    parts += [_entry(name, _LINK, target.encode()) for name, target in _LINKS.items()]
    parts += [_entry(name, _FILE, data) for name, data in content.items()]
    return b"".join([*parts, _entry("TRAILER!!!", 0, b"")])


def libraries(program: Path) -> list[str]:
    """Return the libraries that a program is linked with, its loader too; none of a script."""
    with program.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
    done = subprocess.run(
        ["ldd", str(program)], capture_output=True, text=True, timeout=_LDD_LIMIT, check=False
    )
    return _LIBRARY.findall(done.stdout)


def _folders(names: Iterable[str]) -> list[str]:
    """Return all folders on the way to these files and the usual ones, parents first."""
    above = {str(parent) for name in names for parent in Path(name).parents}
    return sorted({*above, *_FOLDERS} - {"/", *_LINKS})


def _entry(name: str, mode: int, data: bytes) -> bytes:
    """Return one member; a link has its target as data. The kernel wants no other field."""
    path = name.lstrip("/").encode() + b"\0"
    numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + path
    return _padded(head) + _padded(data)


def _padded(text: bytes) -> bytes:
    return text + bytes(-len(text) % 4)
