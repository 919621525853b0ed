# SPDX-License-Identifier: GPL-2.0-only
"""The images of `--data`: what is in them, who may read them, which are kept, and for how long.

A shell script stands in for mke2fs where a copy must take long, or something must happen during it.
"""

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ceasefire.errors import Failure, UsageError
from ceasefire.vm import disks

MKE2FS = "/usr/sbin/mke2fs"
WAIT = 600.0
COPY = """
import pathlib, sys
from ceasefire.vm import disks
print(disks.ext4_image(pathlib.Path(sys.argv[1])), flush=True)
"""


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    """Let the images go that a test has asked for, as the end of a process does."""
    yield
    disks.release()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a small directory tree with a name that needs quoting."""
    folder = tmp_path / "a tree"
    (folder / "sub").mkdir(parents=True)
    (folder / "one.txt").write_text("one\n")
    (folder / "sub" / "two.txt").write_text("two\n")
    return folder


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the build directory to an empty place beside the tree."""
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / ".ceasefire-build").touch()
    monkeypatch.setenv("CEASEFIRE_BUILD", str(folder))
    return folder


@pytest.fixture
def stand_in(build: Path) -> Callable[[str], None]:
    """Return a function that makes a script the mke2fs of this build directory."""

    def make(text: str) -> None:
        script = build / "venv" / "bin" / "mke2fs"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        script.chmod(0o755)

    return make


def debugfs(image: Path, request: str) -> str:
    """Return what debugfs prints for a request."""
    done = subprocess.run(
        ["/usr/sbin/debugfs", "-R", request, image],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=True,
    )
    return done.stdout


