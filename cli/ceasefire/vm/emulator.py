# SPDX-License-Identifier: GPL-2.0-only
"""The emulators by name, and what the one of `make emulator` needs on top.

`stock` is Debian's QEMU. `checking` is the one of `make emulator`: it compares accesses with the
page tables and has PCIDs (docs/emulator.md). Its reports come on its standard error, which ends up
in the kernel log, where a violation fails the run like a complaint of the kernel. `built` is the
same program that compares nothing: as quick as Debian's, and newer. QEMU before 8.1 may go on with
code that the guest has patched meanwhile, see klog.lost_patch().
"""

import re
from pathlib import Path

from ceasefire import paths, remedies
from ceasefire.errors import Failure
from ceasefire.vm.spec import (
    BUILT_EMULATOR,
    CHECKING_EMULATOR,
    DEFAULT_EMULATOR,
    STOCK_EMULATOR,
    GuestSpec,
)

# QEMU drops all TLB entries when the PKRU register changes, which Linux does when it runs a kernel
# thread: with protection keys hardly a stale translation would last.
TCG_CPU = "max,-pku"
# It is built without firmware; Debian's emulator has some. No option ROM for network cards. No
# CD-ROM without a disk either: for that, this firmware waits half a minute (AHCI says since QEMU
# 8.1 that a command failed in a way that SeaBIOS knows since 1.16.3).
_FIRMWARE = ("-L", "/usr/share/seabios", "-L", "/usr/share/qemu", "-nic", "none", "-nodefaults")
_SUMMARY = re.compile(r"^tlb-check: summary .*\bevents=(\d+)", re.MULTILINE)


def is_checking(spec: GuestSpec) -> bool:
    """Say whether the guest runs on the emulator that checks accesses."""
    return spec.emulator == CHECKING_EMULATOR


def is_ours(spec: GuestSpec) -> bool:
    """Say whether the guest runs on the emulator of `make emulator`, which has no KVM."""
    return spec.emulator in (CHECKING_EMULATOR, BUILT_EMULATOR)


def program(name: str) -> str:
    """Return the path of the QEMU program or say what to install."""
    if name in (CHECKING_EMULATOR, BUILT_EMULATOR):
        built = paths.built(f"qemu/build/{DEFAULT_EMULATOR}")
        if not built.is_file():
            raise Failure(f"the {name} emulator is not there: {remedies.made('emulator')}")
        return str(built)
    found = paths.find_program(DEFAULT_EMULATOR if name == STOCK_EMULATOR else name)
    if found is None:
        how = remedies.system("qemu-system-x86")
        raise Failure(f"{name} is missing: {how}, or name another with --emulator")
    return found


def cpu_model(spec: GuestSpec, accel: str) -> str:
    """Return the value of QEMU's -cpu, empty for virtme's own choice."""
    return spec.cpu_model or (TCG_CPU if accel == "tcg" else "")


def options(spec: GuestSpec) -> list[str]:
    """Return what the emulator of `make emulator` needs, and the words that make it check."""
    if not is_checking(spec):
        return list(_FIRMWARE) if is_ours(spec) else []
    check = ["tlb-check", "id=check0"]
    symbols = system_map(paths.kernel_image(spec.kernel))
    if symbols is not None:
        check.append("symbols=" + str(symbols).replace(",", ",,"))
    if spec.check:
        check.append(spec.check)
    return [*_FIRMWARE, "-object", ",".join(check)]


def warning(spec: GuestSpec, log: Path) -> str:
    """Return what to tell the user of a run whose kernel told the checker nothing, else ''."""
    if not is_checking(spec):
        return ""
    found = _SUMMARY.findall(log.read_text(encoding="utf-8", errors="replace"))
    if not found or int(found[-1]):
        return ""
    return (
        "this kernel did not say which frames it frees, so use after free was not looked for:"
        " give --kernel debug or plain (docs/emulator.md)"
    )


def kernel_arguments(spec: GuestSpec) -> list[str]:
    """Return what the kernel must be told: functions are found by their linked addresses."""
    return ["nokaslr"] if is_checking(spec) else []


def system_map(image: Path) -> Path | None:
    """Return the symbols of a kernel in its build folder, None when it lies elsewhere."""
    if len(image.parents) < 4:
        return None
    found = image.parents[3] / "System.map"
    return found if found.is_file() else None
