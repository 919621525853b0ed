# SPDX-License-Identifier: GPL-2.0-only
"""Each protection that can be switched off has an attack that notices."""

import re

from tests.driver.environment import ROOT
from tests.driver.suites import load


def _mutations() -> set[str]:
    header = (ROOT / "kernel/src/mm/ceasefire/mutate.h").read_text(encoding="utf-8")
    return set(re.findall(r"^\tM\((\w+)\)", header, re.MULTILINE))


# Attacks that no run of CI can have, each with the reason.
KEEPS = "what it breaks is kept for longer and reached by nobody, which takes minutes to see"
ONLY_LONG = {
    "abis_again_huge": "a page of 1 GiB needs a guest of 2.5 GiB",
    "fpr_exec_kept": KEEPS,
    "fpr_keep_tags": KEEPS,
    "fpr_no_drain_kswapd": KEEPS,
    "fpr_no_drain_limit": KEEPS,
    "fpr_no_shrinker": KEEPS,
    "fpr_no_total_limit": KEEPS,
    "cf_release_waits": "its guest hangs for minutes, and starves what runs beside it",
    "cf_held_late": "what waits too long is told from what waits by chance on an idle machine",
    "morsel_cut_none": "a read has to fall between two reads of an entry, a few instructions apart",
    "morsel_upper_stays": "pages of 1 GiB need a guest of 10 GiB",
    "morsel_walked": "pages of 1 GiB need a guest of 10 GiB",
}


def test_each_mutation_has_an_attack() -> None:
    suites = load(ROOT / "tests" / "suites")
    short = {pair.name for suite in suites if not suite.long for pair in suite.mutations}
    long = {pair.name for suite in suites if suite.long for pair in suite.mutations}
    assert _mutations() - short == set(ONLY_LONG)
    assert set(ONLY_LONG) <= long


def test_each_mutation_is_in_the_table_of_attacks() -> None:
    attacks = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    assert not {name for name in _mutations() if f"`{name}`" not in attacks}
