# SPDX-License-Identifier: GPL-2.0-only
"""Names of functions: what is found, and what a hostile file, or what took its place, can do."""

import errno
import io
import mmap
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import pytest
from elftools.elf.sections import SymbolTableSection

from ceasefire.files import NotRegular, open_regular, write_whole
from ceasefire.launch.executable import binary_of, preload_obstacle
from ceasefire.record import elf, stacks, symbols
from ceasefire.record.mappings import Region, parse_maps
from ceasefire.record.stacks import Module, Place

# For a machine that has much else to do.
LIMITS = symbols.Limits(cpu=10, seconds=100.0, all_seconds=200.0)


def module_of(path: Path) -> Module:
    """Return a file as /proc/PID/maps would tell it."""
    with open_regular(path) as file:
        return Module(str(path), *symbols.identity(file))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a program with symbols and debug information."""
    source = Path(__file__).with_name("data") / "recycles.c"
    path = tmp_path_factory.mktemp("symbols") / "recycles"
    subprocess.run(["cc", "-g", source, "-o", path], check=True)
    return path


def offset_of_main(program: Path) -> int:
    with program.open("rb") as file:
        found = elf.Elf(file)
        return offset_of(found, "main")


def offset_of(file: elf.Elf, name: str) -> int:
    """Return where a function is in a file."""
    table = file._elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    value = next(int(s["st_value"]) for s in table.iter_symbols() if s.name == name)
    return next(value - a + o for o, size, a in file._loads if a <= value < a + size)


def test_functions_and_lines(program: Path) -> None:
    start = 0x550000000000
    offset = offset_of_main(program)
    module = module_of(program)
    region = Region(start, start + (1 << 20), "r-xp", 0, *module)
    layout = stacks.Layout([region])
    # What is behind a caller without a frame pointer is data, and no caller.
    (place,) = layout.places((start + offset + 2, 0x1234))
    assert place == Place(module, offset + 1)
    assert place.text({}) == f"recycles+{offset + 1:#x}"
    found = symbols.resolve([place, Place(None, 5)], LIMITS)
    assert not found.problems
    assert found.names[place].startswith("main (recycles.c:")


def test_stripped_program_has_offsets(program: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    place = Place(module_of(stripped), offset_of_main(program))
    found = symbols.resolve([place], LIMITS)
    assert not found.problems
    assert not found.names


def test_names_of_cplusplus(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("int _ZN2ns1fEi(int x) { return x; }\nint main(void) { return 0; }\n")
    path = tmp_path / "a"
    subprocess.run(["cc", source, "-o", path], check=True)
    with path.open("rb") as file:
        offset = offset_of(elf.Elf(file), "_ZN2ns1fEi")
    place = Place(module_of(path), offset)
    assert symbols.resolve([place], LIMITS).names == {place: "ns::f(int) (a)"}


def test_places_without_files() -> None:
    vdso = Region(0, 9, "r-xp", 0, "[vdso]")
    layout = stacks.Layout([Region(0x1000, 0x3000, "r-xp", 0x1000, "/x/lib.so (deleted)"), vdso])
    assert [p.text({}) for p in layout.places((5, 0x1235))] == ["lib.so+0x1234", "0x4"]
    assert [p.text({}) for p in stacks.Layout([]).places((0, 0x1234))] == ["0x1233", "0x0"]


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def make_link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        os.chdir(path.parent)
        one.bind(path.name)


def make_tty(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(5, 0))


def make_other(path: Path) -> None:
    path.write_bytes(Path("/bin/true").read_bytes())


def make_hard_link(path: Path) -> None:
    other = path.with_name("secret")
    other.write_bytes(b"\x7fELFsecret")
    path.hardlink_to(other)


def make_nothing(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (make_fifo, "no regular file"),
        (make_link, "no regular file"),
        (make_link_to_itself, "no regular file"),
        (make_socket, "no regular file"),
        (make_tty, "no regular file"),
        (Path.mkdir, "no regular file"),
        (make_other, "not the file that was mapped"),
        (make_hard_link, "not the file that was mapped"),
        (Path.touch, "empty"),
        (make_nothing, "not there any more"),
    ],
)
def test_what_took_the_place_of_a_file(
    make: object, says: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if make is make_tty and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "lib.so"
    # A copy that is kept, so that no other file gets its inode.
    path.write_bytes(program.read_bytes())
    module = module_of(path)
    path.rename(tmp_path / "kept")
    assert callable(make)
    make(path)
    begin = time.monotonic()
    found = symbols.resolve([Place(module, 64)], LIMITS)
    assert not found.names
    assert says in found.problems[str(path)]
    assert time.monotonic() - begin < 2 * LIMITS.seconds


@pytest.mark.parametrize("path", ["/proc/kmsg", "/proc/self/mem", "/dev/zero", "/dev/full", "/"])
def test_files_of_the_kernel_are_not_read(path: str) -> None:
    found = symbols.resolve([Place(Module(path, "00:01", 1), 64)], LIMITS)
    assert found.problems
    assert not found.names


def test_identity_is_that_of_maps(program: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        regions = parse_maps(Path(f"/proc/{process.pid}/maps").read_text())
        while not any("x" in r.rights and r.path.startswith("/") for r in regions):
            regions = parse_maps(Path(f"/proc/{process.pid}/maps").read_text())
        process.kill()
    files = {(r.path, r.device, r.inode) for r in regions if r.path.startswith("/")}
    for path, device, inode in files:
        assert module_of(Path(path)) == (path, device, inode)


Answer = Iterator[tuple[str, Mapping[int, str]]]


def hang(_file: BinaryIO, _offsets: Iterable[int]) -> Answer:
    yield "functions", {1: "before"}
    threading.Event().wait()


def spin(_file: BinaryIO, _offsets: Iterable[int]) -> Answer:
    yield "functions", {1: "before"}
    while True:
        pass


def eat(_file: BinaryIO, _offsets: Iterable[int]) -> Answer:
    parts: list[bytes] = []
    while True:
        parts.append(bytes(1 << 24))
        yield "functions", {1: "before"}


def talk(_file: BinaryIO, _offsets: Iterable[int]) -> Answer:
    while True:
        yield "functions", {1: "before" * 100_000}


def recurse(file: BinaryIO, offsets: Iterable[int]) -> Answer:
    yield from recurse(file, offsets)


def crash(_file: BinaryIO, _offsets: Iterable[int]) -> Answer:
    yield "functions", {1: "before"}
    os.kill(os.getpid(), signal.SIGKILL)


def stop(_file: BinaryIO, _offsets: Iterable[int]) -> Answer:
    yield "functions", {1: "before"}
    os.kill(os.getpid(), signal.SIGSTOP)


def rights(_file: BinaryIO, _offsets: Iterable[int]) -> Answer:
    yield "functions", {1: f"{os.getresuid()} {os.getresgid()} {os.getgroups()}"}


def take(_file: BinaryIO, _offsets: Iterable[int]) -> Answer:
    yield "functions", {len(bytes(1 << 27)) >> 27: "before"}


def test_memory_that_is_there_does_not_count(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elf, "read", take)
    module = module_of(program)
    with mmap.mmap(-1, 1 << 31):
        found = symbols.resolve([Place(module, 1)], symbols.Limits(memory=1 << 28))
    assert not found.problems
    assert found.names


@pytest.mark.parametrize(
    ("read", "says", "names"),
    [
        (hang, "too long", True),
        (spin, "too long", True),
        (eat, "too much memory", True),
        (talk, "too long", False),
        (recurse, "in circles", False),
        (crash, "crashed", True),
        (stop, "too long", True),
    ],
)
def test_reading_has_limits(
    read: object, says: str, names: bool, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elf, "read", read)
    begin = time.monotonic()
    module = module_of(program)
    # What ends by itself, or by another limit, has the time that it takes on a busy machine.
    seconds = 2.0 if says == "too long" else 30.0
    limits = symbols.Limits(seconds=seconds, memory=1 << 29)
    found = symbols.resolve([Place(module, 1)], limits)
    assert time.monotonic() - begin < 100
    assert says in found.problems[str(program)]
    if names:
        assert found.names == {Place(module, 1): "before (recycles)"}
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_all_together_have_limits(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elf, "read", hang)
    module = module_of(program)
    places = [Place(module._replace(path=f"{program}{i}"), 1) for i in range(300)]
    limits = symbols.Limits(seconds=1.0, all_seconds=2.0)
    begin = time.monotonic()
    found = symbols.resolve([*places, Place(module, 1)], limits)
    assert time.monotonic() - begin < 100
    assert len(found.problems) == 301
    assert any("too many" in text for text in found.problems.values())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
def test_reading_has_no_rights(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elf, "read", rights)
    place = Place(module_of(program), 1)
    (text,) = symbols.resolve([place], LIMITS).names.values()
    assert text.startswith("(65534, 65534, 65534) (65534, 65534, 65534) []")


def test_interrupt_ends_only_the_names(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elf, "read", hang)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    found = symbols.resolve([Place(module_of(program), 1)], symbols.Limits(seconds=60.0))
    timer.join()
    assert "interrupted" in found.problems.values()


# ELF files that were made to do harm. A header is 64 bytes, a program or section header 56 or 64.
def header(**changes: int) -> bytes:
    values = {
        "type": 3, "machine": 62, "version": 1, "entry": 0, "phoff": 64, "shoff": 0, "flags": 0,
        "ehsize": 64, "phentsize": 56, "phnum": 0, "shentsize": 64, "shnum": 0, "shstrndx": 0,
        **changes,
    }  # fmt: skip
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", *values.values())


def section(kind: int, offset: int, size: int, link: int = 0, flags: int = 0) -> bytes:
    return struct.pack("<IIQQQQIIQQ", 1, kind, flags, 0, offset, size, link, 0, 8, 24)


def bomb() -> bytes:
    """Return a file whose symbol table unpacks to a gigabyte."""
    packed = zlib.compress(bytes(1 << 26))
    content = struct.pack("<IIQQ", 1, 0, 1 << 40, 8) + packed
    names = b"\0.symtab\0"
    head = header(shoff=64, shnum=3, shstrndx=2)
    start = 64 + 3 * 64
    table = section(0, 0, 0) + section(2, start, len(content), 2, 0x800)
    return head + table + section(3, start + len(content), len(names)) + content + names


HARMFUL = {
    "nothing": b"\x7fELF",
    "no header": b"\x7fELF\x02\x01\x01",
    "4 GiB of program headers": header(phnum=0xFFFF, phentsize=0xFFFF),
    "headers of no size": header(phnum=0xFFFF, phentsize=0),
    "headers behind the end": header(phoff=(1 << 64) - 1, phnum=3),
    "4 billion sections": header(shoff=64, shnum=0, shstrndx=0xFFFF) + section(0, 0, 1 << 32, 1),
    "names that are themselves": header(shoff=64, shnum=2, shstrndx=1)
    + section(0, 0, 0)
    + section(2, 64, 128, 1),
    "a section of 2^63": header(shoff=64, shnum=2, shstrndx=1)
    + section(0, 0, 0)
    + section(3, 0, 1 << 63),
    "a bomb": bomb(),
    "32 bits": b"\x7fELF\x01\x01\x01" + bytes(60),
    "the other order": b"\x7fELF\x02\x02\x01" + bytes(60),
    "a script": b"#!/bin/sh\n",
}


@pytest.mark.parametrize("name", HARMFUL)
def test_harmful_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(HARMFUL[name])
    # Sparse: all that the headers ask for is there.
    os.truncate(path, max(1 << 33, len(HARMFUL[name])))
    path.chmod(0o755)
    begin = time.monotonic()
    found = symbols.resolve([Place(module_of(path), 64)], LIMITS)
    assert time.monotonic() - begin < 2 * LIMITS.seconds
    assert not found.names
    assert preload_obstacle(path) in ("", "a 32-bit program", "statically linked")


def test_file_that_changes_while_it_is_read(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(program.read_bytes())
    place = Place(module_of(path), offset_of_main(program))
    read = elf.read

    def shrunk(file: BinaryIO, offsets: Iterable[int]) -> Answer:
        file.peek(4096)  # type: ignore[attr-defined]
        return read(file, offsets)

    monkeypatch.setattr(elf, "read", shrunk)
    over = threading.Event()

    def change() -> None:
        content = program.read_bytes()
        while not over.is_set():
            os.truncate(path, 100)
            path.write_bytes(content)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(5):
            found = symbols.resolve([place], LIMITS)

            assert set(found.problems) <= {str(path)}
    finally:
        over.set()
        thread.join()


def test_commands_that_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o777)
    fifo.chmod(0o777)
    script = tmp_path / "script"
    script.write_text(f"#!{fifo}\n")
    script.chmod(0o755)
    assert binary_of(str(fifo)) in (None, fifo)
    assert binary_of(str(script)) in (None, fifo)
    assert preload_obstacle(fifo) == ""
    with pytest.raises(NotRegular):
        open_regular(fifo)


def test_pages_are_not_written_through_planted_links(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.mkfifo(tmp_path / "fifo")
    for target in (victim, tmp_path / "fifo", Path("/dev/null"), tmp_path / "nowhere"):
        link = tmp_path / "page.html"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        write_whole(link, "page")
        assert not link.is_symlink()
        assert link.read_text() == "page"
    assert victim.read_text() == "precious"
    # A FIFO without a reader is an error at once.
    with pytest.raises(OSError) as caught:
        write_whole(tmp_path / "fifo", "page")
    assert caught.value.errno == errno.ENXIO
    stream = io.BytesIO()
    read, write = os.pipe()
    write_whole(Path(f"/proc/self/fd/{write}"), "page")
    os.close(write)
    stream.write(os.read(read, 100))
    os.close(read)
    assert stream.getvalue() == b"page"
