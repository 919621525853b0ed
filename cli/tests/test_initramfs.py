# SPDX-License-Identifier: GPL-2.0-only
"""A guest that boots from memory: its archive, its command line, what it cannot have."""

import subprocess
from pathlib import Path

import pytest

from ceasefire import paths
from ceasefire.errors import Failure, UsageError
from ceasefire.vm import command, initramfs
from ceasefire.vm.spec import DiskSpec, GuestSpec, check_spec, parse_disk


def value_after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a script in a folder of its own."""
    path = tmp_path / "some where" / "program"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\nexit 7\n")
    return path


def unpack(archive: bytes, where: Path) -> None:
    subprocess.run(
        ["cpio", "-i", "--quiet", "--no-absolute-filenames"],
        input=archive,
        cwd=where,
        timeout=600,
        check=True,
    )


def test_archive_has_files_where_they_are_here(program: Path, tmp_path: Path) -> None:
    script, root = tmp_path / "guest.sh", tmp_path / "root"
    script.write_text("echo odd")
    root.mkdir()
    unpack(initramfs.archive([program], script), root)
    assert (root / str(program).lstrip("/")).read_text() == program.read_text()
    assert (root / "guest.sh").read_text() == "echo odd"
    assert (root / "usr" / "bin" / "busybox").stat().st_mode & 0o777 == 0o755
    assert all((root / name).is_dir() for name in ("dev", "proc", "sys", "run", "tmp"))
    done = subprocess.run(["sh", "-n", root / "init"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_modules_that_come_with_a_kernel(tmp_path: Path) -> None:
    image, folder = tmp_path / "vmlinuz", tmp_path / "lib" / "modules" / "6.1.0"
    assert initramfs.modules(image) == []
    folder.mkdir(parents=True)
    (folder / "9p.ko").write_text("module")
    (folder / "modules.dep").write_text("9p.ko:")
    found = initramfs.modules(image)
    root = tmp_path / "root"
    root.mkdir()
    unpack(initramfs.loader(found), root)
    assert (root / "lib" / "modules" / "6.1.0" / "9p.ko").read_text() == "module"
    assert (root / "lib" / "modules" / "6.1.0" / "modules.dep").read_text() == "9p.ko:"
    assert (root / "mnt").is_dir()
    text = (root / "init").read_text()
    assert "modprobe" in text and "switch_root" in text
    done = subprocess.run(["sh", "-n", root / "init"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_program_brings_its_libraries() -> None:
    found = initramfs.libraries(Path("/bin/sh"))
    assert any("libc.so" in library for library in found)
    assert all(Path(library).is_file() for library in found)


def test_a_script_and_a_static_program_bring_none(program: Path) -> None:
    assert initramfs.libraries(program) == []
    assert initramfs.libraries(Path("/bin/busybox")) == []


def test_without_busybox_the_user_is_told(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "find_program", lambda _name: None)
    with pytest.raises(Failure, match="make deps"):
        initramfs.archive([program], tmp_path / "guest.sh")


def words_of(spec: GuestSpec, accel: str = "tcg") -> list[str]:
    return command.memory_command(spec, accel, Path("/s/root.cpio"), Path("/s/qemu"))


def test_qemu_boots_the_archive(program: Path) -> None:
    words = words_of(GuestSpec(files=(program,), cpus=3, memory="512M", append=("resume=x",)))
    assert words[0] == "/s/qemu"
    assert value_after(words, "-initrd") == "/s/root.cpio"
    assert (value_after(words, "-smp"), value_after(words, "-m")) == ("3", "512M")
    arguments = value_after(words, "-append").split()
    assert arguments[0] == "console=ttyS0" and arguments[-1] == "resume=x"
    assert not any("9p" in argument for argument in arguments)
    assert value_after(words, "-accel") == "tcg,thread=multi"
    assert "file,id=out,path=/proc/self/fd/1" in words
    assert "file,id=err,path=/proc/self/fd/2" in words


def test_kvm_has_the_cpu_of_the_host(program: Path) -> None:
    words = words_of(GuestSpec(files=(program,)), "kvm")
    assert (value_after(words, "-accel"), value_after(words, "-cpu")) == ("kvm", "host")
    words = words_of(GuestSpec(files=(program,), cpu_model="max"), "kvm")
    assert words.count("-cpu") == 1


def test_only_a_disk_that_keeps_something_lets_it_reboot(program: Path) -> None:
    assert "-no-reboot" in words_of(GuestSpec(files=(program,)))
    spec = GuestSpec(files=(program,), disks=(parse_disk("empty:64M"),))
    words = words_of(spec)
    assert "-no-reboot" not in words
    assert "file=/s/disk0" in value_after(words, "-drive")
    assert "snapshot" not in value_after(words, "-drive")
    assert "the guest has booted twice" in command.guest_script(spec, ["true"], Path("/"))


@pytest.mark.parametrize("text", ["empty", "empty:", "empty:4k", "empty:x"])
def test_empty_disks_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_disk(text)


@pytest.mark.parametrize(
    "spec",
    [
        GuestSpec(cpus=2, numa=2, files=(Path("/bin/sh"),)),
        GuestSpec(disks=(DiskSpec("brd-ext4"),), files=(Path("/bin/sh"),)),
        GuestSpec(disks=(DiskSpec("image", "/i", mount="/m"),), files=(Path("/bin/sh"),)),
    ],
)
def test_what_a_guest_in_memory_cannot_have(spec: GuestSpec) -> None:
    with pytest.raises(UsageError, match="from memory"):
        check_spec(spec)
