# SPDX-License-Identifier: GPL-2.0-only
"""What a guest is started with: options, kernel arguments, disks, the script inside."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ceasefire import paths
from ceasefire.errors import Failure, UsageError
from ceasefire.sizes import parse_size
from ceasefire.vm import command, emulator, guest, start
from ceasefire.vm.spec import DiskSpec, GuestSpec, check_spec, parse_disk


def words_of(spec: GuestSpec, accel: str = "tcg") -> list[str]:
    return command.virtme_command(spec, accel, Path("/s/guest.sh"), Path("/s/qemu"), [])


def value_after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


@pytest.mark.parametrize(
    ("text", "size"), [("512M", 512 << 20), ("2G", 2 << 30), ("100", 100 << 20), ("64k", 64 << 10)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "1X", "-1M", "1.5G"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size(text)


def test_checking_emulator_checks(tmp_path: Path) -> None:
    spec = GuestSpec(kernel="debug", emulator="checking", check="process=on,old-ms=9")
    words = words_of(spec)
    given = value_after(words, "-object").split(",")
    assert given[:2] == ["tlb-check", "id=check0"]
    assert given[-2:] == ["process=on", "old-ms=9"]
    assert value_after(words, "-cpu") == "max,-pku"
    assert "nokaslr" in words
    assert value_after(words_of(replace(spec, cpu_model="qemu64")), "-cpu") == "qemu64"


def test_stock_emulator_does_not() -> None:
    words = words_of(GuestSpec())
    assert "-object" not in words and "nokaslr" not in words
    assert value_after(words, "-cpu") == "max,-pku"
    assert "-cpu" not in words_of(GuestSpec(), "kvm")


def test_built_emulator_needs_firmware_and_checks_nothing() -> None:
    words = words_of(GuestSpec(emulator="built"))
    assert "-object" not in words and "nokaslr" not in words
    assert value_after(words, "-L") == "/usr/share/seabios"
    assert guest.accelerator(GuestSpec(emulator="built")) == "tcg"


def test_symbols_are_those_of_the_kernel(tmp_path: Path) -> None:
    image = tmp_path / "b" / "arch" / "x86" / "boot" / "bzImage"
    image.parent.mkdir(parents=True)
    image.touch()
    spec = GuestSpec(kernel=str(image), emulator="checking")
    assert "symbols" not in value_after(words_of(spec), "-object")
    (tmp_path / "b" / "System.map").touch()
    symbols = f"symbols={tmp_path}/b/System.map"
    assert symbols in value_after(words_of(spec), "-object").split(",")


@pytest.mark.parametrize(
    "spec",
    [
        GuestSpec(emulator="checking", accel="kvm"),
        GuestSpec(emulator="built", accel="kvm"),
        GuestSpec(emulator="built", check="process=on"),
        GuestSpec(check="process=on"),
    ],
)
def test_checks_that_cannot_be(spec: GuestSpec) -> None:
    with pytest.raises(UsageError):
        check_spec(spec)


@pytest.mark.parametrize(("events", "warned"), [(0, True), (7, False)])
def test_a_kernel_that_tells_the_checker_nothing(tmp_path: Path, events: int, warned: bool) -> None:
    log = tmp_path / "log"
    log.write_text(f"booting\ntlb-check: summary checks=9 events={events} not_ram=0\n")
    assert bool(emulator.warning(GuestSpec(emulator="checking"), log)) == warned
    assert not emulator.warning(GuestSpec(), log)


@pytest.mark.parametrize("name", ["checking", "built"])
def test_emulator_of_ours_that_is_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(paths, "build_dir", lambda: tmp_path)
    with pytest.raises(Failure, match="make emulator"):
        emulator.program(name)


def run_emulator_script(tmp_path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    script = tmp_path / "qemu"
    fake = tmp_path / "real one"
    fake.write_text('#!/bin/sh\nprintf "%s|" "$@"; echo to-us >&3; echo to-log >&2\n')
    fake.chmod(0o755)
    text = command.emulator_script(str(fake), Path("/l/a,b.klog"), tmp_path / "messages")
    script.write_text(text)
    return subprocess.run(
        ["sh", script, *words], capture_output=True, text=True, timeout=600, check=False
    )


def test_console_and_messages_have_files_of_their_own(tmp_path: Path) -> None:
    done = run_emulator_script(
        tmp_path, "-kernel", "a b", "file,id=console,path=/dev/null", "x,path=/proc/self/fd/2", ""
    )
    assert done.stdout == ("-kernel|a b|file,id=console,path=/l/a,,b.klog|x,path=/proc/self/fd/3||")
    assert done.stderr == "to-us\n"
    assert (tmp_path / "messages").read_text() == "to-log\n"


def test_another_virtme_is_noticed(tmp_path: Path) -> None:
    done = run_emulator_script(tmp_path, "-kernel", "x", "file,id=con,path=/dev/null")
    assert done.returncode == 1
    assert "make deps" in done.stderr
    assert run_emulator_script(tmp_path, "--version").returncode == 0


def test_emulation_is_forced_and_multithreaded() -> None:
    words = words_of(GuestSpec())
    assert "--disable-kvm" in words
    assert value_after(words, "-accel") == "tcg,thread=multi"
    assert {"pti=off", "no_timer_check", "norandmaps"} <= set(words)


def test_kvm_leaves_the_choice_to_virtme() -> None:
    words = words_of(GuestSpec(), "kvm")
    assert "--disable-kvm" not in words
    assert "-accel" not in words
    assert not {"pti=off", "no_timer_check", "norandmaps"} & set(words)


def test_icount_is_single_threaded() -> None:
    words = words_of(GuestSpec(cpus=1, icount=True))
    assert value_after(words, "-accel") == "tcg,thread=single"
    assert value_after(words, "-icount") == "shift=0,sleep=off"


def test_users_arguments_come_last() -> None:
    words = command.kernel_arguments(GuestSpec(append=("pti=on",)), "tcg")
    assert words.index("pti=on") > words.index("pti=off")
    assert words_of(GuestSpec(qemu_args=("-s", "-S")))[-2:] == ["-s", "-S"]


def test_only_the_debug_kernel_poisons() -> None:
    assert "page_poison=1" in command.kernel_arguments(GuestSpec(kernel="debug"), "tcg")
    assert "page_poison=1" not in command.kernel_arguments(GuestSpec(kernel="run"), "tcg")


def test_nodes_share_memory_and_cpus_exactly() -> None:
    words = words_of(GuestSpec(cpus=5, memory="1000M", numa=3))
    nodes = [words[i + 1] for i, word in enumerate(words) if word == "--numa"]
    assert nodes == ["333M,cpus=0-0", "333M,cpus=1-1", "334M,cpus=2-4"]


def test_null_blk_latency_is_in_nanoseconds() -> None:
    spec = GuestSpec(disks=(parse_disk("null_blk:50"),))
    words = command.kernel_arguments(spec, "tcg")
    assert "null_blk.completion_nsec=50000" in words
    assert "null_blk.irqmode=2" in words


def test_image_is_attached_without_ever_changing(tmp_path: Path) -> None:
    image = tmp_path / "a,b.img"
    image.touch()
    words = words_of(GuestSpec(disks=(parse_disk(f"image:{image}"),)))
    drive = value_after(words, "-drive")
    assert "snapshot=on" in drive
    assert drive.endswith("a,,b.img")


def test_directories_that_virtme_hides_are_exported_again() -> None:
    hidden = command.masked([Path("/var/tmp/x"), Path("/home/a"), Path("/run/user/0/b")])
    assert hidden == ["/run/user/0/b", "/var/tmp/x"]


@pytest.mark.parametrize(
    "disks",
    [
        (),
        (DiskSpec("null_blk", "10"),),
        (DiskSpec("brd-ext4"), DiskSpec("brd-ext4", "64M")),
        (DiskSpec("image", "/i", mount="/a b/it's"),),
    ],
)
def test_guest_script_is_valid_shell(disks: tuple[DiskSpec, ...], tmp_path: Path) -> None:
    spec = GuestSpec(disks=disks, environment=(("A", 'it\'s "$HOME"'),))
    script = tmp_path / "guest.sh"
    script.write_text(command.guest_script(spec, ["echo", "a b", "$(x)"], Path("/tmp/a b")))
    done = subprocess.run(["sh", "-n", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_second_ram_disk_is_another_device() -> None:
    spec = GuestSpec(disks=(DiskSpec("brd-ext4"), DiskSpec("null_blk"), DiskSpec("brd-ext4")))
    script = command.guest_script(spec, ["true"], Path("/"))
    assert "/dev/ram0 /run/disk/0" in script
    assert "/dev/ram1 /run/disk/2" in script


def test_build_directory_is_that_of_the_scripts(root: Path) -> None:
    done = subprocess.run(
        [root / "scripts" / "paths"], capture_output=True, text=True, timeout=600, check=True
    )
    assert str(paths.build_dir()) == done.stdout.strip()


def test_build_directory_can_be_chosen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEASEFIRE_BUILD", "/some/where")
    done = subprocess.run(
        [root / "scripts" / "paths"], capture_output=True, text=True, timeout=600, check=True
    )
    assert str(paths.build_dir()) == done.stdout.strip() == "/some/where"


@pytest.mark.parametrize("busybox", [True, False])
def test_stand_ins_are_valid_shell(
    busybox: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "_BUSYBOX", tmp_path / ("folder" if busybox else "nosuch"))
    folder = tmp_path / "folder"
    folder.mkdir()
    assert start.path_for_init(folder, tmpfiles=False) == [f"PATH={folder}/programs"]
    programs = sorted((folder / "programs").iterdir())
    assert [program.name for program in programs] == ["systemd-tmpfiles", "udevadm"]
    for program in programs:
        assert os.access(program, os.X_OK)
        subprocess.run(["sh", "-n", program], check=True, timeout=600)
        assert (f"{folder} mkdir" in program.read_text()) == busybox
    subprocess.run(["sh", programs[1], "trigger"], check=True, timeout=600)


def test_services_have_the_real_tmpfiles(tmp_path: Path) -> None:
    start.path_for_init(tmp_path, tmpfiles=True)
    assert [program.name for program in (tmp_path / "programs").iterdir()] == ["udevadm"]


@pytest.mark.parametrize("name", ["a b", "a'b", "a:b"])
def test_path_that_needs_quotes_is_left_out(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    assert start.path_for_init(folder, tmpfiles=True) == []
    assert not list(folder.iterdir())
