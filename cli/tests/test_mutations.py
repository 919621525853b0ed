# SPDX-License-Identifier: GPL-2.0-only
"""Each protection that can be switched off has an attack that notices, or is known to have none."""

import re

from tests.driver.environment import ROOT
from tests.driver.suites import load

# docs/results.md says so, too.
UNNOTICED = {"fpr_evict_youngest"}


def _mutations() -> set[str]:
    header = (ROOT / "kernel/src/mm/ceasefire/internal.h").read_text(encoding="utf-8")
    return set(re.findall(r"^\tM\((\w+)\)", header, re.MULTILINE))


def test_each_mutation_has_an_attack() -> None:
    attacked = {
        pair.name
        for suite in load(ROOT / "tests" / "suites")
        for pair in suite.mutations
        if not suite.long
    }
    assert _mutations() - attacked == UNNOTICED


def test_results_name_those_without() -> None:
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in results for name in UNNOTICED)


def test_each_mutation_is_in_the_table_of_attacks() -> None:
    attacks = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    missing = {name for name in _mutations() - UNNOTICED if f"`{name}`" not in attacks}
    assert not missing
