# SPDX-License-Identifier: GPL-2.0-only
"""Finds a service and all files that say how it starts, where systemd looks for them.

systemd.unit(5), Unit File Load Path. The files are read here and not asked of systemd, because in a
tree (`--root DIR`) nobody runs who could be asked, and both ways are to give the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ceasefire.errors import Failure, UsageError
from ceasefire.service.syntax import Service, Setting, settings_in
from ceasefire.service.tree import Tree

SUFFIX = ".service"
ETC = "/etc/systemd/system"
# In the order of precedence.
_FOLDERS = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    ETC,
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
_OTHERS = (
    *(".socket", ".device", ".mount", ".automount", ".swap", ".target"),
    *(".path", ".timer", ".slice", ".scope"),
)
_NAME = re.compile(r"[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\@-]*)?\.service")
_LONGEST = 255
_ALIASES = 8
_NOTHING = PurePosixPath("/dev/null")


@dataclass(frozen=True)
class Unit:
    """A service that exists. name: that of its own file, whatever it was asked for by.

    fragment: that file. dropins: in the order in which they are read, without ours.
    """

    name: str
    fragment: PurePosixPath
    dropins: tuple[PurePosixPath, ...]
    service: Service

    @property
    def instance(self) -> str:
        """What the specifier %i stands for."""
        return self.name.removesuffix(SUFFIX).partition("@")[2]


def full_name(word: str) -> str:
    """Return the name of the service that a user means. Errors: UsageError."""
    if word.endswith(_OTHERS):
        raise UsageError(f"{word} is no service: only services have programs to start")
    name = word if word.endswith(SUFFIX) else word + SUFFIX
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        raise UsageError(f"'{word}' is no name of a service")
    if name.endswith("@" + SUFFIX):
        raise UsageError(
            f"{name} is a template: name an instance of it, such as {name[: -len(SUFFIX)]}NAME"
        )
    return name


def find(tree: Tree, word: str, *, without: str) -> Unit:
    """Return a service. without: the name of the drop-in that is ours, which does not count.

    Errors: UsageError for one that does not exist, Failure for one that cannot be started.
    """
    asked = name = full_name(word)
    for _ in range(_ALIASES):
        path = _fragment(tree, name)
        if path is None:
            where = "" if tree.live else f" in {tree.root}"
            also = "" if name == asked else f", which {asked} is a name of"
            raise UsageError(
                f"there is no unit {name}{also}{where}: `systemctl list-unit-files` lists them"
            )
        target = tree.shown(tree.place(path))
        if target == _NOTHING or tree.read(target) == "":
            raise Failure(f"{name} is masked: `systemctl unmask {name}` first")
        other = _alias(tree, path, name)
        if other is None:
            break
        name = other
    else:
        raise Failure(f"{asked} is a name for a name without end: correct the links of the unit")
    dropins = tuple(_dropins(tree, name, without))
    settings: list[Setting] = []
    for file in (path, *dropins):
        settings += settings_in(tree.read(file) or "", str(file))
    return Unit(name, path, dropins, Service(settings))


def exists(tree: Tree, name: str) -> bool:
    """Say whether there is a file for a unit, which may be a template."""
    return any(_is_there(tree, f"{folder}/{name}") for folder in _FOLDERS)


def template_of(name: str) -> str | None:
    """Return the template that an instance is made from, None for what is no instance."""
    prefix, at, _ = name.partition("@")
    return f"{prefix}@{SUFFIX}" if at else None


def _is_there(tree: Tree, path: str) -> bool:
    try:
        tree.entry(path).lstat()
    except OSError:
        return False
    return True


def _fragment(tree: Tree, name: str) -> PurePosixPath | None:
    """Return the file of a unit: its own one anywhere, else that of its template."""
    template = template_of(name)
    for wanted in (name, *([template] if template else [])):
        for folder in _FOLDERS:
            if _is_there(tree, f"{folder}/{wanted}"):
                return PurePosixPath(folder) / wanted
    return None


def _alias(tree: Tree, path: PurePosixPath, name: str) -> str | None:
    """Return the name that a unit has, if this one is a link to it; None if it is its own."""
    target = tree.shown(tree.place(path))
    # A link to another place is the unit itself (`systemctl link`).
    if target.name in (name, template_of(name)) or str(target.parent) not in _FOLDERS:
        return None
    prefix, at, rest = target.name.removesuffix(SUFFIX).partition("@")
    if at and not rest:
        # An instance of another template.
        _, _, instance = name.removesuffix(SUFFIX).partition("@")
        return f"{prefix}@{instance}{SUFFIX}" if instance else None
    return target.name


def _dropins(tree: Tree, name: str, without: str) -> Iterator[PurePosixPath]:
    """Yield the drop-ins of a unit: by name of file, of equal ones the first that is found."""
    found: dict[str, PurePosixPath] = {}
    folders = [f"{folder}/{own}.d" for folder in _FOLDERS for own in _names(name)]
    # Of all services.
    folders += [f"{folder}/service.d" for folder in _FOLDERS]
    for folder in folders:
        try:
            names = sorted(path.name for path in tree.place(folder).iterdir())
        except OSError:
            continue
        for file in names:
            if file.endswith(".conf") and not file.startswith("."):
                found.setdefault(file, PurePosixPath(folder) / file)
    # Our own one stands in the folder of this unit in /etc.
    if found.get(without) == PurePosixPath(ETC) / f"{name}.d" / without:
        del found[without]
    for _, path in sorted(found.items()):
        if tree.shown(tree.place(path)) != _NOTHING:
            yield path


def _names(name: str) -> Iterator[str]:
    """Yield the names whose drop-ins are for a unit: its own, its template's, their beginnings."""
    for own in (name, template_of(name)):
        if own is None:
            continue
        yield own
        stem = own.removesuffix(SUFFIX)
        if "@" in stem:
            # Dashes in the instance are no levels.
            stem = stem.partition("@")[0]
        cut = stem.rfind("-", 0, len(stem) - 1)
        while cut > 0:
            yield f"{stem[: cut + 1]}{SUFFIX}"
            cut = stem.rfind("-", 0, cut)
