# SPDX-License-Identifier: GPL-2.0-only
"""Each protection that can be switched off has an attack that notices."""

import re

from tests.driver.environment import ROOT
from tests.driver.suites import load


def _mutations() -> set[str]:
    header = (ROOT / "kernel/src/mm/ceasefire/mutate.h").read_text(encoding="utf-8")
    return set(re.findall(r"^\tM\((\w+)\)", header, re.MULTILINE))


def test_each_mutation_has_an_attack() -> None:
    attacked = {
        pair.name
        for suite in load(ROOT / "tests" / "suites")
        for pair in suite.mutations
        if not suite.long
    }
    assert _mutations() <= attacked


def test_each_mutation_is_in_the_table_of_attacks() -> None:
    attacks = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    assert not {name for name in _mutations() if f"`{name}`" not in attacks}
