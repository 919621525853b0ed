# SPDX-License-Identifier: GPL-2.0-only
"""Archives that a guest boots from: its whole root, or the modules that lead to the usual root.

A guest whose root is this machine's file tree cannot do without the device that brings it. One that
boots from memory can: it may hibernate. It has busybox and some files of this machine, at the paths
that they have here, with the libraries they are linked with.

A kernel of a distribution has as modules what the kernels built here have built in. Its archive
loads them, and goes on with this machine's file tree.

Both are cpio archives of the kind that the kernel unpacks (newc).
"""

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ceasefire import paths, remedies
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
# virtme-run puts on the kernel's command line what the root is and what to start there. The archive
# that it makes itself mounts the root without a cache: a guest takes minutes to start.
_LOADER = """#!/bin/busybox sh
# Written by the harness for one run: loads what the kernel lacks, and goes on with the real root.
/bin/busybox --install -s /bin
mount -t proc proc /proc
for file in /lib/modules/*/*.ko; do
	name=${file##*/}
	modprobe "${name%.ko}"
done
for word in $(cat /proc/cmdline); do
	case $word in
	rootflags=*) flags=${word#rootflags=} ;;
	init=*) init=${word#init=} ;;
	esac
done
umount /proc
mount -t 9p -o "ro,$flags" /dev/root /mnt
exec switch_root /mnt "$init"
"""
_FOLDERS = ("/dev", "/proc", "/sys", "/run", "/tmp", "/mnt", "/bin", "/usr")
_LINKS = {"/sbin": "bin", "/usr/bin": "../bin", "/usr/sbin": "../bin"}
_LIBRARY = re.compile(r"(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_LDD_LIMIT = 60.0
_FOLDER, _FILE, _LINK = 0o040755, 0o100755, 0o120777


def archive(files: Sequence[Path], script: Path) -> bytes:
    """Return an archive with these files; the script is what the guest runs before it ends."""
    content = _first(_INIT) | {str(path): path.read_bytes() for path in files}
    content |= {lib: Path(lib).read_bytes() for path in files for lib in libraries(path)}
    return _packed({**content, SCRIPT: script.read_bytes()})


def modules(image: Path) -> list[Path]:
    """Return the modules that come with a kernel, as scripts/debian-kernels lays them out."""
    return sorted((image.parent / "lib" / "modules").glob("*/*"))


def loader(files: Sequence[Path]) -> bytes:
    """Return an archive that loads modules; files: as modules() has found them."""
    content = {f"/lib/modules/{p.parent.name}/{p.name}": p.read_bytes() for p in files}
    return _packed(_first(_LOADER) | content)


def _first(init: str) -> dict[str, bytes]:
    """Return the first program, and busybox, which runs it."""
    busybox = paths.find_program("busybox")
    if busybox is None or libraries(Path(busybox)):
        raise Failure(f"busybox-static is missing: {remedies.system('busybox-static')}")
    return {"/bin/busybox": Path(busybox).read_bytes(), "/init": init.encode()}


def _packed(content: Mapping[str, bytes]) -> bytes:
    """Return an archive of files."""
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
