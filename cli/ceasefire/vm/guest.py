# SPDX-License-Identifier: GPL-2.0-only
"""Boots one guest, waits for it within its time limit, and judges the run.

The guest is a process group of its own that is killed as a whole when the time is up, on Ctrl-C
and on SIGTERM or SIGHUP, so that no QEMU survives. Should this process be killed outright, the
kernel ends virtme-run and QEMU after it (setpriv --pdeathsig).
"""

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ceasefire import paths
from ceasefire.errors import GuestError, GuestTimeout, Interrupted
from ceasefire.output import progress
from ceasefire.process_group import keep_nice, kill_group, signals_held, signals_raise
from ceasefire.sizes import parse_size
from ceasefire.vm import accel, emulator, initramfs, klog
from ceasefire.vm.command import (
    RUN,
    empty_disk,
    emulator_script,
    guest_script,
    memory_command,
    virtme_command,
)
from ceasefire.vm.files import new_log, run_directory
from ceasefire.vm.pulse import Pulse
from ceasefire.vm.spec import GuestSpec, check_spec
from ceasefire.vm.start import path_for_init
from ceasefire.vm.streams import LOG_LIMIT, OUTPUT_LIMIT, Pump, Sink, Watched

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "TERM", "NO_COLOR")
_KILL_WAIT = 10.0
_POLL = 0.5
_TAIL_LINES = 15
_BOOT_ATTEMPTS = 3


@dataclass(frozen=True)
class Streams:
    """Where the output of a guest goes. limit: bytes of `out` and of `err`, None for any number."""

    out: Sink
    err: Sink
    console: Path
    messages: Path
    limit: int | None


@dataclass(frozen=True)
class GuestResult:
    """What came of a guest run. `status` is the command's, None when it did not end.

    cut: what the guest was ended for printing too much of. hung: why it was taken for dead.
    """

    status: int | None
    stdout: bytes
    stderr: bytes
    log: Path
    verdict: klog.LogVerdict
    timed_out: bool
    seconds: float
    accel: str
    timeout: float
    cut: str = ""
    hung: str = ""

    def check(self) -> int:
        """Return the command's exit status; raise when the guest or its kernel misbehaved."""
        if not self.verdict.clean:
            raise GuestError(
                f"the guest's kernel complained (whole log: {self.log}):\n"
                f"{klog.describe(self.verdict)}"
            )
        if self.cut:
            raise GuestError(f"the guest printed {self.cut}, guest killed; log: {self.log}")
        if self.hung:
            raise GuestError(f"the guest hangs, {self.hung}, guest killed; log: {self.log}")
        if self.timed_out:
            raise GuestTimeout(f"no end after {self.timeout:g} s, guest killed; log: {self.log}")
        if self.status is None:
            what = "ended before its command did" if self.verdict.booted else "did not boot"
            detail = self.stderr.decode(errors="replace").strip() or _tail(self.log)
            raise GuestError(f"the guest {what} (whole log: {self.log}):\n{detail}")
        return self.status


def run_guest(
    spec: GuestSpec,
    command: Sequence[str],
    *,
    name: str = "vm",
    cwd: Path | None = None,
    stdout: Sink | None = None,
    stderr: Sink | None = None,
    stop: threading.Event | None = None,
    limit: int | None = OUTPUT_LIMIT,
) -> GuestResult:
    """Boot a guest, run the command in it as root, and return what came of it.

    name: first part of the name of the kernel log.
    stdout, stderr: get the command's output as it comes; without them it is in the result.
    stop: for threads that no signal reaches; the guest ends and Interrupted is raised soon after it
    is set. A guest ends with the thread that runs it.
    limit: bytes of output, and of error, for which the guest is ended; None where neither is kept.
    """
    check_spec(spec)
    chosen = accelerator(spec)
    where = Path.cwd() if cwd is None else cwd
    environment = tuple((n, os.environ[n]) for n in _PASSED_ON if n in os.environ)
    spec = replace(spec, accel=chosen, environment=environment + spec.environment)
    for _ in range(_BOOT_ATTEMPTS - 1):
        result = _boot(spec, command, name, where, (stdout, stderr), limit=limit, stop=stop)
        why = klog.emulator_failed(result.verdict) if chosen == "tcg" else ""
        if not why:
            return result
        progress(f"the emulator {why} during the boot, once more (log: {result.log})")
    return _boot(spec, command, name, where, (stdout, stderr), limit=limit, stop=stop)


