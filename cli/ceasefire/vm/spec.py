# SPDX-License-Identifier: GPL-2.0-only
"""What a guest is made of, and the options that every verb which boots one has in common."""

import argparse
from dataclasses import dataclass, field, replace
from pathlib import Path

from ceasefire import paths, remedies
from ceasefire.errors import Failure, UsageError
from ceasefire.sizes import parse_size

ACCELERATORS = ("auto", "kvm", "tcg")
DEFAULT_EMULATOR = "qemu-system-x86_64"
STOCK_EMULATOR = "stock"
CHECKING_EMULATOR = "checking"
BUILT_EMULATOR = "built"
EMULATOR_HELP = "stock, checking or built (make emulator), or a QEMU program (default: stock)"
MAX_CPUS = 64


@dataclass(frozen=True)
class DiskSpec:
    """One disk of the guest.

    kind: null_blk (no data, a latency), brd-ext4 (an empty ext4 on a RAM disk), image (a virtio
    disk from a file of the host, whose content never changes) or empty (a virtio disk of some size
    that is gone with the guest).
    mount: where the guest mounts an image with ext4; empty for a bare device.
    """

    kind: str
    argument: str = ""
    mount: str = ""


@dataclass(frozen=True)
class GuestSpec:
    """Everything that decides what boots; the command is given to run_guest().

    files: boot from memory, with these and busybox instead of the host's file tree (initramfs.py).
    silence: the guest gives signs of life, and is given up after so many seconds without one, or
    when its kernel says that it hangs (pulse.py). 0: wait until the time is up.
    tmpfiles: /run and /var have what services expect there (start.py).
    """

    kernel: str = "run"
    cpus: int = 2
    memory: str = "1G"
    numa: int = 1
    append: tuple[str, ...] = ()
    disks: tuple[DiskSpec, ...] = ()
    timeout: float = 600.0
    accel: str = "auto"
    emulator: str = STOCK_EMULATOR
    check: str = ""
    cpu_model: str = ""
    icount: bool = False
    qemu_args: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    allow_log: tuple[str, ...] = field(default=())
    files: tuple[Path, ...] = ()
    silence: float = 0.0
    tmpfiles: bool = True

    def with_disks(self, *disks: DiskSpec) -> "GuestSpec":
        """Return the same guest with more disks."""
        return replace(self, disks=self.disks + disks)


def parse_disk(text: str) -> DiskSpec:
    """Return the disk that an option like 'null_blk:50' or 'image:/tmp/a.img' asks for."""
    kind, _, argument = text.partition(":")
    if kind == "null_blk":
        if argument and not argument.isdecimal():
            raise UsageError(f"--disk {text}: the latency of null_blk is in whole microseconds")
        return DiskSpec(kind, argument)
    if kind == "brd-ext4":
        parse_size(argument or "1")
        return DiskSpec(kind, argument)
    if kind == "image":
        if not Path(argument).is_file():
            raise UsageError(f"--disk {text}: there is no such image file")
        return DiskSpec(kind, str(Path(argument).resolve()))
    if kind == "empty":
        if parse_size(argument) < 1 << 20:
            raise UsageError(f"--disk {text}: a disk has at least 1M")
        return DiskSpec(kind, argument)
    raise UsageError(
        f"--disk {text}: it is null_blk[:MICROSECONDS], brd-ext4[:SIZE], image:PATH or empty:SIZE"
    )


