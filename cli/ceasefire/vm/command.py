# SPDX-License-Identifier: GPL-2.0-only
"""Turns a GuestSpec into the command line of virtme-run and the script that the guest runs.

virtme-run (part of virtme-ng) boots the kernel with the host's file tree as root, connects the
script's output to ours, and powers off. Its front end vng builds a shell command without quoting
and reads a configuration file of the user, therefore it is not used.

virtme-run drops the kernel log or mixes it with the command's stderr, and QEMU's own messages too.
Each goes to a file of its own here: a script that stands for QEMU exchanges those options (a
kernel has only one serial console, so a second port is no way).

A guest that boots from memory needs no virtme-run: QEMU boots the kernel with an initramfs.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from ceasefire import paths, remedies
from ceasefire.errors import Failure
from ceasefire.process_group import end_with_parent
from ceasefire.sizes import parse_size
from ceasefire.vm import emulator, pulse
from ceasefire.vm.spec import DiskSpec, GuestSpec

# virtme mounts empty file systems over these, what the host has there is exported once more.
_MASKED = ("/run", "/var/log", "/var/tmp", "/var/cache", "/dev/shm")
UDEV_PROGRAMS = ("/usr/lib/systemd/systemd-udevd", "/lib/systemd/systemd-udevd", "/sbin/udevd")
_LOG_ARGS = (
    "ignore_loglevel",
    "printk.time=1",
    "log_buf_len=4M",
    "printk.devkmsg=on",
    "oops=panic",
)
# virtme's own words and a cache: a guest starts in two thirds of the time. What changes on the
# host while a guest runs may be seen as it was.
_ROOT_ARGS = ("rootflags=version=9p2000.L,trans=virtio,access=any,msize=524288,cache=loose",)
# Each device costs time; a disk asks for what it needs. Where udev greets them after all (see
# start.py), one process of it is done sooner than several.
_DEVICE_ARGS = ("loop.max_loop=0", "brd.rd_nr=0", "udev.children_max=1")
# An emulated CPU is slow and shares the host's; 21 s without a grace period or a switch are no bug
# there. A timer that the host's load delays is not a broken one.
# Each CPU would measure its speed for up to a second; with the time-stamp counter of any host
# this is near enough. All emulated CPUs have the same counter, but with several packages the kernel
# would not believe it, and ask a slow timer each time that it wants to know what time it is.
# QEMU translates a program anew for each address that it is loaded at: without random addresses a
# process starts and ends in half the time.
_TCG_ARGS = (
    "pti=off",
    "rcupdate.rcu_cpu_stall_timeout=120",
    "watchdog_thresh=60",
    "lpj=10000000",
    "tsc=reliable",
    "no_timer_check",
    "norandmaps",
)
# Where a guest that hangs is given up its kernel says so in less than a minute.
_PULSE_ARGS = ("watchdog_thresh=20", "rcupdate.rcu_cpu_stall_timeout=45")
_PULSE_DEBUG_ARGS = (
    "sysctl.kernel.hung_task_timeout_secs=50",
    "sysctl.kernel.hung_task_check_interval_secs=5",
)
_DEBUG_ARGS = ("page_poison=1",)
_DEFAULT_BRD = "256M"
DISK_DIR = "/run/disk"
# Stands for a folder of the guest in words for QEMU.
RUN = "{run}"
# The host's rules are many, and each device of a guest would meet all of them.
_UDEV_RULES = Path(__file__).parent / "udev"


def require_host() -> str:
    """Check what every guest needs of the host; return the path of virtme-run."""
    if not any(Path(program).exists() for program in UDEV_PROGRAMS):
        how = remedies.system("udev")
        raise Failure(f"udev is missing (the guest finds its output with it): {how}")
    found = paths.find_program("virtme-run")
    if found is None:
        raise Failure(f"virtme-ng is missing: {remedies.virtme()}")
    return found


def emulator_script(program: str, log: Path, messages: Path) -> str:
    """Return a shell script that runs QEMU with its console in the log.

    messages: the file for what QEMU itself has to say. The port for virtme's status goes nowhere:
    it would be a file that the guest can fill, and the kernel log has the status. No core is left
    behind, it would hold the guest's memory.
    """
    console = shlex.quote(f"file,id=console,path={_escape(log)}")
    other = f"this virtme-ng has another console option: {remedies.virtme()}"
    return f"""#!/bin/sh
# Written by the harness for one run: QEMU with the console in the kernel log.
ulimit -c 0
kernel=
found=
for word; do
	shift
	case $word in
	-kernel) kernel=1 ;;
	*,id=console,path=*) word={console} found=1 ;;
	file,id=ret,path=*) word=file,id=ret,path=/dev/null ;;
	*,path=/proc/self/fd/2) word=${{word%2}}3 ;;
	esac
	set -- "$@" "$word"
done
if [ -n "$kernel" ] && [ -z "$found" ]; then
	echo {shlex.quote(other)} >&2
	exit 1
