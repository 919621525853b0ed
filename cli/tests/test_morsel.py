# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire morsel` without a kernel that has any: what is found in /proc, and what is refused."""

import argparse
import json
import os
from pathlib import Path

import pytest

from ceasefire import modes
from ceasefire.__main__ import main
from ceasefire.errors import Failure, UsageError
from ceasefire.morsel import abi, cli, names, objects

FIGURES = """pos:\t0
flags:\t02000002
morsel_unit:\t2048 kB
morsel_pages:\t{pages} kB
morsel_tables:\t8 kB
morsel_pool:\t12 kB
morsel_mappings:\t{mappings}
"""


def descriptor(proc: Path, pid: int, fd: int, file: Path, text: str) -> None:
    """Add what /proc would have of an open file."""
    for name in ("fd", "fdinfo"):
        (proc / str(pid) / name).mkdir(parents=True, exist_ok=True)
    (proc / str(pid) / "fd" / str(fd)).symlink_to(file)
    (proc / str(pid) / "fdinfo" / str(fd)).write_text(text)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc with two morsels; one of them is open twice."""
    found = tmp_path / "proc"
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"x" * 4096)
    large.write_bytes(b"x" * 8192)
    (found / "self").mkdir(parents=True)
    descriptor(found, 7, 1, tmp_path, "pos:\t0\n")
    descriptor(found, 7, 3, small, FIGURES.format(pages=4, mappings=1))
    descriptor(found, 12, 5, large, FIGURES.format(pages=64, mappings=2))
    descriptor(found, 100, 0, small, FIGURES.format(pages=4, mappings=1))
    return found


def test_morsels_are_found_once_the_largest_first(proc: Path) -> None:
    large, small = objects.found(proc)
    assert (large.memory, large.tables, large.unit) == (65536, 8192, 2 << 20)
    assert large.pool == 12288
    assert (large.size, large.mappings, large.holders) == (8192, 2, ("12:5",))
    assert small.holders == ("7:3", "100:0") and small.size == 4096


def test_the_unit_that_suffices_is_chosen_where_one_has_to_be_said() -> None:
    assert abi._unit_for(1) == 2 << 20
    assert abi._unit_for(511 * (2 << 20)) == 2 << 20
    assert abi._unit_for(511 * (2 << 20) + 1) == 1 << 30
    assert abi._unit_for(512 << 40) == 256 << 40
    assert abi._unit_for(1, page=2 << 20) == 1 << 30
    assert abi._unit_for(1, page=1 << 30) == 512 << 30


def test_the_name_is_that_of_memfd(proc: Path) -> None:
    # A link that leads nowhere by its text, as those of /proc; so it is only read.
    at = proc / "7" / "fd" / "3"
    target = at.resolve()
    at.unlink()
    named = target.with_name("memfd:a b (deleted)")
    target.rename(named)
    at.symlink_to(named)
    assert objects.at(proc, 7, 3) is not None
    assert objects._NAME.fullmatch("/memfd:a b (deleted)") is not None


def test_one_is_named_by_its_descriptor(proc: Path) -> None:
    assert objects.one("12:5", proc).memory == 65536
    with pytest.raises(Failure, match="is no morsel"):
        objects.one("7:1", proc)
    with pytest.raises(Failure, match="process 8 has no descriptor 3"):
        objects.one("8:3", proc)
    for text in ("7", "7:", ":3", "7:x", "-7:3"):
        with pytest.raises(UsageError, match="PID:FD"):
            objects.one(text, proc)


@pytest.fixture
def with_morsels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel have morsels, as far as sysfs says."""
    monkeypatch.setattr(modes, "SYSFS", tmp_path / "sysfs")
    (tmp_path / "sysfs" / "morsel").mkdir(parents=True)
    (tmp_path / "sysfs" / "morsel" / "enabled").write_text("never [ask]\n")


def test_one_is_named_by_its_path(tmp_path: Path, with_morsels: None) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"x")
    with pytest.raises(Failure, match="is no morsel: "):
        objects.one(str(other))
    with pytest.raises(Failure, match="No such file"):
        objects.one(str(tmp_path / "none"))
    # Nobody writes to it, and nobody waits for that.
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Failure, match="is no morsel: "):
        objects.one(str(tmp_path / "pipe"))


