# SPDX-License-Identifier: GPL-2.0-only
"""Finding a service in a tree: search path, names, masks, drop-ins, links that would lead out."""

from pathlib import Path

import pytest

from ceasefire.errors import Failure, UsageError
from ceasefire.service import tree, units
from ceasefire.service.tree import Tree

LIB = "usr/lib/systemd/system"
ETC = "etc/systemd/system"


@pytest.fixture
def machine(tmp_path: Path) -> Tree:
    root = tmp_path / "root"
    for folder in (LIB, ETC):
        (root / folder).mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    return Tree(root, live=False)


def put(machine: Tree, path: str, text: str = "[Service]\nExecStart=/bin/x\n") -> Path:
    file = machine.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def link(machine: Tree, path: str, target: str) -> None:
    file = machine.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(target)


def find(machine: Tree, word: str) -> units.Unit:
    return units.find(machine, word, without="50-ceasefire.conf")


def started(machine: Tree, word: str) -> list[str]:
    return [s.value for s in find(machine, word).service.assigned("ExecStart")]


def exec_start(program: str) -> str:
    return f"[Service]\nExecStart=\nExecStart={program}\n"


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("web", "web.service"),
        ("web.service", "web.service"),
        ("a-b@c-d", "a-b@c-d.service"),
        ("x@a\\x2db.service", "x@a\\x2db.service"),
        ("org.example.Web", "org.example.Web.service"),
    ],
)
def test_names(word: str, name: str) -> None:
    assert units.full_name(word) == name


@pytest.mark.parametrize(
    "word",
    ["", "a/b", "../x", "a b", "web@", "web@.service", "web.socket", "a\n", "x" * 300, "é", "@a"],
)
def test_names_that_are_none(word: str) -> None:
    with pytest.raises(UsageError):
        units.full_name(word)


def test_that_of_the_administrator_comes_first(machine: Tree) -> None:
    put(machine, f"{LIB}/web.service")
    assert find(machine, "web").fragment.parts[1] == "usr"
    put(machine, "run/systemd/system/web.service", exec_start("/bin/run"))
    assert started(machine, "web") == ["/bin/run"]
    put(machine, f"{ETC}/web.service", exec_start("/bin/etc"))
    assert started(machine, "web.service") == ["/bin/etc"]


def test_what_does_not_exist(machine: Tree) -> None:
    with pytest.raises(UsageError, match=r"there is no unit web\.service in .*list-unit-files"):
        find(machine, "web")


@pytest.mark.parametrize("how", ["link", "empty"])
def test_what_is_masked(how: str, machine: Tree) -> None:
    put(machine, f"{LIB}/web.service")
    if how == "link":
        # Not there in the tree, and not looked for.
        link(machine, f"{ETC}/web.service", "/dev/null")
    else:
        put(machine, f"{ETC}/web.service", "")
    with pytest.raises(Failure, match=r"web\.service is masked: `systemctl unmask web\.service`"):
        find(machine, "web")


def test_another_name_is_followed(machine: Tree) -> None:
    put(machine, f"{LIB}/ssh.service")
    link(machine, f"{ETC}/sshd.service", "/lib/systemd/system/ssh.service")
    assert find(machine, "sshd").name == "ssh.service"
    link(machine, f"{ETC}/secure.service", "sshd.service")
    assert find(machine, "secure").name == "ssh.service"
    link(machine, f"{ETC}/db@.service", "/usr/lib/systemd/system/sql@.service")
    put(machine, f"{LIB}/sql@.service")
    assert find(machine, "db@main").name == "sql@main.service"


def test_a_linked_unit_has_its_own_name(machine: Tree) -> None:
    put(machine, "opt/web.service")
    link(machine, f"{ETC}/web.service", "/opt/web.service")
    assert (find(machine, "web").name, started(machine, "web")) == ("web.service", ["/bin/x"])
    link(machine, f"{ETC}/other.service", "/opt/web.service")
    assert find(machine, "other").name == "other.service"


