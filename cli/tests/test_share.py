# SPDX-License-Identifier: GPL-2.0-only
"""What goes with the counters: the dashboard, the script for bpftrace, the units, the recipes.

Each of them names metrics, tracepoints and options; these have to exist.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ceasefire.metrics import families, text

# Fields of the tracepoints of Linux 6.12 that are used here: include/trace/events/{csd,tlb}.h.
_POINTER, _LONG, _INT = "void *", "unsigned long", "int"
LINUX = {
    "csd:csd_queue_cpu": {"cpu": _INT, "callsite": _POINTER, "func": _POINTER, "csd": _POINTER},
    "csd:csd_function_entry": {"func": _POINTER, "csd": _POINTER},
    "csd:csd_function_exit": {"func": _POINTER, "csd": _POINTER},
    "tlb:tlb_flush": {"reason": _INT, "pages": _LONG},
}
SCRIPT = "share/bpftrace/interrupted-by.bt"
# As the kernel has it in events/*/*/format: a name of a program, a list of fields.
FORMAT = 'name: {}\nID: {}\nformat:\n{}\n\nprint fmt: ""\n'
COMMON = ("unsigned short common_type", "unsigned char common_flags", "int common_pid")
# Nothing of this machine: bpftrace finds the tracepoints in what is mounted for it alone.
NAMESPACE = 'mount --bind "$1" /sys/kernel/debug && shift && exec "$@"'


@pytest.fixture
def exported(whole_kernel: Path) -> set[str]:
    """Return the names of all samples of a kernel that has everything."""
    del whole_kernel  # what is read
    return set(re.findall(r"^(ceasefire_\w+)", text.openmetrics(families.collect()), re.MULTILINE))


def metrics_in(content: str) -> set[str]:
    return set(re.findall(r"\bceasefire_\w+", content))


@pytest.fixture
def dashboard(root: Path) -> dict[str, Any]:
    content = (root / "share/grafana/ceasefire.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(content)
    return found


def test_dashboard_asks_for_metrics_that_exist(
    dashboard: dict[str, Any], exported: set[str]
) -> None:
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    variables = [v["definition"] for v in dashboard["templating"]["list"] if "definition" in v]
    asked = [metrics_in(expression) for expression in (*expressions, *variables)]
    assert all(asked)
    assert set().union(*asked) - exported == set()
    # What everybody has, and what only these counters tell.
    for name in ("tlb_interrupts_total", "debts_paid_total", "latr_late_cpus_total"):
        assert f"ceasefire_{name}" in set().union(*asked)
    # Of a counter only its rate means anything.
    for expression in expressions:
        for name in re.findall(r"(?<!rate\()\bceasefire_\w+", expression):
            assert not name.endswith("_total"), expression


@pytest.mark.usefixtures("whole_kernel")
def test_dashboard_has_labels_that_exist(dashboard: dict[str, Any]) -> None:
    labels = {
        name: sample.label[0]
        for family in families.collect()
        for name in (family.name, f"{family.name}_total")
        for sample in family.samples
        if sample.label
    }
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            for by in re.findall(r"by \((\w+)\)", target["expr"]):
                (name,) = metrics_in(target["expr"])
                assert labels[name] == by
                assert target["legendFormat"] == f"{{{{{by}}}}}"


def test_dashboard_is_whole(dashboard: dict[str, Any]) -> None:
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    places = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert panel["type"] == "row" or panel["description"].endswith(".")
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert x < 24
                assert (x, y) not in places
                places.add((x, y))


def test_page_names_metrics_that_exist(root: Path, exported: set[str]) -> None:
    page = (root / "docs/metrics.md").read_text(encoding="utf-8")
    named = metrics_in(page)
    assert len(named) > 15
    assert named - exported == set()


def own_tracepoints(root: Path) -> set[str]:
    header = (root / "kernel/src/include/trace/events/ceasefire.h").read_text(encoding="utf-8")
    return {f"ceasefire:{name}" for name in re.findall(r"^TRACE_EVENT\((\w+),", header, re.M)}


def test_recipes_use_tracepoints_that_exist(root: Path) -> None:
    page = (root / "docs/metrics.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    used = {f"{a}:{b}" for a, b in re.findall(r"\b(tlb|csd|ceasefire):(\w+)", code)}
    assert len(used) > 5
    assert used - own_tracepoints(root) - set(LINUX) == set()
    for name in re.findall(r"(?:share|docs)/[\w./-]+\w", page):
        assert (root / name).exists(), name


def test_script_uses_fields_that_exist(root: Path) -> None:
    script = (root / SCRIPT).read_text(encoding="utf-8")
    probes = re.findall(r"^tracepoint:(\S+)\n((?:.*\n)*?)\}", script, re.MULTILINE)
    assert {name for name, _ in probes} == set(LINUX)
    for name, body in probes:
        assert set(re.findall(r"args->(\w+)", body)) <= set(LINUX[name]), name


def format_of(name: str, number: int, fields: dict[str, str]) -> str:
    lines = []
    offset = 0
    for declared in (*COMMON, *(f"{kind} {field}" for field, kind in fields.items())):
        kind = declared.rpartition(" ")[0]
        size = {_INT: 4, "unsigned short": 2, "unsigned char": 1}.get(kind, 8)
        offset = (offset + size - 1) // size * size
        lines.append(f"\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:0;")
        offset += size
    return FORMAT.format(name, number, "\n".join(lines))


def test_bpftrace_accepts_the_script(root: Path, tmp_path: Path) -> None:
    program = shutil.which("bpftrace")
    can = ["unshare", "-m", "sh", "-c", NAMESPACE, "sh", str(tmp_path)]
    rights = os.geteuid() == 0 and subprocess.run([*can, "true"], check=False).returncode == 0
    if program is None or not rights:
        pytest.skip("bpftrace is not installed, or no rights for a mount of its own")
    folder = tmp_path / "tracing"
    for number, (name, fields) in enumerate(LINUX.items(), 1):
        place = folder / "events" / name.replace(":", "/")
        place.mkdir(parents=True)
        (place / "format").write_text(format_of(name.partition(":")[2], number, fields))
    (folder / "available_events").write_text("".join(f"{name}\n" for name in LINUX))

    def says(script: Path) -> str:
        done = subprocess.run(
            [*can, program, "-d", script], capture_output=True, text=True, timeout=600, check=False
        )
        assert "tracepoint:csd:csd_queue_cpu" in done.stdout
        # It complains of limits of this machine in a line that has no place.
        return "\n".join(re.findall(r"^.*\.bt:[0-9]+.*$", done.stdout + done.stderr, re.M))

    assert says(root / SCRIPT) == ""
    wrong = tmp_path / "wrong.bt"
    wrong.write_text((root / SCRIPT).read_text(encoding="utf-8").replace("args->csd", "args->dsc"))
    assert "does not contain a field named 'dsc'" in says(wrong)


def test_units_are_well_formed(root: Path, tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd is not installed")
    units = tmp_path / "etc/systemd/system"
    system = tmp_path / "usr/lib/systemd/system"
    program = tmp_path / "usr/local/bin/ceasefire"
    for folder in (units, system, program.parent):
        folder.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for target in ("basic", "shutdown", "sysinit", "timers"):
        (system / f"{target}.target").write_text(f"[Unit]\nDescription={target}\n")
    names = sorted(path.name for path in (root / "share/systemd").iterdir())
    assert names == ["ceasefire-textfile.service", "ceasefire-textfile.timer"]
    for name in names:
        shutil.copy(root / "share/systemd" / name, units)
    words = [verify, "verify", "--man=no", f"--root={tmp_path}", *names]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_unit_writes_where_it_may(root: Path) -> None:
    service = (root / "share/systemd/ceasefire-textfile.service").read_text(encoding="utf-8")
    lines = dict(line.split("=", 1) for line in service.split("\n") if re.match(r"\w+=", line))
    command = lines["ExecStart"].split()
    assert command[:3] == ["ceasefire", "stat", "--textfile"]
    folder = str(Path(command[3]).parent)
    assert lines["ReadWritePaths"] == lines["ConditionPathIsDirectory"] == folder
    page = (root / "docs/metrics.md").read_text(encoding="utf-8")
    assert page.count(f"ceasefire stat --textfile {command[3]}") == 2
