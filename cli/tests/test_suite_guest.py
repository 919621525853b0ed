# SPDX-License-Identifier: GPL-2.0-only
"""A suite that is really measured: in a guest, twice into the same folder."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ceasefire.bench.figures.compare import comparisons
from ceasefire.bench.results import store

pytestmark = pytest.mark.guest

Runner = Callable[..., "subprocess.CompletedProcess[str]"]


def test_run_measures_and_goes_on(ceasefire: Runner, tmp_path: Path) -> None:
    command = ["bench", "run", "munmap-2", "--cpus", "2", "--seconds", "1", "--rounds", "2"]
    command += ["--modes", "off,fpr,fpr+sharers"]
    done = ceasefire(*command, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "munmap-2" in done.stdout
    found = store.read(tmp_path)
    assert len(found.samples) == 6 and not any(s.failed or s.wrong for s in found.samples)
    both = comparisons(found)
    assert [(c.mode, c.rounds) for c in both] == [("fpr", 2), ("fpr+sharers", 2)]
    for compared in both:
        # What FPR leaves over is a fraction, whatever else this machine does.
        assert compared.shootdowns is not None and compared.shootdowns.share is not None
        assert compared.shootdowns.share < 0.2
    # The processes have both.
    for sample in found.samples:
        assert (sample.counters["sharers_fill"] > 0) == ("sharers" in sample.mode)
        assert (sample.counters["fpr_map"] > 0) == ("fpr" in sample.mode)

    # As if it had been interrupted before the last sample.
    lines = found_lines(tmp_path)
    (tmp_path / store.LINES).write_text("".join(lines[:-1]), encoding="utf-8")
    done = ceasefire(*command, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "5 samples are there already" in done.stderr
    kinds = [json.loads(line)["type"] for line in found_lines(tmp_path)[len(lines) - 1 :]]
    assert kinds.count("sample") == 1


def found_lines(folder: Path) -> list[str]:
    return (folder / store.LINES).read_text(encoding="utf-8").splitlines(keepends=True)
