# SPDX-License-Identifier: GPL-2.0-only
"""The variables that a job's command sees, on the host and in a guest alike."""

import os
import sys
from pathlib import Path
from string import Template

from ceasefire import paths
from tests.driver.suites import Job

ROOT = Path(__file__).resolve().parents[2]


def variables(job: Job) -> dict[str, str]:
    """Return what a job gets on top of the inherited environment.

    REPO, BUILD, LINUX, TOOLS and SELFTESTS are directories, PYTHON the interpreter; SELFTESTS is
    first on PATH, so that a suite names a test program by its bare name. tlbcheck is there, too.
    """
    build = paths.build_dir()
    selftests = build / "tools" / "selftests"
    programs = [selftests, build / "tools" / "emulator" / "guest", build / "venv" / "bin"]
    search = [*map(str, programs), os.environ.get("PATH", os.defpath)]
    values = {
        "REPO": str(ROOT),
        "BUILD": str(build),
        "LINUX": str(paths.linux_dir()),
        "TOOLS": str(build / "tools"),
        "SELFTESTS": str(selftests),
        "PYTHON": sys.executable,
        "PATH": os.pathsep.join([*search, "/usr/sbin", "/sbin"]),
        "CEASEFIRE_BUILD": str(build),
    }
    given = {name: Template(text).safe_substitute(values) for name, text in job.env.items()}
    return {**values, **given}
