# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire enable` and `disable`: in a tree, and on a machine whose systemd is made up."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from ceasefire import modes
from ceasefire.__main__ import main
from ceasefire.checks import services
from ceasefire.launch import prctl
from ceasefire.service import dropin, tree

ETC = "etc/systemd/system"
LIB = "usr/lib/systemd/system"
LAUNCHER = "/usr/libexec/ceasefire/ceasefire-exec"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libceasefire-preload.so"
WEB = "[Unit]\nDescription=A web server\n[Service]\nType=forking\nExecStart=-/usr/sbin/web start\n"
OURS = f"{ETC}/web.service.d/50-ceasefire.conf"
Captured = pytest.CaptureFixture[str]


def put(root: Path, path: str, text: str, *, mode: int = 0o644) -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make the tree of a machine with a service, and what ceasefire installs."""
    root = tmp_path / "root"
    for program in (LAUNCHER, "/usr/sbin/web", "/usr/bin/tool"):
        put(root, program, "\x7fELF", mode=0o755)
    put(root, LIBRARY, "")
    put(root, f"{LIB}/web.service", WEB)
    (root / ETC).mkdir(parents=True)
    return root


def enable(root: Path, *words: str) -> int:
    return main(["enable", "--root", str(root), *words])


def lines(root: Path) -> list[str]:
    """Return what the drop-in of the service sets."""
    text = (root / OURS).read_text(encoding="utf-8")
    found = [line for line in text.splitlines() if not line.startswith("#")]
    assert found[0] == "[Service]"
    return found[1:]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], "--fpr=0xffffffffffffffff"),
        (["--mode", "fpr", "--max-size", "2G"], "--fpr=0x80000000"),
        (["--context", "children"], "--fpr=0xffffffffffffffff --fpr-context=2"),
        (["--mode", "latr"], "--latr"),
        (["--mode", "sharers"], "--sharers"),
        (["--mode", "sharers+latr"], "--latr --sharers"),
        (["--mode", "fpr+sharers"], "--fpr=0xffffffffffffffff --sharers"),
    ],
)
def test_launcher_asks_for_the_mode(
    words: list[str], options: str, root: Path, capsys: Captured
) -> None:
    assert enable(root, "web", *words) == 0
    assert lines(root) == [
        "ExecStart=",
        f"ExecStart=-{LAUNCHER} {options} -- /usr/sbin/web start",
    ]
    out, err = capsys.readouterr()
    assert (out.count("\n"), err) == (1, "")
    assert f"/{OURS} written in {root}: " in out


def test_paths_take_the_library_and_no_launcher(root: Path) -> None:
    put(root, f"{ETC}/web.service.d/10-own.conf", "[Service]\nEnvironment=LD_PRELOAD=/x.so A=b\n")
    words = ["--path", "/srv/*", "--path", '/a "b" 5%', "--exclude", "/srv/tmp/*"]
    assert enable(root, "web.service", *words) == 0
    assert lines(root) == [
        r'Environment="CEASEFIRE_PATHS=/srv/*:/a \"b\" 5%%" '
        f'"LD_PRELOAD={LIBRARY}:/x.so" "CEASEFIRE_EXCLUDE=/srv/tmp/*"'
    ]
    assert enable(root, "web", "--path", "/srv/*", "--mode", "fpr+sharers") == 0
    assert [line.partition("=")[0] for line in lines(root)] == [
        *("Environment", "ExecStart", "ExecStart")
    ]


def test_every_line_of_a_unit_is_started_by_the_launcher(root: Path) -> None:
    text = (
        "[Service]\nType=oneshot\nExecStartPre=/usr/bin/tool pre\nExecStart=@/usr/bin/tool name a\n"
        "ExecStart=tool %i \\\n  $OPTIONS ; !/usr/sbin/web\nExecReload=/usr/bin/tool reload\n"
    )
    put(root, f"{LIB}/web.service", text)
    assert enable(root, "web", "--mode", "latr") == 0
    assert lines(root) == [
        "ExecStart=",
        f"ExecStart={LAUNCHER} --latr --argv0 name -- /usr/bin/tool a",
        f"ExecStart={LAUNCHER} --latr -- /usr/bin/tool %i  $OPTIONS",
        f"ExecStart=!{LAUNCHER} --latr -- /usr/sbin/web",
    ]


def test_again_writes_anew_and_never_on_top_of_itself(root: Path) -> None:
    assert enable(root, "web", "--mode", "latr") == 0
    first = (root / OURS).read_text()
    assert enable(root, "web", "--mode", "latr") == 0
    assert (root / OURS).read_text() == first
    put(root, f"{LIB}/web.service", WEB.replace("start", "begin --now"))
    assert enable(root, "web", "--mode", "sharers") == 0
    assert lines(root)[1] == f"ExecStart=-{LAUNCHER} --sharers -- /usr/sbin/web begin --now"
    assert list((root / OURS).parent.iterdir()) == [root / OURS]


def test_disable_leaves_nothing_of_ours_and_all_of_others(root: Path, capsys: Captured) -> None:
    before = sorted(root.rglob("*"))
    assert enable(root, "web") == 0
    assert main(["disable", "--root", str(root), "web"]) == 0
    assert sorted(root.rglob("*")) == before
    other = put(root, f"{ETC}/web.service.d/override.conf", "[Service]\nNice=1\n")
    assert enable(root, "web") == 0
    assert main(["disable", "--root", str(root), "web"]) == 0
    assert list(other.parent.iterdir()) == [other]
    capsys.readouterr()
    assert main(["disable", "--root", str(root), "web"]) == 2
    assert "web.service is not enabled in" in capsys.readouterr().err


def test_disable_of_what_is_gone_masked_or_has_another_name(root: Path) -> None:
    (root / ETC / "www.service").symlink_to(f"/{LIB}/web.service")
    assert enable(root, "www") == 0
    assert (root / OURS).exists()
    assert main(["disable", "--root", str(root), "www"]) == 0
    assert enable(root, "web") == 0
    (root / LIB / "web.service").unlink()
    assert main(["disable", "--root", str(root), "web"]) == 0
    put(root, f"{LIB}/web.service", WEB)
    assert enable(root, "web") == 0
    (root / ETC / "web.service").symlink_to("/dev/null")
    assert main(["disable", "--root", str(root), "web"]) == 0
    assert not (root / OURS).parent.exists()


def test_file_is_for_everybody_and_written_as_a_whole(root: Path) -> None:
    mask = os.umask(0o077)
    try:
        assert enable(root, "web") == 0
    finally:
        os.umask(mask)
    assert stat.S_IMODE((root / OURS).stat().st_mode) == 0o644
    assert stat.S_IMODE((root / OURS).parent.stat().st_mode) == 0o755
    assert list((root / OURS).parent.iterdir()) == [root / OURS]


def test_dry_run_prints_and_writes_nothing(root: Path, capsys: Captured) -> None:
    before = sorted(root.rglob("*"))
    assert enable(root, "web", "--mode", "latr", "--dry-run") == 0
    out = capsys.readouterr().out
    assert f"ExecStart=-{LAUNCHER} --latr -- /usr/sbin/web start\n" in out
    assert sorted(root.rglob("*")) == before


def test_links_do_not_lead_out_of_the_tree(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    folder = root / ETC / "web.service.d"
    folder.symlink_to(tmp_path / "outside")
    inside = root.joinpath(*(tmp_path / "outside").parts[1:])
    inside.mkdir(parents=True)
    assert enable(root, "web") == 0
    assert list((tmp_path / "outside").iterdir()) == []
    assert [path.name for path in inside.iterdir()] == ["50-ceasefire.conf"]


TEMPLATE = "[Service]\nExecStart=/usr/sbin/web %i\n"
REFUSED = [
    (["nosuch"], {}, 2, "there is no unit nosuch.service in"),
    (["web.socket"], {}, 2, "is no service"),
    (["a/b"], {}, 2, "is no name of a service"),
    (["db@"], {f"{LIB}/db@.service": TEMPLATE}, 2, "is a template: name an instance of it"),
    (["web"], {f"{ETC}/web.service": ""}, 1, "is masked: `systemctl unmask web.service` first"),
    (["web"], {f"{LIB}/web.service": "[Service]\nUser=a\n"}, 2, "has no ExecStart="),
    (
        ["db"],
        {f"{LIB}/db.service": "[Service]\nExecStart=/bin/true\n", f"{LIB}/db@.service": TEMPLATE},
        2,
        "starts nothing itself: name the unit that does, such as db@NAME",
    ),
    (["web", "--mode", "latr", "--mode", "sharers"], {}, 2, "such as --mode latr+sharers"),
    (["web", "--mode", "latr+latr"], {}, 2, "is no mode"),
    (["web", "--mode", "off"], {}, 2, "use `ceasefire disable UNIT`"),
    (["web", "--mode", "stock"], {}, 2, "use `ceasefire disable UNIT`"),
    (["web", "--mode", "nosuch"], {}, 2, "is no mode"),
    (["web", "--mode", "latr", "--path", "/x"], {}, 2, "--path is for FPR"),
    (["web", "--mode", "latr", "--context", "children"], {}, 2, "--context is for FPR"),
    (["web", "--mode", "sharers", "--context", "children"], {}, 2, "--context is for FPR"),
    (["web", "--path", "/x", "--max-size", "2G"], {}, 2, "--max-size goes with neither"),
    (["web", "--path", "/a:b"], {}, 2, "has no colon"),
    (["web", "--path", "/a\nb"], {}, 2, "no control characters"),
    (["web", "--now"], {}, 2, "leave --now or --root out"),
    (
        ["web"],
        {f"{ETC}/web.service.d/override.conf": "[Service]\nExecStart=\nExecStart=/bin/x\n"},
        1,
        "override.conf sets ExecStart= behind 50-ceasefire.conf",
    ),
    (["web"], {OURS: "[Service]\nNice=1\n"}, 1, "was not written by `ceasefire enable`"),
    (["web"], {f"{LIB}/web.service": '[Service]\nExecStart="/bin/x\n'}, 1, "cannot read ExecStart"),
    (["web"], {f"{LIB}/web.service": "[Service]\nExecStart=nosuch\n"}, 1, "which is not in /usr"),
    (["web"], {f"{LIB}/web.service": "[Service]\nExecStart=a/b\n"}, 1, "no absolute path"),
    (
        ["web", "--path", "/x"],
        {
            f"{LIB}/web.service": f"{WEB}EnvironmentFile=-/etc/default/web\n",
            "etc/default/web": "# x\nLD_PRELOAD=/y.so\n",
        },
        1,
        "/etc/default/web of web.service sets LD_PRELOAD",
    ),
    (
        ["web", "--path", "/x"],
        {f"{LIB}/web.service": f"{WEB}UnsetEnvironment=LD_PRELOAD\n"},
        1,
        "UnsetEnvironment= of web.service takes LD_PRELOAD away",
    ),
]


@pytest.mark.parametrize(
    ("words", "files", "status", "says"), REFUSED, ids=[case[3] for case in REFUSED]
)
def test_refused_with_one_line_and_nothing_changed(
    words: list[str],
    files: dict[str, str],
    *,
    status: int,
    says: str,
    root: Path,
    capsys: Captured,
) -> None:
    for path, text in files.items():
        put(root, path, text)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert enable(root, *words) == status
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("gone", "words", "says"),
    [
        (LAUNCHER, [], "ceasefire-exec is not installed in"),
        (LIBRARY, ["--path", "/x"], "libceasefire-preload.so is not installed in"),
    ],
)
def test_what_is_not_installed(
    gone: str, words: list[str], says: str, root: Path, capsys: Captured
) -> None:
    (root / gone[1:]).unlink()
    assert enable(root, "web", *words) == 1
    err = capsys.readouterr().err
    assert says in err
    assert f"`DESTDIR={root} meson install" in err


def test_nothing_is_left_when_the_disk_is_full(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    before = sorted(root.rglob("*"))
    monkeypatch.setattr(dropin, "write_whole", full)
    assert enable(root, "web") == 1
    assert capsys.readouterr().err == (
        f"ceasefire enable: cannot write /{OURS}: No space left on device\n"
    )
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("User=www\n", "gains privileges when it starts, so the kernel clears LATR and Sharers"),
        ("CPUSchedulingPolicy=fifo\n", "real-time ones (fifo), which Sharers leaves"),
        ("AppArmorProfile=-web\n", "AppArmor profile web must allow to execute ceasefire-exec"),
    ],
)
def test_what_is_lost_is_said(text: str, says: str, root: Path, capsys: Captured) -> None:
    (root / "usr/sbin/web").chmod(0o4755)
    put(root, f"{LIB}/web.service", WEB + text)
    assert enable(root, "web", "--mode", "latr+sharers") == 0
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("text", ["", "User=www\nNoNewPrivileges=yes\n", "User=root\n"])
def test_what_is_not_lost_is_not_said(text: str, root: Path, capsys: Captured) -> None:
    (root / "usr/sbin/web").chmod(0o4755)
    put(root, f"{LIB}/web.service", WEB + text)
    assert enable(root, "web", "--mode", "latr") == 0
    assert capsys.readouterr().err == ""


def test_systemd_takes_what_is_written(root: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd is not installed")
    for target in ("basic", "shutdown", "sysinit"):
        put(root, f"{LIB}/{target}.target", f"[Unit]\nDescription={target}\n")
    # A program whose failure is none, it would not look for.
    text = WEB.replace("=-", "=")
    text = f"{text}NoExecPaths=/\nExecPaths=/usr/sbin\nTemporaryFileSystem=/usr/libexec\n"
    put(root, f"{LIB}/web.service", text)

    def says() -> str:
        words = [verify, "verify", "--man=no", f"--root={root}", "web.service"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        return done.stdout + done.stderr

    assert enable(root, "web", "--path", '/a "b" 5% \\ ä', "--mode", "fpr+latr+sharers") == 0
    assert says() == ""
    assert enable(root, "web") == 0
    assert says() == ""
    # It looks at what is written, and at the program in it.
    (root / LAUNCHER[1:]).chmod(0o644)
    assert "ceasefire-exec is not executable" in says()


@pytest.fixture
def machine(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for a running machine of ceasefire; return where its systemctl notes its calls."""
    monkeypatch.setattr(tree, "choose", lambda _: tree.Tree(root, live=True))
    monkeypatch.setattr(modes, "SYSFS", tmp_path / "sysfs")
    monkeypatch.setattr(prctl, "available", lambda: True)
    for name, switch in (("fpr", "1"), ("latr", "never [ask] always"), ("sharers", "[never] ask")):
        put(tmp_path / "sysfs", f"{name}/enabled", f"{switch}\n")
    calls = tmp_path / "calls"
    script = f'#!/bin/sh\necho "$@" >>{calls}\n[ -z "$FAIL" ] || {{ echo "$FAIL" >&2; exit 4; }}\n'
    put(tmp_path, "bin/systemctl", script, mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    calls.touch()
    return calls


def test_systemd_is_told_and_the_user_what_comes_next(machine: Path, capsys: Captured) -> None:
    assert main(["enable", "web", "--mode", "latr"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].startswith(f"/{OURS} written: LATR for web.service")
    assert out.splitlines()[1:] == [
        "web.service goes on as before until `systemctl restart web.service`"
    ]
    assert err == ""
    assert main(["disable", "web"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"/{OURS} removed",
        "web.service goes on as before until `systemctl restart web.service`",
    ]
    assert machine.read_text() == "daemon-reload\n" * 2


def test_now_restarts_what_runs(machine: Path, capsys: Captured) -> None:
    assert main(["enable", "web", "--now"]) == 0
    assert main(["disable", "--now", "web"]) == 0
    assert machine.read_text() == "daemon-reload\ntry-restart web.service\n" * 2
    assert capsys.readouterr().out.count("web.service restarted, if it ran\n") == 2


def test_what_systemd_does_not_take_is_undone(
    root: Path, machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("FAIL", "Failed to reload daemon: \x1b[1mno bus\nmore")
    assert main(["enable", "web", "--mode", "latr"]) == 1
    assert capsys.readouterr().err == (
        "ceasefire enable: systemctl daemon-reload failed, so nothing was changed: "
        "Failed to reload daemon: \\x1b[1mno bus\n"
    )
    assert not (root / OURS).parent.exists()
    monkeypatch.setenv("FAIL", "")
    assert main(["enable", "web", "--mode", "latr"]) == 0
    before = (root / OURS).read_text()
    monkeypatch.setenv("FAIL", "no")
    assert main(["enable", "web", "--mode", "fpr"]) == 1
    assert main(["disable", "web"]) == 1
    assert (root / OURS).read_text() == before
    assert machine.read_text().count("daemon-reload") == 4


def test_restart_that_fails_says_how_to_go_back(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    script = Path(os.environ["PATH"].partition(":")[0]) / "systemctl"
    script.write_text(
        '#!/bin/sh\n[ "$1" = daemon-reload ] || { echo "Job failed." >&2; exit 1; }\n'
    )
    assert main(["enable", "web", "--now"]) == 1
    assert capsys.readouterr().err == (
        "ceasefire enable: web.service did not restart: Job failed.; "
        "`ceasefire disable web.service` takes it back\n"
    )


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("sharers", "Sharers is switched off: echo ask"),
        ("latr+sharers", "Sharers is switched off"),
        ("fpr", "this kernel has no FPR"),
    ],
)
def test_kernel_without_the_mode_is_status_77(
    mode: str, says: str, *, root: Path, machine: Path, tmp_path: Path, capsys: Captured
) -> None:
    if mode == "fpr":
        (tmp_path / "sysfs/fpr/enabled").unlink()
    assert main(["enable", "web", "--mode", mode]) == 77
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err
    assert not (root / OURS).exists()
    assert machine.read_text() == ""


def test_older_kernel_takes_the_library_for_all_files(
    root: Path, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prctl, "available", lambda: False)
    assert main(["enable", "web"]) == 0
    assert lines(root) == [f'Environment="CEASEFIRE_PATHS=*" "LD_PRELOAD={LIBRARY}"']
    assert machine.read_text() == "daemon-reload\n"


def test_all_that_are_enabled_are_found(root: Path) -> None:
    put(root, f"{LIB}/db@.service", TEMPLATE)
    assert enable(root, "web", "--mode", "latr") == 0
    assert enable(root, "db@main", "--path", "/a b", "--path", "/c'd") == 0
    put(root, f"{ETC}/other.service.d/50-ceasefire.conf", "[Service]\n")
    found = [(name, words) for name, words, _ in dropin.all_of(tree.Tree(root, live=False))]
    assert found == [
        (
            "db@main.service",
            [*("db@main.service", "--mode", "fpr"), "--path", "/a b", "--path", "/c'd"],
        ),
        ("web.service", ["web.service", "--mode", "latr"]),
    ]


def test_doctor_sees_a_unit_that_has_changed(root: Path, machine: Path) -> None:
    assert main(["enable", "web", "--mode", "latr", "--now"]) == 0
    live = tree.Tree(root, live=True)
    (good,) = services.checks(live)
    assert (good.name, good.result, good.needed) == ("web.service", "pass", False)
    assert good.found.startswith("LATR for web.service")
    put(root, f"{LIB}/web.service", WEB.replace("start", "begin"))
    (changed,) = services.checks(live)
    assert (changed.result, changed.fix) == (
        "info",
        "ceasefire enable web.service --mode latr",
    )
    assert main(changed.fix.split()[1:]) == 0
    assert services.checks(live)[0].result == "pass"
    (root / LIB / "web.service").unlink()
    (gone,) = services.checks(live)
    assert (gone.result, gone.found) == ("info", "there is no unit web.service")
    assert gone.fix.endswith(", or ceasefire disable web.service")
    assert machine.read_text().count("daemon-reload") == 2


@pytest.mark.parametrize("words", ["", "web.service --mode", "web.service --nosuch", "'"])
def test_doctor_withstands_a_damaged_dropin(words: str, root: Path) -> None:
    assert enable(root, "web") == 0
    text = (root / OURS).read_text().split("\n")
    text[1] = f"# ceasefire enable {words}"
    (root / OURS).write_text("\n".join(text))
    found = services.checks(tree.Tree(root, live=False))
    assert [check.result for check in found] == ([] if words == "'" else ["info"])
