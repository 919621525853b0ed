# SPDX-License-Identifier: GPL-2.0-only
"""The manual pages are well formed and name every option that there is."""

import argparse
import importlib
import shutil
import subprocess
from pathlib import Path

import pytest

from ceasefire.__main__ import VERBS, Verb, verb_parser

PAGES = [f"ceasefire-{verb.name}.1" for verb in VERBS] + ["ceasefire.1"]


def long_options(parser: argparse.ArgumentParser) -> list[str]:
    return [
        option
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and option != "--help"
    ]


@pytest.mark.parametrize(
    "verb", [v for v in VERBS if v.name != "bench"], ids=lambda verb: verb.name
)
def test_every_option_is_in_the_page(verb: Verb, root: Path) -> None:
    page = (root / "man" / f"ceasefire-{verb.name}.1").read_text(encoding="utf-8")
    module = importlib.import_module(verb.module)
    for option in long_options(verb_parser(verb, module)):
        assert f"Fl {option[1:]}" in page, option


@pytest.mark.parametrize("name", PAGES)
def test_page_is_well_formed(name: str, root: Path) -> None:
    mandoc = shutil.which("mandoc")
    if mandoc is None:
        pytest.skip("mandoc is not installed")
    done = subprocess.run(
        [mandoc, "-Tlint", "-W", "warning", root / "man" / name],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == ""