def start(folder: Path, root: Path) -> "subprocess.Popen[str]":
    """Start a process of its own that makes an image of a folder."""
    return subprocess.Popen(
        [sys.executable, "-c", COPY, folder],
        env={**os.environ, "PYTHONPATH": str(root / "cli")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Say whether a process is there that has not ended."""
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False


def images(build: Path) -> list[Path]:
    """Return the images that there are."""
    return sorted((build / "disks").glob("data-*.ext4"))


def test_image_holds_the_files_and_is_kept(tree: Path, build: Path) -> None:
    image = disks.ext4_image(tree)
    made = image.stat().st_ino
    assert disks.ext4_image(tree).stat().st_ino == made
    assert debugfs(image, "cat /sub/two.txt") == "two\n"
    assert images(build) == [image]


def test_failed_image_leaves_nothing(
    tree: Path, build: Path, stand_in: Callable[[str], None]
) -> None:
    stand_in("echo 'mke2fs: no good' >&2; exit 1")
    with pytest.raises(Failure, match=r"no image of .* could be made: mke2fs: no good"):
        disks.ext4_image(tree)
    assert not list((build / "disks").glob("*-*"))


# Who may read it


@pytest.mark.parametrize("mask", [0, 0o777])
def test_image_is_private_at_all_times(
    mask: int, tree: Path, build: Path, stand_in: Callable[[str], None]
) -> None:
    seen = build / "seen"
    stand_in(
        f'for image; do :; done; for word in "$@"; do [ -f "$word" ] && '
        f'stat -c %a "$word" "${{word%/*}}" >>{seen}; done; exec {MKE2FS} "$@"'
    )
    before = os.umask(mask)
    try:
        image = disks.ext4_image(tree)
    finally:
        os.umask(before)
    assert seen.read_text().split() == ["600", "700"]
    assert stat.S_IMODE(image.stat().st_mode) == 0o600
    assert stat.S_IMODE(image.parent.stat().st_mode) == 0o700


def test_folder_of_images_becomes_private(tree: Path, build: Path) -> None:
    folder = build / "disks"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    old = folder / "data-0123456789abcdef.ext4"
    old.touch()
    old.chmod(0o644)
    disks.ext4_image(tree)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not old.exists() or stat.S_IMODE(old.stat().st_mode) == 0o600


def test_folder_of_images_that_is_a_link_is_refused(
    tree: Path, build: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (build / "disks").symlink_to(elsewhere)
    with pytest.raises(Failure, match="CEASEFIRE_BUILD"):
        disks.ext4_image(tree)
    assert not list(elsewhere.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_folder_of_images_of_another_user_is_refused(tree: Path, build: Path) -> None:
    (build / "disks").mkdir(parents=True)
    os.chown(build / "disks", 65534, 65534)
    with pytest.raises(Failure, match="another user"):
        disks.ext4_image(tree)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_modes_and_owners_are_kept(tree: Path, build: Path) -> None:
    (tree / "one.txt").chmod(0o600)
    os.chown(tree / "one.txt", 1234, 4321)
    tree.chmod(0o2710)
    os.chown(tree, 77, 88)
    tree.chmod(0o2710)
    image = disks.ext4_image(tree)
    words = debugfs(image, "stat /one.txt").split()
    assert [words[words.index(name) + 1] for name in ("Mode:", "User:", "Group:")] == [
        *("0600", "1234", "4321")
    ]
    words = debugfs(image, "stat /").split()
    assert [words[words.index(name) + 1] for name in ("Mode:", "User:", "Group:")] == [
        *("02710", "77", "88")
    ]


# What is the same folder


def test_changed_file_makes_another_image_and_drops_the_old_one(tree: Path, build: Path) -> None:
    first = disks.ext4_image(tree)
    (tree / "one.txt").write_text("something else\n")
    disks.release()
    second = disks.ext4_image(tree)
    assert second != first
    assert images(build) == [second]


def test_file_that_was_changed_behind_its_time(tree: Path, build: Path) -> None:
    file = tree / "one.txt"
    before = file.stat()
    first = disks.ext4_image(tree)
    file.write_text("ONE\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert debugfs(first, "cat /one.txt") == "one\n"
    assert debugfs(disks.ext4_image(tree), "cat /one.txt") == "ONE\n"


def test_file_that_took_the_place_of_another(tree: Path, build: Path) -> None:
    file = tree / "one.txt"
    before = file.stat()
    disks.ext4_image(tree)
    fresh = tree / "fresh"
    fresh.write_text("ONE\n")
    os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.replace(file)
    folder = tree.stat()
    os.utime(tree, ns=(folder.st_atime_ns, folder.st_mtime_ns))
    assert debugfs(disks.ext4_image(tree), "cat /one.txt") == "ONE\n"


def test_link_that_leads_elsewhere_now(tree: Path, build: Path) -> None:
    link = tree / "link"
    link.symlink_to("one.txt")
    disks.ext4_image(tree)
    link.unlink()
    link.symlink_to("two.txt")
    assert '"two.txt"' in debugfs(disks.ext4_image(tree), "stat /link")


def test_file_that_changes_while_it_is_copied(
    tree: Path, build: Path, stand_in: Callable[[str], None]
) -> None:
    stand_in(f"echo more >>'{tree}/sub/two.txt'; exec {MKE2FS} \"$@\"")
    with pytest.raises(Failure, match="changed while it was copied"):
        disks.ext4_image(tree)
    assert not list((build / "disks").glob("*-*"))


def test_file_that_was_changed_just_before(tree: Path, build: Path) -> None:
    # A clock of files may stand still for some milliseconds: what is written within them must not
    # look as it did before.
    for number in range(20):
        (tree / "one.txt").write_text(f"{number:02}\n")
        assert debugfs(disks.ext4_image(tree), "cat /one.txt") == f"{number:02}\n"


# How much is kept


def test_many_folders_of_one_run_all_stay(tmp_path: Path, build: Path) -> None:
    made = []
    for number in range(9):
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        (folder / "file").write_text("content")
        made.append(disks.ext4_image(folder))
    assert all(image.exists() for image in made)


def test_image_in_use_by_another_run_stays(
    tree: Path, tmp_path: Path, build: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "KEPT_BYTES", 0)
    text = f"{COPY}sys.stdin.read()"
    user = subprocess.Popen(
        [sys.executable, "-c", text, tree],
        env={**os.environ, "PYTHONPATH": str(root / "cli")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert user.stdout is not None
    used = Path(user.stdout.readline().strip())
    (tree / "one.txt").write_text("changed meanwhile\n")
    mine = disks.ext4_image(tree)
    assert images(build) == sorted([used, mine])
    user.communicate(timeout=WAIT)
    disks.release()
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    assert images(build) == sorted([used, mine])
    last = disks.ext4_image(other)
    assert images(build) == [last]


def test_images_are_dropped_by_size_and_the_oldest_first(
    tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for number in range(4):
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        (folder / "file").write_text("content")
        made.append(disks.ext4_image(folder))
        os.utime(made[-1], (time.time() - 100 + number,) * 2)
        disks.release()
    each = made[0].stat().st_blocks * 512
    monkeypatch.setattr(disks, "KEPT_BYTES", each * 5 // 2)
    disks.ext4_image(tmp_path / "folder0")
    assert images(build) == sorted([made[0], made[3]])


def test_images_are_dropped_by_age(tmp_path: Path, tree: Path, build: Path) -> None:
    old = disks.ext4_image(tree)
    disks.release()
    long_ago = time.time() - disks.KEPT_SECONDS - 60
    os.utime(old, (long_ago, long_ago))
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    assert images(build) == [old]
    assert images(build) != [disks.ext4_image(other), old]
    assert not old.exists()


def test_image_of_a_deleted_folder_goes(tmp_path: Path, tree: Path, build: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "secret").write_text("deleted\n")
    gone = disks.ext4_image(other)
    disks.release()
    (other / "secret").unlink()
    other.rmdir()
    kept = disks.ext4_image(tree)
    assert not gone.exists()
    assert images(build) == [kept]
    assert len(list((build / "disks").iterdir())) == 3


def test_sparse_file_counts_and_is_copied_by_what_it_holds(tree: Path, build: Path) -> None:
    with (tree / "sparse").open("wb") as file:
        file.write(b"begin")
        file.truncate(64 << 30)
        file.seek(-3, os.SEEK_END)
        file.write(b"end")
    image = disks.ext4_image(tree)
    assert image.stat().st_size < 1 << 30
    assert image.stat().st_blocks * 512 < 256 << 20
    words = debugfs(image, "stat /sparse").split()
    assert words[words.index("Size:") + 1] == str(64 << 30)
    assert debugfs(image, "cat /one.txt") == "one\n"


def test_no_room_is_said_before_anything_is_copied(
    tree: Path, build: Path, stand_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(f"touch {build}/started; exit 1")
    monkeypatch.setattr(disks, "free_bytes", lambda _place: 1 << 20)
    with pytest.raises(Failure, match=r"needs .* MiB .* 1 MiB"):
        disks.ext4_image(tree)
    assert not (build / "started").exists()
    assert not list((build / "disks").glob("*-*"))


# Interruption, and others at the same time


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda n: n.name
)
def test_interrupted_copy_leaves_nothing(
    number: signal.Signals, tree: Path, build: Path, stand_in: Callable[[str], None], root: Path
) -> None:
    pidfile = build / "pid"
    # As deaf as can be.
    stand_in(f"trap '' INT TERM HUP; echo $$ >{pidfile}.new; mv {pidfile}.new {pidfile}; sleep 600")
    process = start(tree, root)
    until(pidfile.exists, "the copy did not start")
    pid = int(pidfile.read_text())
    assert list((build / "disks").glob("new-*"))
    process.send_signal(number)
    process.communicate(timeout=WAIT)
    until(lambda: not is_alive(pid), "mke2fs outlived the command")
    if number != signal.SIGKILL:
        assert not list((build / "disks").glob("*-*"))
    stand_in(f'exec {MKE2FS} "$@"')
    image = disks.ext4_image(tree)
    assert images(build) == [image]
    assert not list((build / "disks").glob("new-*"))


def test_two_runs_at_once_copy_once(
    tree: Path, build: Path, stand_in: Callable[[str], None], root: Path
) -> None:
    started, go = build / "started", build / "go"
    stand_in(f'echo x >>{started}; while [ ! -e {go} ]; do sleep 0.05; done; exec {MKE2FS} "$@"')
    first = start(tree, root)
    until(started.exists, "the copy did not start")
    second = start(tree, root)
    assert second.stderr is not None
    assert "waiting" in second.stderr.readline()
    assert list((build / "disks").glob("new-*"))
    go.touch()
    answers = [process.communicate(timeout=WAIT)[0] for process in (first, second)]
    assert answers[0] == answers[1] == f"{images(build)[0]}\n"
    assert started.read_text() == "x\n"


# Odd folders


def test_all_kinds_of_files(tree: Path, build: Path) -> None:
    (tree / "out").symlink_to("/etc/hostname")
    (tree / "broken").symlink_to("no where")
    os.link(tree / "one.txt", tree / "again")
    os.mkfifo(tree / "fifo")
    (tree / "two\nlines").write_text("newline\n")
    (tree / os.fsdecode(b"\xff\xfe")).write_text("bytes\n")
    (tree / "-rf").write_text("dash\n")
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(tree):
        listener.bind("socket")
        image = disks.ext4_image(tree)
    assert '"/etc/hostname"' in debugfs(image, "stat /out")
    assert "Links: 2" in debugfs(image, "stat /again")
    assert "Type: FIFO" in debugfs(image, "stat /fifo")
    assert debugfs(image, "cat /-rf") == "dash\n"
    raw = subprocess.run(
        ["/usr/sbin/debugfs", "-R", "ls -p /", image], capture_output=True, timeout=WAIT, check=True
    )
    assert b"/two\nlines/" in raw.stdout
    assert b"/\xff\xfe/" in raw.stdout


@pytest.mark.parametrize("name", [b"-d", b"\xff", b"a\nb", b"it's, =\"x"])
def test_folder_with_an_odd_name(name: bytes, tmp_path: Path, build: Path) -> None:
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    (folder / "file").write_text("content\n")
    with contextlib.chdir(tmp_path):
        image = disks.ext4_image(Path(os.fsdecode(name)))
        assert disks.ext4_image(folder) == image
    assert debugfs(image, "cat /file") == "content\n"


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        folder = Path(place)
        folder.chmod(0o755)
        (folder / "open").touch()
        (folder / "secret").touch(0o000)
        before = os.geteuid()
        if before == 0:
            os.seteuid(65534)
        try:
            with pytest.raises(UsageError, match=r"secret.*Permission denied"):
                disks.survey(folder)
            if before == 0:
                os.seteuid(0)
            (folder / "secret").unlink()
            (folder / "closed").mkdir(0o000)
            if before == 0:
                os.seteuid(65534)
            with pytest.raises(UsageError, match=r"closed.*Permission denied"):
                disks.survey(folder)
        finally:
            os.seteuid(before)


def test_empty_directory_is_wrong_use(tmp_path: Path, build: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="empty"):
        disks.ext4_image(tmp_path / "empty")


def test_directory_that_is_none(tmp_path: Path, build: Path) -> None:
    with pytest.raises(UsageError, match="no such directory"):
        disks.ext4_image(tmp_path / "nothing")


def test_folder_that_holds_the_images_is_wrong_use(tmp_path: Path, build: Path) -> None:
    with pytest.raises(UsageError, match="CEASEFIRE_BUILD"):
        disks.ext4_image(tmp_path)
