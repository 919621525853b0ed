# SPDX-License-Identifier: GPL-2.0-only
"""`make clean` and `make distclean` remove what was built and nothing else, whatever the build
folder is called and whatever CEASEFIRE_BUILD names. All in a made-up clone; should a script want to
remove something outside, a stand-in for rm says so instead.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 600
# A stand-in: no argument outside of the box is removed, and each is written down.
RM = """#!/bin/bash
for word; do
	[[ $word == -* ]] && continue
	path=$(realpath -ms -- "$word")
	if [[ $path != {box}/* ]]; then
		printf '%s\\n' "$word" >>{box}/escaped
		exit 1
	fi
done
exec /bin/rm "$@"
"""
EMPTY = hashlib.sha256(b"").hexdigest()


class Box:
    """A clone with the real scripts and nothing to build, a home, and the folders beside."""

    def __init__(self, root: Path, box: Path) -> None:
        self.box = box
        self.clone = box / "work" / "clone"
        self.home = box / "people" / "a name"
        self.bin = box / "bin"
        self.home.mkdir(parents=True)
        self.bin.mkdir()
        shutil.copytree(root / "scripts", self.clone / "scripts")
        shutil.copy(root / "Makefile", self.clone)
        for part in ("kernel", "emulator"):
            (self.clone / part / "hooks").mkdir(parents=True)
            (self.clone / part / "hooks" / "series").touch()
            (self.clone / part / "src").mkdir()
            (self.clone / part / "BASE").write_text(f"none 0-1 sha256:{EMPTY}\n")
        rm = self.bin / "rm"
        rm.write_text(RM.format(box=shlex.quote(str(box))))
        rm.chmod(0o755)

    def run(
        self, *words: str | Path, **variables: str | Path
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command with this home and these variables, and no others."""
        values = {"HOME": self.home, **variables}
        return subprocess.run(
            words,
            cwd=self.clone,
            env={"PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin"}
            | {name: str(value) for name, value in values.items() if value != ""},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=LIMIT,
            check=False,
        )

    def build(self, **variables: str | Path) -> Path:
        """Make the build folder as the scripts do, with something in each part of it."""
        code = '. scripts/lib.sh && with_lock tools && echo "$B"'
        done = self.run("bash", "-c", code, **variables)
        assert done.returncode == 0, done.stderr
        folder = Path(done.stdout.rstrip("\n"))
        for part in ("linux/build-run", "tools", "disks", "venv"):
            (folder / part).mkdir(parents=True)
            (folder / part / "file").touch()
        return folder

    def tree(self, part: str, folder: Path) -> Path:
        """Make a tree of one part; return it."""
        (self.box / "source").mkdir(exist_ok=True)
        (self.box / "source" / "a.c").write_text("int a;\n")
        tarball = self.box / "source.tar.xz"
        subprocess.run(["tar", "-C", self.box, "-cJf", tarball, "source"], check=True)
        digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
        suite = " suite" if part == "emulator" else ""
        (self.clone / part / "BASE").write_text(f"none 0-1 sha256:{digest}{suite}\n")
        shutil.rmtree(folder / "linux", ignore_errors=True)
        (folder / "qemu").mkdir(exist_ok=True)
        done = self.run(
            "scripts/tree",
            *(["--emulator"] if part == "emulator" else []),
            CEASEFIRE_SOURCE=tarball,
            CEASEFIRE_QEMU_SOURCE=tarball,
        )
        assert done.returncode == 0, done.stderr
        return folder / ("linux" if part == "kernel" else "qemu/tree")

    def refused(self, reason: str, *words: str | Path, **variables: str | Path) -> None:
        """Run what has to be refused with this reason, in one line of ours."""
        before = self.everything()
        done = self.run(*words, **variables)
        assert done.returncode != 0, done.stdout + done.stderr
        assert reason in done.stderr, done.stderr
        assert self.everything() == before
        assert not (self.box / "escaped").exists(), (self.box / "escaped").read_text()

    def everything(self) -> set[Path]:
        """Return all there is but locks and what git makes when it looks."""
        return {
            path
            for path in self.box.rglob("*")
            if not path.name.startswith(".lock") and ".git/" not in str(path)
        }


@pytest.fixture
def box(root: Path, tmp_path: Path) -> Box:
    return Box(root, tmp_path)


def test_clean_keeps_the_tree_and_the_packages(box: Box) -> None:
    folder = box.build()
    assert folder.is_relative_to(box.home / ".cache" / "ceasefire")
    # What the words of an unquoted path would mean.
    decoy = box.box / "people" / "a"
    decoy.mkdir()
    done = box.run("make", "clean")
    assert done.returncode == 0, done.stderr
    assert not (box.box / "escaped").exists(), (box.box / "escaped").read_text()
    assert decoy.exists()
    assert not any((folder / gone).exists() for gone in ("linux/build-run", "tools", "disks"))
    assert (folder / "venv" / "file").exists()


def test_distclean_removes_the_folder(box: Box) -> None:
    folder = box.build()
    done = box.run("make", "distclean")
    assert done.returncode == 0, done.stderr
    assert not folder.exists()
    assert box.run("make", "distclean").returncode == 0


@pytest.mark.parametrize("target", ["clean", "distclean"])
@pytest.mark.parametrize("home", ["", "relative", "."])
def test_no_home_no_cleaning(box: Box, target: str, home: str) -> None:
    box.refused("set it or CEASEFIRE_BUILD", "make", target, HOME=home)


@pytest.mark.parametrize("target", ["clean", "distclean", "deps"])
def test_makefile_from_elsewhere(box: Box, target: str) -> None:
    elsewhere = box.box / "elsewhere"
    (elsewhere / "scripts").mkdir(parents=True)
    for path in (box.clone / "scripts").iterdir():
        script = elsewhere / "scripts" / path.name
        script.write_text(f"#!/bin/sh\ntouch {elsewhere}/ran\necho {elsewhere}\n")
        script.chmod(0o755)
    command = f"cd {elsewhere} && make -f ../work/clone/Makefile {target}"
    box.refused("make -C FOLDER", "sh", "-c", command)


@pytest.mark.parametrize("target", ["clean", "distclean"])
def test_a_path_is_no_command(box: Box, target: str) -> None:
    name = box.box / "x;touch y;echo $(touch z) '"
    folder = box.build(CEASEFIRE_BUILD=name)
    assert folder == name
    done = box.run("make", target, CEASEFIRE_BUILD=name)
    assert done.returncode == 0, done.stderr
    assert not (name / "tools").exists()
    assert name.exists() == (target == "clean")
    found = {path.name for where in (box.box, box.clone) for path in where.iterdir()}
    assert not found & {"y", "z", "escaped"}


@pytest.mark.parametrize("folder", ["x;touch y", "build", "../clone"])
@pytest.mark.parametrize("target", ["clean", "distclean"])
def test_a_relative_build_folder_is_refused(box: Box, target: str, folder: str) -> None:
    box.refused("absolute path", "make", target, CEASEFIRE_BUILD=folder)


@pytest.mark.parametrize("variable", ["TESTS", "BENCH", "DEMO_CPUS"])
def test_variables_of_recipes_are_words(box: Box, variable: str) -> None:
    for script in ("install-deps", "tools-build", "kernel-build", "tree", "demo"):
        (box.clone / "scripts" / script).write_text("#!/bin/sh\n")
    (box.clone / "tests").mkdir()
    for script in ("tests/run", "ceasefire"):
        (box.clone / script).write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
        (box.clone / script).chmod(0o755)
    target = {"TESTS": "test", "BENCH": "bench", "DEMO_CPUS": "demo"}[variable]
    done = box.run("make", target, **{variable: "one two* ;touch y $(shell touch z) `touch z`"})
    assert done.returncode == 0, done.stderr
    assert not (box.clone / "y").exists()
    assert not (box.clone / "z").exists()
    assert variable == "DEMO_CPUS" or "[one][two*][;touch][y]" in done.stdout


PRECIOUS = ["work/clone", "work", "people/a name", "people", ".", "work/../work/clone/", "link"]


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("folder", PRECIOUS)
@pytest.mark.parametrize("target", ["clean", "distclean"])
def test_no_folder_with_the_clone_or_home_in_it(
    box: Box, target: str, folder: str, marked: bool
) -> None:
    (box.box / "link").symlink_to(box.clone)
    (box.home / "tools").mkdir()
    if marked:
        (box.box / folder / ".ceasefire-build").touch()
    box.refused("cannot be a build folder", "make", target, CEASEFIRE_BUILD=f"{box.box}/{folder}")
    box.refused("cannot be a build folder", "scripts/tree", CEASEFIRE_BUILD=f"{box.box}/{folder}")


@pytest.mark.parametrize("target", ["clean", "distclean"])
def test_not_the_root_folder(box: Box, target: str) -> None:
    box.refused("cannot be a build folder", "make", target, CEASEFIRE_BUILD="/")


@pytest.mark.parametrize("target", ["clean", "distclean"])
def test_no_folder_of_others(box: Box, target: str) -> None:
    other = box.box / "photos"
    (other / "tools").mkdir(parents=True)
    (other / "tools" / "file").touch()
    box.refused("ceasefire has not made it", "make", target, CEASEFIRE_BUILD=other)
    box.refused("new or empty", "scripts/tree", CEASEFIRE_BUILD=other)
    # A marker that points to one is none.
    (other / ".ceasefire-build").symlink_to(box.clone / "Makefile")
    box.refused("ceasefire has not made it", "make", target, CEASEFIRE_BUILD=other)


@pytest.mark.parametrize("target", ["clean", "distclean"])
def test_not_the_folder_of_another_clone(box: Box, target: str) -> None:
    folder = box.build(CEASEFIRE_BUILD=box.box / "build")
    (folder / ".ceasefire-build").write_text("/another/clone\n")
    box.refused("/another/clone", "make", target, CEASEFIRE_BUILD=folder)


@pytest.mark.parametrize("part", ["kernel", "emulator"])
@pytest.mark.parametrize(
    ("work", "reason"),
    [
        ("echo edit >>a.c", "not committed"),
        ("echo edit >>a.c && git commit -qam edit", "make save refuses"),
        ("echo edit >>a.c && git commit -qam edit -m 'Hook: a/b'", "that are not in"),
        ("touch new.c", "the new file new.c"),
        ("git checkout -qb x && git commit -q --allow-empty -m x && git checkout -q -", "heads/x"),
        ("echo edit >>a.c && git stash -q", "refs/stash"),
        ("printf x >.git/index", "what git cannot read"),
        ("mv .git/ceasefire .git/moved", "no tree of ceasefire"),
    ],
)
def test_work_that_is_not_saved_stays(box: Box, part: str, work: str, reason: str) -> None:
    folder = box.build()
    tree = box.tree(part, folder)
    subprocess.run(work, shell=True, cwd=tree, check=True, env={**os.environ, "HOME": "/none"})
    box.refused(reason, "make", "distclean")


def test_saved_trees_go(box: Box) -> None:
    folder = box.build()
    box.tree("emulator", folder)
    box.tree("kernel", folder)
    done = box.run("make", "distclean")
    assert done.returncode == 0, done.stderr
    assert not folder.exists()


@pytest.mark.parametrize("lock", [".lock-tree", ".lock-kernel-run", ".lock-deps", ".lock-emulator"])
@pytest.mark.parametrize("target", ["clean", "distclean"])
def test_not_while_somebody_builds(box: Box, target: str, lock: str) -> None:
    folder = box.build()
    with (folder / lock).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        box.refused("is in use", "make", target)


@pytest.mark.parametrize("target", ["clean", "distclean"])
def test_not_while_the_command_line_works_there(box: Box, target: str, root: Path) -> None:
    folder = box.build(CEASEFIRE_BUILD=box.box / "build")
    code = "from ceasefire import paths; paths.logs_dir(); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={"CEASEFIRE_BUILD": str(folder), "PYTHONPATH": str(root / "cli")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as user:
        assert user.stdin is not None
        assert user.stdout is not None
        user.stdout.readline()
        box.refused("is in use", "make", target, CEASEFIRE_BUILD=folder)
        user.stdin.close()
        assert user.wait(LIMIT) == 1
    assert box.run("make", target, CEASEFIRE_BUILD=folder).returncode == 0


def test_a_lock_of_a_removed_folder_is_none(box: Box) -> None:
    folder = box.build()
    with (folder / ".lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(box.home)}
        with subprocess.Popen(
            ["bash", "-c", '. scripts/lib.sh && with_lock tools && ls -A "$B"'],
            cwd=box.clone,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as waiting:
            assert waiting.stderr is not None
            assert "waiting" in waiting.stderr.readline()
            shutil.rmtree(folder)
            file.close()
            output = waiting.communicate(timeout=LIMIT)[0]
    assert waiting.returncode == 0
    assert {".lock", ".lock-tools", ".ceasefire-build"} <= set(output.split())


def test_an_interrupted_removal_can_go_on(box: Box) -> None:
    folder = box.build()
    tree = box.tree("kernel", folder)
    (folder / ".removing").touch()
    shutil.rmtree(tree / ".git" / "ceasefire")
    assert box.run("make", "distclean").returncode == 0
    assert not folder.exists()


def test_building_again_ends_a_removal(box: Box) -> None:
    folder = box.build()
    (folder / ".removing").touch()
    tree = box.tree("kernel", folder)
    (tree / "new.c").touch()
    box.refused("the new file new.c", "make", "distclean")
