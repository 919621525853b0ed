# SPDX-License-Identifier: GPL-2.0-only
"""Reads KTAP with the kernel's own parser, tools/testing/kunit/kunit_parser.py of the tree.

The parser counts what it finds and is lenient; this adds what a driver must insist on: a plan,
at least one test, and no program that fails although all its cases pass.
"""

import importlib
import io
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ceasefire import paths
from ceasefire.errors import Failure
from tests.driver.cases import FAIL, PASS, SKIP, Case, failed

_FORMAT_ERROR = re.compile(r"\[ERROR\]\s*(.*)")

# The parser drops the reason of a skip.
_SKIPPED = re.compile(r"^\s*ok \d+ (?:- )?(.*?) # SKIP *(.*)$", re.MULTILINE)


_PLAN = re.compile(r"^(\s*)1\.\.\d+\s*$")
_VERSION = re.compile(r"^(\s*)(?:K?TAP) version \d+")
# What the kernel log says of them begins with it.
_MUTATION = "mutation "
_RESULT = re.compile(r"^(\s*)(?:not )?ok \d+")


def late_plan(text: str) -> int | None:
    """Return the number of the first line with a plan that follows its tests, if there is one.

    TAP allows that, KTAP does not, and the kernel's parser would never return from it.
    """
    tested: set[int] = set()
    for number, line in enumerate(text.split("\n"), 1):
        if match := _VERSION.match(line):
            tested.discard(len(match.group(1)))
        elif match := _RESULT.match(line):
            depth = len(match.group(1))
            tested = {d for d in tested if d < depth} | {depth}
        elif (match := _PLAN.match(line)) and len(match.group(1)) in tested:
            return number
    return None


def with_plan_first(text: str) -> str:
    """Return TAP as KTAP: with a version line, and the plan, which TAP may have last, before it."""
    lines = text.split("\n")
    plans = [line for line in lines if _PLAN.match(line)]
    rest = [line for line in lines if not _PLAN.match(line) and not _VERSION.match(line)]
    return "\n".join(["KTAP version 1", *plans, *rest])


def has_ended(number: int, text: str) -> bool:
    """Return whether the output has the result of program `number`."""
    return bool(re.search(rf"^(?:not )?ok {number}\b", text, re.MULTILINE))


def until_end_of(number: int, text: str) -> str:
    """Return the output of a run that ended too early up to the end of program `number`.

    The plan is that of these programs.
    """
    kept = []
    for line in text.split("\n"):
        kept.append(f"1..{number}" if re.match(r"1\.\.\d+\s*$", line) else line)
        if re.match(rf"(?:not )?ok {number}\b", line):
            break
    return "\n".join(kept) + "\n"


def parse(text: str, *, nested: bool = False) -> list[Case]:
    """Return the test cases of a KTAP output.

    nested: the top level is a list of programs, each of which must have cases of its own.
    """
    late = late_plan(text)
    if late is not None:
        return [failed("KTAP format", f"line {late}: the plan (1..N) comes after its tests")]
    parser = _kernel_parser()
    printed = io.StringIO()
    _redirect(printed)
    try:
        top = parser.parse_run_tests(text.replace("\r\n", "\n").removesuffix("\n").split("\n"))
    except ValueError as error:
        # The parser runs off the end when a nested test has no plan.
        return [failed("KTAP format", f"the output ends early: {error}")]
    reasons = dict(_SKIPPED.findall(text))
    cases: list[Case] = []
    for test in top.subtests:
        cases += _cases(parser, test, "", needs_cases=nested)
    cases = [
        replace(c, detail=reasons.get(c.name.rpartition(".")[2], "")) if c.result == SKIP else c
        for c in cases
    ]
    cases += [failed("KTAP format", message) for message in _format_errors(printed.getvalue())]
    if not top.subtests:
        cases.append(failed("KTAP format", "there is no test in the output"))
    elif top.expected_count is None:
        cases.append(failed("KTAP format", "there is no plan (1..N) in the output"))
    return cases


def _cases(parser: Any, test: Any, prefix: str, *, needs_cases: bool = False) -> Iterator[Case]:
    """Yield the leaves below a test; names are joined by dots."""
    name = f"{prefix}{test.name}" or "(no name)"
    status = parser.TestStatus
    if test.subtests:
        inner = [c for sub in test.subtests for c in _cases(parser, sub, f"{name}.")]
        yield from inner
        if test.expected_count is None:
            yield failed(name, "there is no plan (1..N) in its output")
        if test.status in (status.FAILURE, status.TEST_CRASHED) and all(
            c.result != FAIL for c in inner
        ):
            yield failed(name, "it failed although none of its cases did" + _log(test))
    elif test.status == status.SKIPPED:
        yield Case(name, SKIP)
    elif test.status == status.SUCCESS:
        if needs_cases:
            yield failed(name, "it printed no test case")
        else:
            yield Case(name, PASS)
    else:
        yield failed(name, (f"{test.status.name.lower().replace('_', ' ')}" + _log(test)).strip())


def _log(test: Any) -> str:
    lines = [line.strip() for line in test.log if line.strip()]
    return "".join(f"\n{line}" for line in lines)


def _format_errors(printed: str) -> list[str]:
    return [match.group(1) for match in map(_FORMAT_ERROR.search, printed.split("\n")) if match]


def _kernel_parser() -> Any:
    folder = str(paths.linux_dir() / "tools" / "testing" / "kunit")
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        return importlib.import_module("kunit_parser")
    except ImportError:
        raise Failure(f"there is no KTAP parser in {folder}: run `make tree` first") from None


def _redirect(stream: io.StringIO) -> None:
    """Keep the parser's own report out of ours; it prints through a module-wide printer."""
    printer = importlib.import_module("kunit_printer").Printer(stream)
    for module in ("kunit_parser", "kunit_printer"):
        sys.modules[module].__dict__["stdout"] = printer


def programs_started(lines: Iterable[str]) -> list[tuple[int, str]]:
    """Return line number and name of every program that a kernel log says was started."""
    found = []
    for number, line in enumerate(lines, 1):
        _, mark, name = line.rstrip("\n").partition("ceasefire-test: ")
        if mark and not name.startswith(_MUTATION):
            found.append((number, name))
    return found


def mutations_begin(lines: Iterable[str]) -> int | None:
    """Return the number of the first line of a kernel log that is about a mutation."""
    mark = f"ceasefire-test: {_MUTATION}"
    return next((number for number, line in enumerate(lines, 1) if mark in line), None)
