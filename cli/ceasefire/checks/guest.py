# SPDX-License-Identifier: GPL-2.0-only
"""Checks of what a virtual machine with the patched kernel needs."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from ceasefire import paths, remedies
from ceasefire.checks.base import INFO, PASS, Check, check
from ceasefire.checks.here import preload_check
from ceasefire.errors import Failure
from ceasefire.text import lines_of
from ceasefire.vm import accel
from ceasefire.vm.command import UDEV_PROGRAMS
from ceasefire.vm.guest import accelerator, run_guest
from ceasefire.vm.spec import DEFAULT_EMULATOR, GuestSpec

_BOOT_LIMIT = 120.0
_VERSION_LIMIT = 30.0
_SPACE_NEEDED = 6 << 30
# What is imported, and Debian's package that has it.
_MODULES = {
    "rich": "python3-rich",
    "jinja2": "python3-jinja2",
    "elftools": "python3-pyelftools",
}


def checks(*, boot: bool) -> list[Check]:
    """Check what `ceasefire try` and the tests need; boot: by booting guests too."""
    found = [
        _program("QEMU", DEFAULT_EMULATOR, remedies.system("qemu-system-x86"), version=True),
        _program("virtme-ng", "virtme-run", remedies.virtme()),
        _udev(),
        *(_kernel(kind, needed=kind == "run") for kind in paths.KERNEL_KINDS),
        preload_check(needed=False),
        _program("mke2fs", "mke2fs", remedies.system("e2fsprogs")),
        _python(),
        _program("ccache", "ccache", remedies.system("ccache"), needed=False),
        _space(),
    ]
    bootable = all(c.result == PASS for c in found[:4])
    if boot and bootable:
        found += [_kvm_by_booting(), _guest_by_booting()]
    else:
        found.append(_kvm_as_known())
    return found


def _program(
    name: str, program: str, fix: str, *, version: bool = False, needed: bool = True
) -> Check:
    path = paths.find_program(program)
    if path is None:
        return check(name, False, f"{program} is missing", fix, needed=needed)
    shown = path
    if version:
        done = subprocess.run(
            [path, "--version"], capture_output=True, timeout=_VERSION_LIMIT, check=False
        )
        shown = next(iter(lines_of(done.stdout)), path)
    return check(name, True, shown, "", needed=needed)


def _udev() -> Check:
    path = next((p for p in UDEV_PROGRAMS if Path(p).exists()), None)
    return check("udev", path is not None, path or "missing", remedies.system("udev"))


def _kernel(kind: str, *, needed: bool) -> Check:
    image = paths.kernel_image(kind)
    release = paths.kernel_release(kind)
    found = f"{release} {image}".strip() if image.is_file() else "not built"
    return check(f"{kind} kernel", image.is_file(), found, remedies.kernel(kind), needed=needed)


def _python() -> Check:
    missing = [n for n in _MODULES if importlib.util.find_spec(n) is None]
    found = "all there" if not missing else "missing: " + ", ".join(missing)
    fix = remedies.module(" ".join(_MODULES[name] for name in missing))
    return check("Python packages", not missing, found, fix, needed=False)


def _space() -> Check:
    where = paths.build_dir()
    while not where.exists():
        where = where.parent
    free = shutil.disk_usage(where).free
    built = paths.kernel_image("run").is_file()
    good = built or free >= _SPACE_NEEDED
    fix = f"free {_SPACE_NEEDED >> 30} GiB, or set CEASEFIRE_BUILD to a directory with room"
    return check("disk space", good, f"{free >> 30} GiB free at {where}", fix)


def _kvm_as_known() -> Check:
    known = accel.remembered()
    if known is not None:
        return _kvm(known)
    usable = os.access(accel.DEVICE, os.R_OK | os.W_OK)
    found = "/dev/kvm opens, not tried" if usable else "no usable /dev/kvm, guests are emulated"
    fix = "see what it is worth: ceasefire doctor --boot" if usable else ""
    return Check("KVM", INFO, found, fix, needed=False)


def _kvm_by_booting() -> Check:
    return _kvm(accelerator(GuestSpec(), probe_again=True) == "kvm")


def _kvm(works: bool) -> Check:
    found = "a guest boots with it" if works else "no guest boots with it, guests are emulated"
    return Check("KVM", PASS if works else INFO, found, needed=False)


def _guest_by_booting() -> Check:
    try:
        result = run_guest(GuestSpec(timeout=_BOOT_LIMIT), ["uname", "-r"], name="doctor")
        result.check()
    except Failure as failure:
        return check("guest", False, str(failure).partition("\n")[0], "read the log named above")
    release = result.stdout.decode(errors="replace").strip()
    found = f"{release} in {result.seconds:.1f} s with {result.accel}"
    return check("guest", True, found, "")
