#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Is the lock of the Python packages complete? For scripts/check-lock.

  scripts/lock_complete.py LOCK [WANTED]

Every line of LOCK is one version of one package with a checksum at least. With WANTED: all that
it names is in LOCK, all that those packages need is, too, and nothing else is installed beside
them here. Runs with the Python of the build folder, whose packages say what they need.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Of the environment itself.
_TOOLS = {"pip", "setuptools"}
_PINNED = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)((?:\s+--hash=sha256:[0-9a-f]{64})+)\s*$")


def lines(path: Path) -> Iterator[str]:
    """Yield the requirements of a file: continued lines as one, without comments."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        bare = re.sub(r"(^|\s)#.*", "", line).strip()
        if bare:
            yield bare


def locked(path: Path, problems: list[str]) -> dict[str, str]:
    """Return the version of each package in a lock."""
    found: dict[str, str] = {}
    for line in lines(path):
        match = _PINNED.match(line)
        if match is None:
            problems.append(f"is not one version with checksums: {line[:60]}")
            continue
        name = canonicalize_name(match[1])
        if name in found:
            problems.append(f"names {name} twice")
        found[name] = match[2]
    return found


def needed(by: Requirement, seen: set[str]) -> Iterator[tuple[str, Requirement]]:
    """Yield what a package needs, and what that needs, each with who needs it."""
    key = f"{canonicalize_name(by.name)}[{','.join(sorted(by.extras))}]"
    if key in seen:
        return
    seen.add(key)
    for text in distribution(by.name).requires or []:
        wanted = Requirement(text)
        marker = wanted.marker
        if marker is None or any(marker.evaluate({"extra": e}) for e in ("", *by.extras)):
            yield by.name, wanted
            yield from needed(wanted, seen)


def compare(versions: dict[str, str], wanted: Path, problems: list[str]) -> None:
    """Compare a lock with what is wanted and with what is installed."""
    named = [Requirement(line) for line in lines(wanted)]
    seen: set[str] = set()
    all_needed = [(wanted.name, requirement) for requirement in named]
    for requirement in named:
        all_needed += needed(requirement, seen)
    for who, requirement in all_needed:
        version = versions.get(canonicalize_name(requirement.name))
        if version is None:
            problems.append(f"lacks {requirement.name}, which {who} needs")
        elif not requirement.specifier.contains(version, prereleases=True):
            problems.append(f"has {requirement.name} {version}, but {who} needs {requirement}")
    names = {canonicalize_name(requirement.name) for _, requirement in all_needed}
    problems += [f"has {name}, which nothing needs" for name in sorted(set(versions) - names)]
    for package in distributions():
        name = canonicalize_name(package.metadata["Name"])
        if name not in _TOOLS and versions.get(name) != package.version:
            problems.append(f"does not have {name} {package.version}, which is installed")


def main() -> int:
    """Print what is wrong."""
    if len(sys.argv) not in (2, 3):
        print("usage: lock_complete.py LOCK [WANTED]", file=sys.stderr)
        return 2
    lock = Path(sys.argv[1])
    problems: list[str] = []
    versions = locked(lock, problems)
    if not versions:
        problems.append("names no package")
    if len(sys.argv) == 3:
        compare(versions, Path(sys.argv[2]), problems)
    for problem in problems:
        print(f"{lock.name} {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