def check_spec(spec: GuestSpec) -> None:
    """Refuse what cannot boot, with a line that says what to change."""
    if not 1 <= spec.cpus <= MAX_CPUS:
        raise UsageError(f"--cpus {spec.cpus}: it is 1 to {MAX_CPUS}")
    if not 1 <= spec.numa <= spec.cpus:
        raise UsageError(f"--numa {spec.numa}: every node needs a CPU, so 1 to --cpus {spec.cpus}")
    if spec.icount and spec.accel == "kvm":
        raise UsageError("--icount counts what an emulated CPU does: leave --accel kvm out")
    if spec.accel not in ACCELERATORS:
        raise UsageError(f"--accel {spec.accel}: it is one of {', '.join(ACCELERATORS)}")
    if spec.emulator in (CHECKING_EMULATOR, BUILT_EMULATOR) and spec.accel == "kvm":
        raise UsageError(f"--emulator {spec.emulator} emulates the CPUs: leave --accel kvm out")
    if spec.check and spec.emulator != CHECKING_EMULATOR:
        raise UsageError("--check is for --emulator checking")
    if spec.files and (spec.numa > 1 or any(d.kind == "brd-ext4" or d.mount for d in spec.disks)):
        raise UsageError("a guest that boots from memory has one node and mounts no disks")
    if spec.timeout <= 0:
        raise UsageError("--timeout is in seconds and more than 0")
    if parse_size(spec.memory) < 128 << 20:
        raise UsageError(f"--memory {spec.memory}: a guest needs at least 128M")
    image = paths.kernel_image(spec.kernel)
    if not image.is_file():
        if spec.kernel in paths.KERNEL_KINDS:
            how = remedies.kernel(spec.kernel)
            raise Failure(f"the '{spec.kernel}' kernel is not built: {how}")
        kinds = ", ".join(paths.KERNEL_KINDS)
        raise UsageError(f"--kernel {spec.kernel}: it is one of {kinds}, or a bzImage")


def add_guest_arguments(parser: argparse.ArgumentParser, *, timeout: float = 600.0) -> None:
    """Declare the options of a guest."""
    group = parser.add_argument_group("the guest")
    group.add_argument(
        "--kernel",
        default="run",
        metavar="KIND",
        help="run, debug, stock, plain or the path of a bzImage (default: run)",
    )
    group.add_argument("--cpus", type=int, default=2, metavar="N", help="virtual CPUs (default: 2)")
    group.add_argument("--memory", default="1G", metavar="SIZE", help="memory (default: 1G)")
    group.add_argument(
        "--numa", type=int, default=1, metavar="N", help="split it into N NUMA nodes (default: 1)"
    )
    group.add_argument(
        "--append",
        action="append",
        default=[],
        metavar="ARGS",
        help="kernel arguments; may be repeated",
    )
    group.add_argument(
        "--disk",
        action="append",
        default=[],
        metavar="DISK",
        help="null_blk[:MICROSECONDS], brd-ext4[:SIZE], image:PATH or empty:SIZE; may be repeated",
    )
    group.add_argument(
        "--timeout",
        type=float,
        default=timeout,
        metavar="SEC",
        help=f"kill the guest after this long (default: {timeout:g})",
    )
    group.add_argument(
        "--accel",
        choices=ACCELERATORS,
        default="auto",
        help="auto uses KVM when a guest really boots with it (default: auto)",
    )
    group.add_argument(
        "--emulator",
        default=STOCK_EMULATOR,
        metavar="NAME",
        help=EMULATOR_HELP,
    )
    group.add_argument(
        "--check",
        default="",
        metavar="PROPERTIES",
        help="of the checking emulator, for example process=on,old-ms=500",
    )
    group.add_argument(
        "--cpu", default="", metavar="MODEL", help="QEMU's CPU model (default with TCG: max,-pku)"
    )
    group.add_argument(
        "--icount",
        action="store_true",
        help="advance time by one nanosecond an instruction; needs --cpus 1",
    )
    group.add_argument(
        "--qemu-arg",
        action="append",
        default=[],
        metavar="ARG",
        help="pass one word to QEMU; {run} is a folder of this guest; may be repeated",
    )


def spec_from_arguments(args: argparse.Namespace) -> GuestSpec:
    """Return the checked guest that the parsed options describe."""
    spec = GuestSpec(
        kernel=args.kernel,
        cpus=args.cpus,
        memory=args.memory,
        numa=args.numa,
        append=tuple(word for text in args.append for word in text.split()),
        disks=tuple(parse_disk(text) for text in args.disk),
        timeout=args.timeout,
        accel="tcg" if args.icount and args.accel == "auto" else args.accel,
        emulator=args.emulator,
        check=args.check,
        cpu_model=args.cpu,
        icount=args.icount,
        qemu_args=tuple(args.qemu_arg),
    )
    if spec.icount and spec.cpus != 1:
        raise UsageError("--icount counts the instructions of one emulated CPU: use --cpus 1")
    check_spec(spec)
    return spec
