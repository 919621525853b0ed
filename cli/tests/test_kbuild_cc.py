# SPDX-License-Identifier: GPL-2.0-only
"""The compiler of kernels: what takes in another file is compiled anew when that one changes."""

import os
import subprocess
from pathlib import Path

import pytest

TEXTS = {"piggy.S": '.incbin "blob"\n', "configs.c": 'asm(".incbin \\"blob\\"");\n'}


@pytest.mark.parametrize("name", TEXTS)
def test_an_object_has_what_is_there_now(root: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TEXTS[name])
    environment = {**os.environ, "CCACHE_DIR": str(tmp_path / "cache"), "CCACHE_DEPEND": "1"}
    objects = []
    for content in (b"one", b"two"):
        (tmp_path / "blob").write_bytes(content)
        command = [str(root / "scripts/kbuild-cc"), "-Wp,-MMD,dep", "-c", name, "-o", "object"]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
        objects.append((tmp_path / "object").read_bytes())
    assert b"one" in objects[0] and b"two" in objects[1]


def test_others_are_kept(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file.c").write_text("int one;\n")
    environment = {**os.environ, "CCACHE_DIR": str(tmp_path / "cache"), "CCACHE_DEPEND": "1"}
    for _ in range(2):
        command = [str(root / "scripts/kbuild-cc"), "-Wp,-MMD,dep", "-c", "file.c", "-o", "object"]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    shown = subprocess.run(
        ["ccache", "--print-stats"], env=environment, check=True, capture_output=True, text=True
    )
    assert "direct_cache_hit\t1" in shown.stdout
