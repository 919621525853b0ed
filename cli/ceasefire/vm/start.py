# SPDX-License-Identifier: GPL-2.0-only
"""Shortens the start of a guest whose root is this machine's file tree.

virtme's init starts udev, has it greet each device, and waits until it is done. On an emulated CPU
that takes longer than the kernel's own start, and all that comes of it are the names of the ports
that carry the command's input and output. So a stand-in for udevadm makes these names. The init
looks for programs in the PATH that the kernel's command line gives it; a virtme that has a PATH of
its own starts as slowly as ever. The script of the guest (command.py) has the user's PATH.

Called by guest.py.
"""

from pathlib import Path

# Programs with libraries take long to start: busybox does all of this in one.
_BUSYBOX = Path("/bin/busybox")

# The kernel announces the ports one after the other; virtme.ret is virtme's last.
_UDEVADM = """#!{shell}
# Written by the harness for one run: what virtme's init takes for udevadm.
[ "$1" = settle ] || exit 0
{run}mkdir -p /dev/virtio-ports
tries=0
while [ ! -e /dev/virtio-ports/virtme.ret ] && [ $tries -lt 100 ]; do
	[ $tries -eq 0 ] || {run}sleep 0.1
	tries=$((tries + 1))
	for port in /sys/class/virtio-ports/*; do
		name=
		[ ! -e "$port/name" ] || read -r name <"$port/name"
		[ -z "$name" ] || [ -e "/dev/virtio-ports/$name" ] ||
			{run}ln -s "../${{port##*/}}" "/dev/virtio-ports/$name"
	done
done
"""
_TMPFILES = """#!{shell}
# Written by the harness for one run: what virtme's init takes for systemd-tmpfiles.
{run}mkdir -m 1777 /run/lock
"""


def path_for_init(folder: Path, *, tmpfiles: bool) -> list[str]:
    """Write what virtme's init takes for some programs; return words for the kernel's command line.

    folder: the guest's own, which it sees. tmpfiles: have systemd-tmpfiles make what services
    expect below /run and /var.
    Returns no words where the folder's path would need quotes, which the kernel does not know.
    """
    programs = folder / "programs"
    if any(letter.isspace() or letter in "\"':" for letter in str(programs)):
        return []
    programs.mkdir()
    texts = {"udevadm": _UDEVADM} | ({} if tmpfiles else {"systemd-tmpfiles": _TMPFILES})
    busybox = _BUSYBOX.exists()
    shell, run = (f"{_BUSYBOX} sh", f"{_BUSYBOX} ") if busybox else ("/bin/sh", "")
    for name, text in texts.items():
        (programs / name).write_text(text.format(shell=shell, run=run), encoding="utf-8")
        (programs / name).chmod(0o755)
    return [f"PATH={programs}"]