def test_mounts_are_found_whatever_they_are_called(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(
        "24 1 0:22 / /proc rw,nosuid - proc proc rw\n"
        "31 1 0:30 / /run/two\\040words\\134 rw shared:5 - morsel none rw,mode=1777\n"
        "32 1 0:31 / /run/morsel rw - tmpfs morsel rw\n"
    )
    assert names.mounts(tmp_path) == {"/run/two words\\": os.makedev(0, 30)}


def test_among_other_files_nothing_is_made(
    tmp_path: Path, with_morsels: None, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    for place in (folder, Path("/proc")):
        assert main(["morsel", "create", f"{place}/pool", "4M"]) == 1
        error = capsys.readouterr().err
        assert "in no file system of morsels: mount one" in error and error.count("\n") == 1
    assert main(["morsel", "create", "/nosuch/pool", "4M"]) == 1
    assert "no such folder: mount one" in capsys.readouterr().err
    assert not list(folder.iterdir())
    (folder / "pool").write_bytes(b"kept")
    assert main(["morsel", "create", f"{folder}/pool", "4M"]) == 1
    assert "there is something with this name" in capsys.readouterr().err
    assert (folder / "pool").read_bytes() == b"kept"
    # What cannot be run is said before anything is made.
    assert main(["morsel", "create", f"{folder}/new", "4M", "--", "/nosuch/command"]) == 127
    assert "command not found" in capsys.readouterr().err


def test_names_need_a_kernel_with_morsels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(modes, "SYSFS", tmp_path)
    for words in (["create", "/run/morsel/pool", "4M"], ["stat", "/run/morsel/pool"]):
        assert main(["morsel", *words]) == 77
        assert "no morsels: see `ceasefire doctor`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("4096", 4096), ("64K", 65536), ("1g", 1 << 30), ("2T", 2 << 40)]
)
def test_bytes(text: str, size: int) -> None:
    assert cli.bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "K", "-1", "1.5M", "1KB", "9" * 25, "8388608T"])
def test_bytes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="no number of bytes"):
        cli.bytes_of(text)


def test_ranges() -> None:
    assert cli.ranges_of([], 8192) == [abi.Range(0, 8192)]
    assert cli.ranges_of(["4K:4096", "0:1"], 8192) == [abi.Range(4096, 4096), abi.Range(0, 1)]
    with pytest.raises(UsageError, match="no range"):
        cli.ranges_of(["4K"], 8192)
    with pytest.raises(UsageError, match="behind the morsel, which has 8,192 bytes"):
        cli.ranges_of(["4K:4097"], 8192)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["create", "pool", "64M"], 2, "the command is missing"),
        (["create", "pool", "0", "--", "true"], 2, "of no use"),
        (["create", "--unit", "3M", "pool", "64M", "--", "true"], 2, "2M, 1G, 512G or 256T"),
        (["create", "--page", "4M", "pool", "64M", "--", "true"], 2, "4K, 2M or 1G"),
        (["create", "--page", "2M", "--unit", "2M", "p", "4M", "--", "true"], 2, "larger than"),
        (["create", "--page", "2M", "--lazy", "pool", "64M", "--", "true"], 2, "pages of 4K"),
        (["create", "/nosuch/pool", "64M", "--mode", "660"], 2, "options come before the name"),
        (["create", "--mode", "rw", "/nosuch/pool", "64M"], 2, "write it like 660"),
        (["create", "--mode", "660", "pool", "64M", "--", "true"], 2, "no path, so no mode"),
        (["populate", "0:0"], 1, "no descriptor 0"),
        (["stat", "x"], 2, "PID:FD"),
        (["clone"], 2, "invalid choice"),
        (["copy", "1:2"], 2, "NAME"),
        (["copy", "0:0", "pool"], 2, "ceasefire morsel copy 4711:3 pool -- ./report"),
        (["copy", "0:0", "pool", "--", "true"], 1, "no descriptor 0"),
        (["copy", "--mode", "660", "0:0", "pool", "--", "true"], 2, "no path, so no mode"),
        ([], 2, "WHAT"),
    ],
)
def test_wrong_use_is_one_line(
    words: list[str], status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main(["morsel", *words])
    except SystemExit as end:
        found = int(end.code or 0)
    out, err = capsys.readouterr()
    assert found == status and says in err and err.count("\n") == 1 and not out


def test_a_kernel_without_morsels(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        os.close(abi.create("probe", 1 << 21, abi.Layout()))
    except Failure:
        assert main(["morsel", "create", "pool", "64M", "--", "true"]) == 77
        assert "no morsels" in capsys.readouterr().err
    else:
        pytest.skip("this kernel has morsels: cli/guest")


def test_what_is_shown(proc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.show(objects.found(proc), json_=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["holders"] for line in lines] == [["12:5"], ["7:3", "100:0"]]
    cli.show(objects.found(proc), json_=False)
    table = capsys.readouterr().out
    assert "7:3 100:0" in table and "2,048" in table
    cli.show([], json_=False)
    assert capsys.readouterr().out == "no morsels that you may see\n"


def test_all_kinds_have_options() -> None:
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    given = parser.parse_args(["depopulate", "1:2", "0:4K"])
    assert given.ranges == ["0:4K"] and not given.later
    assert parser.parse_args(["depopulate", "--async", "1:2"]).later
    assert parser.parse_args(["depopulate", "--lazy", "1:2"]).lazy


def test_what_is_made_gets_its_name_at_the_end(tmp_path: Path) -> None:
    """Link a file without a name, as a morsel is; whatever file system it is."""
    fd = os.open(tmp_path, os.O_TMPFILE | os.O_RDWR, 0o600)
    assert not list(tmp_path.iterdir())
    names.name(fd, str(tmp_path / "pool"))
    assert (tmp_path / "pool").stat().st_ino == os.fstat(fd).st_ino
    with pytest.raises(Failure, match="something with this name"):
        names.name(fd, str(tmp_path / "pool"))
    with pytest.raises(Failure, match="No such file"):
        names.name(fd, "/nosuch/pool")
    os.close(fd)