fi
exec {shlex.join([*end_with_parent("KILL"), program])} "$@" 3>&2 2>>{shlex.quote(str(messages))}
"""


def virtme_command(
    spec: GuestSpec, accel: str, script: Path, qemu: Path, visible: Sequence[Path]
) -> list[str]:
    """Return the argument vector that boots the guest.

    script, qemu: files with the texts of guest_script() and emulator_script().
    visible: directories that must be in the guest even where virtme hides the host's.
    """
    virtme = require_host()
    words = [*end_with_parent("TERM"), virtme, "--script-sh", f"sh {shlex.quote(str(script))}"]
    words += ["--kimg", str(paths.kernel_image(spec.kernel)), "--mods", "none"]
    words += ["--user", "root", "--name", "ceasefire", "--force-9p", "--disable-microvm"]
    words += ["--qemu-bin", str(qemu)]
    # A CPU that shares its package with one of another node makes the kernel warn.
    packages = f",sockets={spec.cpus},cores=1,threads=1" if spec.numa > 1 else ""
    words += ["--cpus", f"{spec.cpus}{packages}"]
    words += ["--memory", f"{parse_size(spec.memory) >> 20}M"]
    if accel == "tcg":
        words.append("--disable-kvm")
    for directory in ("/etc", "/lib", "/home", "/opt", "/srv", "/usr", "/var", "/tmp"):
        words += ["--overlay-rwdir", directory]
    for directory in masked(visible):
        words += ["--rodir", directory]
    words += ["--rodir", f"/usr/lib/udev/rules.d={_UDEV_RULES}"]
    for node in _numa_nodes(spec):
        words += ["--numa", node]
    for argument in kernel_arguments(spec, accel):
        words += ["--kopt", argument]
    # Must come last: virtme-run takes everything that follows.
    return [*words, "--qemu-opts", *_qemu_options(spec, accel, script.parent)]


def memory_command(spec: GuestSpec, accel: str, initramfs: Path, qemu: Path) -> list[str]:
    """Return the argument vector that boots a guest from memory.

    qemu: a file with the text of emulator_script(). The ports are known to the initramfs.
    """
    words = [str(qemu), "-machine", "q35", "-nodefaults", "-display", "none"]
    words += ["-smp", str(spec.cpus), "-m", f"{parse_size(spec.memory) >> 20}M"]
    words += ["-kernel", str(paths.kernel_image(spec.kernel)), "-initrd", str(initramfs)]
    words += ["-append", " ".join(["console=ttyS0", "panic=-1", *kernel_arguments(spec, accel)])]
    words += ["-chardev", "file,id=console,path=/dev/null", "-serial", "chardev:console"]
    words += ["-device", "virtio-serial-pci"]
    for number, name in ((1, "out"), (2, "err")):
        words += ["-chardev", f"file,id={name},path=/proc/self/fd/{number}"]
        words += ["-device", f"virtserialport,chardev={name},nr={number}"]
    if accel == "kvm":
        words += ["-accel", "kvm", *([] if emulator.cpu_model(spec, accel) else ["-cpu", "host"])]
    # One that panics ends. One that reboots goes on if it has a disk that keeps what it has done.
    if not any(disk.kind == "empty" for disk in spec.disks):
        words.append("-no-reboot")
    return [*words, *_qemu_options(spec, accel, initramfs.parent)]


def masked(directories: Sequence[Path]) -> list[str]:
    """Return those directories that virtme's own mounts would hide from the guest."""
    hidden = {
        str(directory)
        for directory in directories
        if any(directory.is_relative_to(mask) for mask in _MASKED)
    }
    return sorted(hidden)


def kernel_arguments(spec: GuestSpec, accel: str) -> list[str]:
    """Return the kernel command line, the user's words last so that they win."""
    words = [*_LOG_ARGS, *(() if spec.files else _ROOT_ARGS), *_DEVICE_ARGS]
    if accel == "tcg":
        words += _TCG_ARGS
    if spec.silence:
        words += [*_PULSE_ARGS, *(_PULSE_DEBUG_ARGS if spec.kernel == "debug" else ())]
    words += emulator.kernel_arguments(spec)
    if spec.kernel == "debug":
        words += _DEBUG_ARGS
    for disk in spec.disks:
        if disk.kind == "null_blk":
            latency = int(disk.argument or "0") * 1000
            words += ["null_blk.nr_devices=1", "null_blk.gb=16"]
            words += [f"null_blk.irqmode={2 if latency else 0}"]
            words += [f"null_blk.completion_nsec={latency}"] if latency else []
        elif disk.kind == "brd-ext4":
            size = parse_size(disk.argument or _DEFAULT_BRD) >> 10
            words += ["brd.rd_nr=4", f"brd.rd_size={size}"]
    return words + list(spec.append)


