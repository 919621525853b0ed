# SPDX-License-Identifier: GPL-2.0-only
"""kernel/models/run keeps the verdict of a search, and of nothing but that search."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.driver.environment import ROOT

LIMIT = 600


class Models:
    """A copy of the models, and a cache folder that nobody else has."""

    def __init__(self, box: Path) -> None:
        self.folder = box / "models"
        self.cache = box / "cache"
        shutil.copytree(ROOT / "kernel" / "models", self.folder)

    def run(self, *cases: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.folder / "run", *cases],
            check=False,
            env=os.environ | {"XDG_CACHE_HOME": str(self.cache)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )

    def kept(self) -> list[Path]:
        return sorted((self.cache / "ceasefire" / "models").iterdir())


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(tmp_path)


def test_second_run_takes_what_the_first_has_found(models: Models) -> None:
    first = models.run("keys", "recycle_keyed")
    assert first.returncode == 0, first.stdout + first.stderr
    assert len(models.kept()) == 2
    # A sign that it is read: what is kept has another number of states.
    for kept in models.kept():
        kept.write_text(kept.read_text().replace(" states, stored", "7 states, stored"))
    second = models.run("keys", "recycle_keyed")
    assert second.returncode == 0
    assert second.stdout != first.stdout


def test_another_model_is_searched(models: Models) -> None:
    assert models.run("keys").returncode == 0
    (before,) = models.kept()
    model = models.folder / "recycle.pml"
    model.write_text(model.read_text().replace("assert(!(secret && v_key))", "assert(false)"))
    wrong = models.run("keys")
    assert wrong.returncode == 1
    assert "breaks, but it should be that it holds" in wrong.stdout
    assert models.kept() == [before]


def test_other_expectation_is_searched_again(models: Models) -> None:
    assert models.run("keys").returncode == 0
    cases = models.folder / "cases"
    text = cases.read_text().replace(
        "keys\t\t\trecycle.pml\tholds", "keys\t\t\trecycle.pml\tbreaks"
    )
    assert text != cases.read_text()
    cases.write_text(text)
    wrong = models.run("keys")
    assert wrong.returncode == 1
    assert "holds, but it should be that it breaks" in wrong.stdout


def test_the_long_list_is_another(models: Models) -> None:
    (models.folder / "cases-long").write_text("slow\trecycle.pml\tholds\n")
    long = models.run("--long")
    assert long.returncode == 0, long.stdout + long.stderr
    assert "1..1\n" in long.stdout
    assert "ok 1 recycle.slow\n" in long.stdout
    named = models.run("slow", "keys")
    assert "1..2\n" in named.stdout


def test_two_clones_share_what_was_found(models: Models, tmp_path: Path) -> None:
    assert models.run("keys").returncode == 0
    other = Models(tmp_path / "other")
    other.cache = models.cache
    assert other.run("keys").returncode == 0
    assert len(models.kept()) == 1
