# SPDX-License-Identifier: GPL-2.0-only
"""The recipes for perf in docs/metrics.md, each run on the kernel `run` while a program flushes."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.driver.traced import build, run_traced

from ceasefire.paths import build_dir
from ceasefire.vm import GuestSpec
from ceasefire.vm.spec import parse_disk

LIMIT = 2400.0
MAPPED = "/run/disk/0/mapped"
# Words of a recipe, and what it has to print.
PRINTS = {
    "perf report": r"shootdowns",
    "ceasefire:fpr_flush,ceasefire:fpr_evict": r"ceasefire:fpr_flush\(",
    "ceasefire:sharers_flush,": r"ceasefire:sharers_flush(_all)?\(",
    "perf stat": r"[1-9][0-9,]*\s+ceasefire:fpr_skip",
    "perf script": r"[0-9]+ dirty",
}


def recipes(root: Path) -> list[str]:
    """Return the commands of the section on perf, each block as a whole, in a tenth of the time."""
    page = (root / "docs/metrics.md").read_text(encoding="utf-8")
    section = page.partition("\n## perf\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    # Two recipes of a block are apart if the second one does not read what the first one wrote.
    found: list[str] = []
    for block in blocks:
        lines = block.strip().split("\n")
        found += [block] if any(" -i " in line for line in lines) else lines
    return [recipe.replace("sleep 10", "sleep 3") for recipe in found]


def test_every_recipe_is_known(root: Path) -> None:
    found = recipes(root)
    assert len(found) == len(PRINTS)
    for words in PRINTS:
        assert sum(words in recipe for recipe in found) == 1, words


@pytest.mark.guest
@pytest.mark.traced
@pytest.mark.long
def test_recipes_of_perf(root: Path, started: str, data: Path, tmp_path: Path) -> None:
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    program = build(data / "shootdowns.c", tmp_path / "shootdowns")
    # Short, so that each recipe sees all of it, also on a busy machine.
    short = f"while [ ! -e /run/over ]; do {program} {MAPPED} file=20 dirty=10 >/dev/null; done"
    # One each: what nobody else holds needs no skip in a process that has both.
    loads = [
        f"{started} run --mode {mode} -- sh -c {shlex.quote(short)} &"
        for mode in ("fpr", "sharers")
    ]
    script = [
        "cd /tmp",
        f"dd if=/dev/zero of={MAPPED} bs=4096 count=4 2>/dev/null",
        *loads,
        "sleep 5",
    ]
    for number, recipe in enumerate(recipes(root)):
        script += [f"echo '= {number}'", f"{{ {recipe.rstrip()}\n}} 2>&1", 'echo "status $?"']
    script += ["touch /run/over", "wait"]
    spec = GuestSpec(
        timeout=LIMIT,
        disks=(parse_disk("brd-ext4:32M"),),
        environment=(("CEASEFIRE_BUILD", str(build_dir())),),
    )
    result = run_traced(spec, ["sh", "-c", "\n".join(script)])
    assert result.check() == 0, result.stderr.decode()
    parts = re.split(r"^= [0-9]+\n", result.stdout.decode(), flags=re.MULTILINE)[1:]
    for recipe, part in zip(recipes(root), parts, strict=True):
        assert "status 0" in part, part
        (expected,) = [prints for words, prints in PRINTS.items() if words in recipe]
        assert re.search(expected, part), f"{recipe}: {part}"