def guest_script(spec: GuestSpec, command: Sequence[str], cwd: Path) -> str:
    """Return the shell script that sets up the disks, runs the command and reports its status."""
    lines = [
        "#!/bin/sh",
        "# Written by the harness for one run; executed as root inside the guest.",
        'note() { echo "<6>ceasefire-vm: $*" >/dev/kmsg; }',
        'fail() { echo "ceasefire vm: $*" >&2; note "setup failed: $*"; exit 1; }',
        "note ready",
        *(pulse.heartbeat() if spec.silence else ()),
        f"mkdir -p {DISK_DIR} || fail 'cannot make {DISK_DIR}'",
    ]
    rams = 0
    for index, disk in enumerate(spec.disks):
        lines += _disk_setup(index, disk, rams)
        rams += disk.kind == "brd-ext4"
    lines += [f"export {name}={shlex.quote(value)}" for name, value in spec.environment]
    lines += [
        f"cd {shlex.quote(str(cwd))} || fail 'the working directory is not visible in the guest'",
        shlex.join(command),
        "status=$?",
        "sync",
        'note "command returned $status"',
        "exit $status",
    ]
    return "\n".join(lines) + "\n"


def _disk_setup(index: int, disk: DiskSpec, rams: int) -> list[str]:
    """Return the lines that give disk number `index` its place below DISK_DIR."""
    place = f"{DISK_DIR}/{index}"
    if disk.kind == "null_blk":
        return [
            "[ -b /dev/nullb0 ] || fail 'the kernel has no null_blk'",
            f"ln -s /dev/nullb0 {place}",
        ]
    if disk.kind == "brd-ext4":
        device = f"/dev/ram{rams}"
        return [
            f"[ -b {device} ] || fail 'the kernel has no RAM disk'",
            f"mke2fs -q -t ext4 -F {device} || fail 'mke2fs of the RAM disk failed'",
            f"mkdir {place} && mount -t ext4 {device} {place} || fail 'cannot mount {device}'",
        ]
    serial = _serial(index)
    lines = [
        "device=",
        "for d in /sys/block/vd*; do",
        f'\t[ "$(cat "$d/serial")" = {serial} ] && device=/dev/${{d##*/}}',
        "done",
        f'[ -n "$device" ] || fail "disk {index} did not appear"',
        f'ln -s "$device" {place}',
    ]
    if disk.kind == "empty":
        twice = f"disk {index} is not empty: the guest has booted twice"
        lines.append(f'cmp -s -n 4096 "$device" /dev/zero || fail "{twice}"')
    if disk.mount:
        where = shlex.quote(disk.mount)
        lost = shlex.quote(f"{disk.mount}/lost+found")
        lines += [
            f"[ -d {where} ] || mkdir -p {where} || fail 'there is no place for disk {index}'",
            f'mount -t ext4 "$device" {where} || fail "cannot mount disk {index}"',
            f"[ ! -d {lost} ] || rmdir {lost}",
        ]
    return lines


def _numa_nodes(spec: GuestSpec) -> list[str]:
    """Split memory and CPUs over the nodes; the last node gets the remainders."""
    if spec.numa == 1:
        return []
    memory = parse_size(spec.memory) >> 20
    share, cpus = memory // spec.numa, spec.cpus // spec.numa
    nodes = []
    for node in range(spec.numa):
        last = node == spec.numa - 1
        size = memory - share * node if last else share
        end = spec.cpus - 1 if last else cpus * (node + 1) - 1
        nodes.append(f"{size}M,cpus={cpus * node}-{end}")
    return nodes


def _qemu_options(spec: GuestSpec, accel: str, run: Path) -> list[str]:
    words: list[str] = []
    if accel == "tcg":
        words += ["-accel", "tcg,thread=single" if spec.icount else "tcg,thread=multi"]
    if spec.icount:
        words += ["-icount", "shift=0,sleep=off"]
    model = emulator.cpu_model(spec, accel)
    if model:
        words += ["-cpu", model]
    words += emulator.options(spec)
    words += ["-machine", "dump-guest-core=off"]
    for index, disk in enumerate(spec.disks):
        if disk.kind in ("image", "empty"):
            kept = "snapshot=on" if disk.kind == "image" else "cache=unsafe"
            file = disk.argument if disk.kind == "image" else empty_disk(run, index)
            drive = f"if=none,id=disk{index},format=raw,{kept},file={_escape(file)}"
            words += ["-drive", drive]
            words += ["-device", f"virtio-blk-pci,drive=disk{index},serial={_serial(index)}"]
    return words + [word.replace(RUN, str(run)) for word in spec.qemu_args]


def empty_disk(run: Path, index: int) -> Path:
    """Return where the content of an empty disk is, in the folder of a guest."""
    return run / f"disk{index}"


def _serial(index: int) -> str:
    return f"ceasefire{index}"


def _escape(path: Path | str) -> str:
    """Quote a file name for QEMU's comma-separated options."""
    return str(path).replace(",", ",,")
