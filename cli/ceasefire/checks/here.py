# SPDX-License-Identifier: GPL-2.0-only
"""Checks of the running kernel and of the preload library."""

import os
import platform
import subprocess
from pathlib import Path

from ceasefire import counters, modes, paths, remedies
from ceasefire.checks import processor, services
from ceasefire.checks.base import Check, check
from ceasefire.errors import Failure
from ceasefire.launch import prctl, preload
from ceasefire.text import lines_of

_MORSELS = Path("/sys/kernel/mm/ceasefire/morsel/enabled")
_TRIAL_LIMIT = 30.0
_VMSTAT_FIX = "build the kernel with CONFIG_DEBUG_TLBFLUSH=y"


def checks() -> list[Check]:
    """Check whether programs can use FPR here and now."""
    there = modes.FPR.present()
    switch = prctl.available()
    found = [
        check(
            "kernel",
            there,
            f"{platform.release()}, {'has' if there else 'without'} FPR",
            "boot the ceasefire kernel, or use `ceasefire try`",
        ),
        check(
            "switch",
            modes.FPR.enabled(),
            "on" if modes.FPR.enabled() else "off" if there else "not there",
            f"echo 1 > {modes.FPR.switch}" if there else "comes with the kernel",
        ),
        _tag_memory(there),
        _event_counters(),
        check(
            "whole programs",
            switch,
            "prctl(PR_FPR)" if switch else "no prctl(PR_FPR), `ceasefire run` preloads the library",
            "boot a newer ceasefire kernel",
            needed=False,
        ),
        preload_check(needed=not switch),
        *(_other(m) for m in modes.MECHANISMS if m != modes.FPR),
        *processor.checks(),
        _morsels(),
        *services.checks(),
    ]
    return found


def _other(mechanism: modes.Mechanism) -> Check:
    """Check one that FPR does not need."""
    name = mechanism.title
    if not mechanism.present():
        return check(name, False, "not there", "comes with the kernel", needed=False)
    if not mechanism.enabled():
        fix = f"echo {mechanism.words[1]} > {mechanism.switch}"
        return check(name, False, "off", fix, needed=False)
    found, _, fix = mechanism.obstacle().partition(": ")
    whom = "on for all programs" if mechanism.for_all() else "on for programs that ask"
    return check(name, not found, f"{whom}, but {found}" if found else whom, fix, needed=False)


def _morsels() -> Check:
    """Check whether programs may make morsels; no mechanism that others get without asking."""
    try:
        state = _MORSELS.read_text(encoding="ascii").strip()
    except OSError:
        return check("morsels", False, "not there", "comes with the kernel", needed=False)
    on = "[never]" not in state
    whom = "on for programs that ask" if on else "off"
    return check("morsels", on, whom, f"echo ask > {_MORSELS}", needed=False)


def _tag_memory(there: bool) -> Check:
    if not there:
        return check("tag memory", False, "not there", "comes with the kernel", needed=False)
    size = counters.gauges().get("tag_bytes", 0)
    state = f"{size >> 10} KiB" if size else "none yet, taken at the first use"
    return check("tag memory", True, state, "", needed=False)


def _event_counters() -> Check:
    names = counters.available()
    found = f"{len(names)} of TLB and ceasefire" if names else "none"
    return check("counters", counters.RECEIVED in names, found, _VMSTAT_FIX, needed=False)


def preload_check(*, needed: bool) -> Check:
    """Run a tiny program under the preload library and see that it did not disturb it.

    needed: nothing else makes programs use FPR; otherwise only --path takes it.
    """
    library = paths.preload_library()
    how = remedies.tools("libceasefire-preload")
    if library is None:
        return check("preload library", False, "not there", how, needed=needed)
    problem = preload_problem(library)
    fix = f"{how}, with the compiler of this machine"
    return check("preload library", not problem, problem or str(library), fix, needed=needed)


def preload_problem(library: Path) -> str:
    """Return what is wrong with the library, empty when a program runs well under it."""
    program = paths.find_program("cat")
    text = b"ceasefire\n"
    try:
        extra = preload.variables(library, [], [])
        done = subprocess.run(
            [program or "cat"],
            input=text,
            capture_output=True,
            timeout=_TRIAL_LIMIT,
            env={**os.environ, **extra},
            check=False,
        )
    except (OSError, Failure, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode != 0 or done.stdout != text:
        return f"a program under it ended with status {done.returncode}"
    if done.stderr:
        return lines_of(done.stderr)[0]
    return ""
