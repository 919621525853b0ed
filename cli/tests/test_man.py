# SPDX-License-Identifier: GPL-2.0-only
"""The manual pages are well formed, have the usual sections and name every option."""

import argparse
import importlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ceasefire.__main__ import VERBS, Verb, verb_parser

MAN = Path(__file__).resolve().parents[2] / "man"
COMMANDS = [f"ceasefire-{verb.name}.1" for verb in VERBS] + ["ceasefire.1"]
PAGES = sorted(path.name for path in MAN.iterdir() if path.name != "meson.build")


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


def test_every_command_has_a_page() -> None:
    assert {name for name in PAGES if name.endswith(".1")} == set(COMMANDS)


def headings(name: str) -> list[str]:
    text = (MAN / name).read_text(encoding="utf-8")
    return re.findall(r'^\.S[hH] "?(.*?)"?$', text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_the_usual_sections(name: str) -> None:
    usual = ["NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "EXIT STATUS", "EXAMPLES"]
    found = headings(name)
    assert [heading for heading in found if heading in usual] == usual
    assert found[-1] == "SEE ALSO"


@pytest.mark.parametrize("name", [name for name in PAGES if name.endswith(".2const")])
def test_constant_has_the_sections_of_linux_man_pages(name: str) -> None:
    usual = ["NAME", "LIBRARY", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "STANDARDS"]
    found = headings(name)
    assert [heading for heading in found if heading in usual] == usual
    assert found[-2:] == ["EXAMPLES", "SEE ALSO"]


@pytest.mark.parametrize("name", PAGES)
def test_our_pages_are_referred_to_by_their_section(name: str) -> None:
    text = (MAN / name).read_text(encoding="utf-8").replace("\\-", "-")
    references = re.findall(r"^\.Xr (\S+) (\S+)|^\.BR (\S+) \((\w+)\)", text, re.MULTILINE)
    ours = {page.rpartition(".")[0] for page in PAGES}
    for words in references:
        title, section = [word for word in words if word]
        assert title not in ours or f"{title}.{section}" in PAGES


@pytest.mark.parametrize("name", PAGES)
def test_page_is_well_formed(name: str, root: Path) -> None:
    mandoc = shutil.which("mandoc")
    if mandoc is None:
        pytest.skip("mandoc is not installed")
    done = subprocess.run(
        [mandoc, "-Tlint", "-W", "warning", root / "man" / name],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout == ""
