# SPDX-License-Identifier: GPL-2.0-only
"""The commands are often run as root and in a folder of somebody else. Nothing is run that the
folder or the environment offers, and what a user has built is found by root.
"""

import os
import pwd
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

LIMIT = 600
STRANGER = 65534
# What the start of Python and of our commands looks for, as a module and as a package.
MODULES = ["ceasefire", "json", "argparse", "importlib", "runpy", "rich", "sitecustomize"]
MODULES += ["usercustomize", "site", "encodings", "tests", "venv", "pip", "jinja2", "numpy"]
# What our scripts call before and after they know where they are.
PROGRAMS = ["readlink", "dirname", "basename", "sha256sum", "cut", "stat", "id", "getent"]
PROGRAMS += ["python3", "python", "sh", "env", "qemu-system-x86_64", "virtme-run", "cat", "ccache"]


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """Return the file that is there when something foreign was run."""
    return tmp_path / "ran"


@pytest.fixture
def hostile(tmp_path: Path, ran: Path) -> Path:
    """Return a folder with everything that somebody may hope to be run."""
    folder = tmp_path / "hostile"
    python = f"import os\nos.close(os.open({str(ran)!r}, os.O_CREAT))\n"
    shell = f"#!/bin/sh\n: >{shlex.quote(str(ran))}\n"
    for module in MODULES:
        (folder / module).mkdir(parents=True)
        (folder / module / "__init__.py").write_text(python)
        (folder / module / "__main__.py").write_text(python)
        (folder / "alone").mkdir(exist_ok=True)
        (folder / "alone" / f"{module}.py").write_text(python)
    for name in (*PROGRAMS, "scripts/paths", "scripts/python", "build/venv/bin/python"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(shell)
        (folder / name).chmod(0o755)
    site = folder / ".local" / f"lib/python3.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    (site / "usercustomize.py").write_text(python)
    (site / "some.pth").write_text(f"import os; os.close(os.open({str(ran)!r}, os.O_CREAT))\n")
    (folder / "start.py").write_text(python)
    return folder


# Variables that people have set, or that `sudo -E` takes over.
VARIABLES = [
    {},
    {"PYTHONPATH": "."},
    {"PYTHONPATH": "{hostile}"},
    {"PYTHONPATH": "{hostile}/alone"},
    {"PYTHONHOME": "{hostile}"},
    {"PYTHONSTARTUP": "{hostile}/start.py", "PYTHONINSPECT": ""},
    {"PYTHONUSERBASE": "{hostile}/.local"},
    {"PYTHONPLATLIBDIR": "{hostile}"},
    {"PATH": ":{path}"},
    {"PATH": ".:{path}"},
    {"PATH": "{path}:"},
    {"PATH": "alone/..:{path}"},
    {"CDPATH": "{hostile}"},
    {"CDPATH": "."},
]


def call(
    words: Sequence[str | Path], cwd: Path, variables: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
    environment = dict(os.environ, PATH=path)
    for name, value in variables.items():
        environment[name] = value.format(hostile=cwd, path=path)
    return subprocess.run(
        words,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT,
        check=False,
    )


@pytest.mark.parametrize("variables", VARIABLES, ids=lambda v: " ".join(map("=".join, v.items())))
@pytest.mark.parametrize("place", [".", "alone"])
def test_the_command_line_runs_nothing_foreign(
    root: Path, hostile: Path, ran: Path, variables: dict[str, str], place: str
) -> None:
    done = call([root / "ceasefire", "--version"], hostile / place, variables)
    assert not ran.exists()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ceasefire ")
    assert done.stderr == ""


def test_doctor_runs_nothing_foreign(root: Path, hostile: Path, ran: Path) -> None:
    for variables in ({}, {"PATH": ":{path}:", "PYTHONPATH": "."}):
        done = call([root / "ceasefire", "doctor"], hostile, variables)
        assert not ran.exists()
        assert "virtme-ng" in done.stdout
        assert str(hostile) not in done.stdout


@pytest.mark.parametrize("variables", [{}, {"PYTHONPATH": "."}, {"PATH": ":{path}"}])
def test_the_test_driver_runs_nothing_foreign(
    root: Path, hostile: Path, ran: Path, variables: dict[str, str]
) -> None:
    done = call([root / "tests" / "run", "--list"], hostile, variables)
    assert not ran.exists()
    assert "cli/unit" in done.stdout


def test_a_relative_build_folder_is_refused(root: Path, hostile: Path, ran: Path) -> None:
    for program, word in (("ceasefire", "--version"), ("tests/run", "--list")):
        done = call([root / program, word], hostile, {"CEASEFIRE_BUILD": "build"})
        assert not ran.exists()
        assert done.returncode != 0
        assert "absolute path" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_relative_cache_is_ignored(root: Path, hostile: Path) -> None:
    own = {"CEASEFIRE_BUILD": "", "HOME": "{hostile}"}
    code = "import sys; sys.path.insert(0, sys.argv[1]); from ceasefire import paths; "
    code += "print(paths.build_dir())"
    for cache in ("", "relative", "./relative"):
        shell = call([root / "scripts" / "paths"], hostile, {**own, "XDG_CACHE_HOME": cache})
        words: list[str | Path] = [sys.executable, "-I", "-c", code, root / "cli"]
        python = call(words, hostile, {**own, "XDG_CACHE_HOME": cache})
        assert shell.stdout == python.stdout
        assert shell.stdout.startswith(f"{hostile}/.cache/ceasefire/")


def test_a_search_path_for_cd_leads_nowhere_else(root: Path, hostile: Path) -> None:
    own = call(["scripts/paths"], root, {})
    assert own.returncode == 0
    assert call(["scripts/paths"], root, {"CDPATH": str(hostile)}).stdout == own.stdout
    code = '. scripts/lib.sh && echo "$ROOT"'
    assert call(["bash", "-c", code], root, {"CDPATH": str(hostile)}).stdout == f"{root}\n"


def fake_python(folder: Path, text: str) -> None:
    python = folder / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{text}\n")
    python.chmod(0o755)


def test_the_environment_of_a_command_stays(root: Path, tmp_path: Path) -> None:
    fake_python(tmp_path / "build", "exec env")
    variables = {"CEASEFIRE_BUILD": str(tmp_path / "build"), "PYTHONPATH": "/own/modules"}
    done = call([root / "ceasefire", "run"], tmp_path, variables)
    python = [line for line in done.stdout.splitlines() if line.startswith("PYTHON")]
    assert "PYTHONPATH=/own/modules" in python
    assert sorted(python) == sorted(
        {f"{k}={v}" for k, v in os.environ.items() if k.startswith("PYTHON") and k != "PYTHONPATH"}
        | {"PYTHONPATH=/own/modules"}
    )


def test_a_python_that_strangers_can_change_is_not_run(
    root: Path, tmp_path: Path, ran: Path
) -> None:
    build = tmp_path / "build"
    fake_python(build, f": >{shlex.quote(str(ran))}")
    build.chmod(0o777)
    done = call([root / "ceasefire", "doctor"], tmp_path, {"CEASEFIRE_BUILD": str(build)})
    assert not ran.exists()
    assert done.returncode == 1
    assert "strangers" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
class TestRoot:
    """Root in the clone of a user."""

    @pytest.fixture
    def clone(self, root: Path, tmp_path: Path) -> Path:
        """Return a clone of a user's, as far as it is needed."""
        clone = tmp_path / "clone"
        (clone / "kernel").mkdir(parents=True)
        shutil.copy(root / "ceasefire", clone)
        for part in ("scripts", "cli/ceasefire"):
            shutil.copytree(root / part, clone / part)
        subprocess.run(["chown", "-R", str(STRANGER), clone], check=True)
        return clone

    @pytest.fixture
    def built(self, clone: Path, tmp_path: Path) -> Path:
        """Return the build folder of that user, who has run `make deps` and `make tools`."""
        home = tmp_path / "home"
        env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        done = subprocess.run([clone / "scripts/paths"], env=env, capture_output=True, check=True)
        folder = Path(done.stdout.decode().rstrip("\n"))
        # The real packages, but a Python that says that it was taken.
        program = Path(sys.executable).parent / "python"
        fake_python(folder, f'echo taken >&2\nexec {shlex.quote(str(program))} "$@"')
        library = folder / "tools/lib/preload/libceasefire-preload.so"
        library.parent.mkdir(parents=True)
        library.touch()
        subprocess.run(["chown", "-R", str(STRANGER), home], check=True)
        return folder

    def call(
        self, clone: Path, built: Path, code: str, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run the command line as root with a home of root's, where the user's home is `built`."""
        tools = clone.parent / "bin"
        tools.mkdir(exist_ok=True)
        entry = f"user:x:{STRANGER}:{STRANGER}::{built.parents[2]}:/bin/sh"
        (tools / "getent").write_text(f"#!/bin/sh\n[ $2 = {STRANGER} ] && echo {entry}\n")
        (tools / "getent").chmod(0o755)
        root_home = clone.parent / "root"
        root_home.mkdir(exist_ok=True)
        env = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(root_home), **variables}
        words: list[str | Path] = [clone / "ceasefire", *shlex.split(code)]
        return subprocess.run(
            words, cwd="/", env=env, capture_output=True, text=True, timeout=LIMIT, check=False
        )

    def test_the_packages_of_the_owner_are_found(self, clone: Path, built: Path) -> None:
        done = self.call(clone, built, "advise --help")
        assert done.returncode == 0, done.stderr
        assert done.stderr == "taken\n"

    def test_the_packages_of_who_called_sudo_are_found(self, clone: Path, built: Path) -> None:
        subprocess.run(["chown", "-R", "0", clone], check=True)
        assert self.call(clone, built, "advise --help", SUDO_UID=str(STRANGER)).stderr == "taken\n"
        # Without sudo the user has no part in it.
        assert "taken" not in self.call(clone, built, "advise --help").stderr

    def test_nothing_of_a_third_user_is_run(self, clone: Path, built: Path) -> None:
        subprocess.run(["chown", "-R", "1", built], check=True)
        done = self.call(clone, built, "advise --help")
        assert done.returncode == 1
        assert "belongs to a stranger" in done.stderr
        assert "taken" not in done.stderr

    def test_what_the_owner_has_built_is_found(
        self, clone: Path, built: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        from ceasefire import paths  # noqa: PLC0415
        from ceasefire.launch import preload  # noqa: PLC0415

        entry = pwd.struct_passwd(
            ("user", "x", STRANGER, STRANGER, "", str(built.parents[2]), "/bin/sh")
        )
        monkeypatch.setattr(pwd, "getpwuid", lambda _user: entry)
        monkeypatch.setattr(paths, "checkout", lambda: clone)
        monkeypatch.setattr(paths, "SYSTEM_LIB_DIRS", ())
        monkeypatch.delenv("CEASEFIRE_BUILD", raising=False)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path / "root"))
        assert preload.require_library().is_relative_to(built)
        # What root makes is root's own.
        assert paths.logs_dir().is_relative_to(tmp_path / "root")