def _boot(
    spec: GuestSpec,
    command: Sequence[str],
    name: str,
    where: Path,
    sinks: tuple[Sink | None, Sink | None],
    *,
    limit: int | None,
    stop: threading.Event | None,
) -> GuestResult:
    """Boot once; `spec.accel` is what to use by now."""
    log = new_log(name, ".klog")
    with run_directory("vm") as directory, signals_raise():
        script = directory / "guest.sh"
        script.write_text(guest_script(spec, command, where), "utf-8", "surrogateescape")
        qemu, messages = directory / "qemu", directory / "messages"
        text = emulator_script(emulator.program(spec.emulator), log, messages)
        qemu.write_text(text, encoding="utf-8", errors="surrogateescape")
        qemu.chmod(0o755)
        for index, disk in enumerate(spec.disks):
            if disk.kind == "empty":
                with empty_disk(directory, index).open("wb") as file:
                    file.truncate(parse_size(disk.argument))
        if spec.files:
            root = directory / "root.cpio"
            root.write_bytes(initramfs.archive(spec.files, script))
            words = memory_command(spec, spec.accel, root, qemu)
        else:
            visible = [*paths.needed_dirs(), where]
            modules = initramfs.modules(paths.kernel_image(spec.kernel))
            if modules:
                (directory / "modules.cpio").write_bytes(initramfs.loader(modules))
                initrd = ("-initrd", f"{RUN}/modules.cpio")
                spec = replace(spec, qemu_args=initrd + spec.qemu_args)
            quick = path_for_init(directory, tmpfiles=spec.tmpfiles)
            # What the user asks for comes last, so that it wins.
            spec = replace(spec, append=(*quick, *spec.append))
            words = virtme_command(spec, spec.accel, script, qemu, visible)
        out, err = bytearray(), bytearray()
        streams = Streams(sinks[0] or out.extend, sinks[1] or err.extend, log, messages, limit)
        started = time.monotonic()
        pulse = Pulse(log, spec.silence, spec.allow_log) if spec.silence else None
        ended, cut, hung = _supervise(words, directory, spec.timeout, streams, stop, pulse=pulse)
        seconds = time.monotonic() - started
        _end_log(log, messages, cut)
    with log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        verdict = klog.scan(lines, spec.allow_log)
    return GuestResult(
        *(verdict.status, bytes(out), bytes(err), log, verdict),
        *(not ended, seconds, spec.accel, spec.timeout),
        cut=cut,
        hung=hung,
    )


def accelerator(spec: GuestSpec, *, probe_again: bool = False) -> str:
    """Return 'kvm' or 'tcg': what the guest asks for, or KVM where a guest boots with it."""
    if spec.accel != "auto":
        return spec.accel
    if emulator.is_ours(spec):
        return "tcg"
    return "kvm" if accel.kvm_works(partial(_boots_with_kvm, spec), again=probe_again) else "tcg"


def _boots_with_kvm(spec: GuestSpec) -> bool:
    probe = GuestSpec(
        kernel=spec.kernel, emulator=spec.emulator, accel="kvm", timeout=accel.PROBE_LIMIT
    )
    try:
        return run_guest(probe, ["true"], name="kvm-probe", cwd=Path("/")).check() == 0
    except (GuestError, GuestTimeout):
        return False


def _supervise(
    words: Sequence[str],
    directory: Path,
    limit: float,
    streams: Streams,
    stop: threading.Event | None,
    *,
    pulse: Pulse | None,
) -> tuple[bool, str, str]:
    """Run QEMU; return whether it ended in time, what it printed too much of, why it hangs."""
    environment = dict(os.environ, TMPDIR=str(directory))
    watched = [
        Watched(streams.console, "on its console", LOG_LIMIT),
        Watched(streams.messages, "of messages of QEMU", LOG_LIMIT),
    ]
    process: subprocess.Popen[bytes] | None = None
    pumps: list[Pump] = []
    try:
        with signals_held():
            process = subprocess.Popen(
                words,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        keep_nice(process)
        assert process.stdout is not None and process.stderr is not None
        pumps = [
            Pump(os.dup(stream.fileno()), sink, what, streams.limit)
            for stream, sink, what in (
                (process.stdout, streams.out, "on standard output"),
                (process.stderr, streams.err, "on standard error"),
            )
        ]
        process.stdout.close()
        process.stderr.close()
        for pump in pumps:
            pump.start()
        ended, hung = _wait(process, limit, stop, [*pumps, *watched], pulse)
    finally:
        if process is not None:
            kill_group(process, _KILL_WAIT)
        for pump in pumps:
            if pump.ident is not None:
                pump.join(_KILL_WAIT)
    for pump in pumps:
        if pump.error is not None:
            raise pump.error
    streamed: list[Pump | Watched] = [*watched, *pumps]
    cut = next((stream.text() for stream in streamed if stream.cut), "")
    for file in watched:
        file.end()
    return ended, cut, hung


def _wait(
    process: subprocess.Popen[bytes],
    limit: float,
    stop: threading.Event | None,
    streams: Sequence[Pump | Watched],
    pulse: Pulse | None,
) -> tuple[bool, str]:
    """Return whether the wait ended in time, and why the guest is dead if it is.

    Raises Interrupted if told to stop.
    """
    end = time.monotonic() + limit
    while (left := end - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(left, _POLL))
            return True, ""
        if stop is not None and stop.is_set():
            raise Interrupted
        if any(stream.cut for stream in streams):
            return True, ""
        if pulse is not None and (hung := pulse.lost(process.pid)):
            return True, hung
    return False, ""


def _end_log(log: Path, messages: Path, cut: str) -> None:
    """Put what QEMU had to say at the end of the kernel log, and that something is missing."""
    note = f"\nceasefire vm: cut here: the guest printed {cut} and was ended\n" if cut else ""
    with log.open("ab") as end:
        if messages.exists():
            end.write(messages.read_bytes())
        end.write(note.encode())


def _tail(log: Path) -> str:
    lines = log.read_bytes().decode(errors="replace").rstrip("\n").split("\n")
    return "\n".join(lines[-_TAIL_LINES:]) or "(the kernel printed nothing)"