def test_names_without_end(machine: Tree) -> None:
    link(machine, f"{ETC}/a.service", f"/{ETC}/b.service")
    link(machine, f"{ETC}/b.service", f"/{ETC}/a.service")
    with pytest.raises(OSError, match="symbolic links"):
        find(machine, "a")


def test_instance_has_the_file_of_its_template(machine: Tree) -> None:
    put(machine, f"{LIB}/db@.service")
    unit = find(machine, "db@main")
    assert (unit.name, unit.fragment.name, unit.instance) == (
        "db@main.service",
        "db@.service",
        "main",
    )
    put(machine, f"{LIB}/db@own.service", exec_start("/bin/own"))
    assert started(machine, "db@own") == ["/bin/own"]


def test_dropins_are_read_in_the_order_of_their_names(machine: Tree) -> None:
    put(machine, f"{LIB}/a-b@.service")
    for number, path in enumerate(
        [
            f"{LIB}/service.d/10-all.conf",
            f"{LIB}/a-.service.d/20-a.conf",
            f"{LIB}/a-b@.service.d/30-template.conf",
            f"{ETC}/a-b@x-y.service.d/40-own.conf",
            "run/systemd/system/a-b@x-y.service.d/60-run.conf",
        ]
    ):
        put(machine, path, f"[Service]\nEnvironment=N={number}\n")
    # Neither these, nor ours.
    for path in ("a-b@x-.service.d/15.conf", "a-b@x-y.service.d/50-ceasefire.conf"):
        put(machine, f"{ETC}/{path}", "[Service]\nEnvironment=N=9\n")
    put(machine, f"{ETC}/a-b@x-y.service.d/readme", "[Service]\nEnvironment=N=9\n")
    unit = find(machine, "a-b@x-y")
    assert [s.value for s in unit.service.assigned("Environment")] == [f"N={n}" for n in range(5)]
    assert len(unit.dropins) == 5


def test_dropin_of_the_same_name_stands_before_others(machine: Tree) -> None:
    put(machine, f"{LIB}/web.service")
    put(machine, f"{LIB}/web.service.d/x.conf", exec_start("/bin/lib"))
    assert started(machine, "web") == ["/bin/lib"]
    put(machine, f"{ETC}/service.d/x.conf", exec_start("/bin/all"))
    assert started(machine, "web") == ["/bin/lib"]
    link(machine, f"{ETC}/web.service.d/x.conf", "/dev/null")
    assert started(machine, "web") == ["/bin/x"]


def test_links_stay_in_the_tree(machine: Tree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "web.service").write_text(exec_start("/bin/outside"))
    # By itself and on the way, absolute and relative.
    link(machine, f"{ETC}/web.service", str(outside / "web.service"))
    assert started(machine, "web") == []
    link(machine, f"{ETC}/up.service", "../" * 20 + f"{outside}/web.service".lstrip("/"))
    assert started(machine, "up") == []
    link(machine, "usr/local/lib", str(outside))
    assert machine.place("/usr/local/lib/a") == machine.root.joinpath(*outside.parts[1:], "a")
    assert machine.place("/usr/../../../etc") == machine.root / "etc"
    put(machine, f"{str(outside)[1:]}/web.service", exec_start("/bin/inside"))
    assert started(machine, "web") == ["/bin/inside"]


def test_what_is_no_file_is_not_opened(machine: Tree) -> None:
    (machine.root / ETC / "web.service").mkdir()
    with pytest.raises(Failure, match=r"cannot read /etc/systemd/system/web\.service"):
        find(machine, "web")
    put(machine, f"{ETC}/large.service", "#" * (1 << 20) + "\n")
    with pytest.raises(Failure, match="larger than 1 MiB"):
        find(machine, "large")


def test_trees_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        tree.choose(str(tmp_path / "nosuch"))
    with pytest.raises(UsageError, match="leave --root out"):
        tree.choose("/")
    monkeypatch.setattr(tree, "_BOOTED", tmp_path / "nosuch")
    with pytest.raises(Failure, match="systemd does not run here"):
        tree.choose(None)
    monkeypatch.setattr(tree, "_BOOTED", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Failure, match="rights of root"):
        tree.choose(None)
