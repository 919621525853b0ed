# SPDX-License-Identifier: GPL-2.0-only
"""PostgreSQL under pgbench: what its processes have of page tables, and how fast it answers.

A process for each connection maps the shared buffers and reads all of them. Samples are taken in
turn without and with `ceasefire run --shared-tables`; one with hardly any buffers says what a
process has without them. Each prints a line of JSON. It refuses to run as root, so root is
somebody else in a user namespace.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ceasefire.bench.apps import common
from ceasefire.errors import Failure
from ceasefire.paths import package_root

PLAIN, SHARED, NONE = "plain", "shared-tables", "no buffers"
BUFFERS = "256MB"
_FEW = "1MB"
_PROGRAMS = Path("/usr/lib/postgresql")
_START = 300.0
_END = 300.0
# Before the end of the load, when all connections are there.
_LOOK = 1.0
# In /proc/PID/stat, behind the name.
_FAULTS = 7
_CEASEFIRE = (
    *(sys.executable, "-I", "-B", "-c"),
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from ceasefire.__main__ import main; sys.exit(main(sys.argv[1:]))",
    str(package_root()),
)


def programs() -> Path:
    """Return the folder that has postgres and pgbench, of the newest release there is."""
    found = sorted(_PROGRAMS.glob("*/bin"), key=lambda p: int(re.sub(r"\D", "", p.parent.name)))
    for folder in reversed(found):
        if all((folder / name).is_file() for name in ("postgres", "initdb", "pgbench")):
            return folder
    raise Failure("there is no PostgreSQL: run make deps-bench")


def as_somebody(command: Sequence[str]) -> list[str]:
    """Return a command line that is not root's."""
    return [*(["unshare", "-U", "--map-user=1000"] if os.getuid() == 0 else []), *command]


def backends(postmaster: int) -> list[int]:
    """Return the processes of connections."""
    text = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text(encoding="ascii")
    found = []
    for pid in map(int, text.split()):
        with contextlib.suppress(OSError):
            if b"postgres: bench " in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def page_tables(pid: int) -> int:
    """Return the kB of page tables that a process has."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    match = re.search(r"^VmPTE:\s+([0-9]+) kB$", status, re.MULTILINE)
    return int(match[1]) if match else 0


def faults(pid: int) -> int:
    """Return how many page faults without a disk a process has taken."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return int(text.rpartition(") ")[2].split(" ")[_FAULTS])


def main() -> None:
    """Take the samples; what fails is one line."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    options.add_argument("data", type=Path, metavar="FOLDER", help="made by command()")
    options.add_argument("--clients", type=int, default=16)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=int, default=20)
    common.run_main(_samples, options)


def _samples(args: argparse.Namespace) -> None:
    for number in range(args.rounds):
        both = (PLAIN, SHARED) if number % 2 == 0 else (SHARED, PLAIN)
        for way in (*both, *((NONE,) if number == 0 else ())):
            print(json.dumps({"type": "postgres", "round": number, **sample(args, way)}))
            sys.stdout.flush()


def sample(args: argparse.Namespace, way: str) -> dict[str, object]:
    """Serve, load, look."""
    with serving(args, way) as process:
        command = [str(programs() / "pgbench"), "-h", str(Path.cwd()), "-U", "bench", "-S", "-n"]
        command += ["-c", str(args.clients), "-j", "2", "-T", str(args.seconds), "bench"]
        load = subprocess.Popen(
            as_somebody(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            time.sleep(max(args.seconds - _LOOK, 0))
            pids = backends(process.pid)
            found = {
                "backends": len(pids),
                "tables": sum(map(page_tables, pids)),
                "faults": sum(map(faults, pids)),
                "objects": objects(),
            }
            text, _ = load.communicate(timeout=_END)
        finally:
            load.kill()
    rate = re.search(r"^tps = ([0-9.]+)", text, re.MULTILINE)
    if load.returncode or rate is None:
        raise Failure(f"pgbench ended with status {load.returncode}: {text.strip()[-200:]}")
    return {"way": way, "rate": float(rate[1]), **found}


@contextlib.contextmanager
def serving(args: argparse.Namespace, way: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Run the server of a way until the end."""
    here, log = Path.cwd(), Path.cwd() / "postgres.log"
    settings = {
        "shared_buffers": _FEW if way == NONE else BUFFERS,
        "listen_addresses": "",
        "unix_socket_directories": str(here),
        "huge_pages": "off",
        "fsync": "off",
        "max_connections": str(args.clients + 10),
    }
    words = [f"--{name}={value}" for name, value in settings.items()]
    run = [*_CEASEFIRE, "run", "--mode", "off"]
    run += ["--shared-tables", "--"] if way == SHARED else ["--"]
    command = [*run, str(programs() / "postgres"), "-D", str(args.data / "db"), *words]
    with common.server(as_somebody(command), log) as process:
        common.wait_until(
            lambda: _answers(here) or process.poll() is not None,
            _START,
            lambda: f"postgres does not answer: {common.tail(log)}",
        )
        if process.poll() is not None:
            raise Failure(f"postgres has ended: {common.tail(log)}")
        yield process


def objects() -> int:
    """Return the kB of page tables that morsels have."""
    words = [*_CEASEFIRE, "morsel", "list", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return sum(int(json.loads(line)["tables"]) for line in lines) >> 10


def _answers(folder: Path) -> bool:
    words = [str(programs() / "pg_isready"), "-q", "-h", str(folder)]
    return subprocess.run(words, check=False).returncode == 0


def command() -> str:
    """Return the shell command that makes the data in an empty folder."""
    folder = programs()
    whom = " ".join(as_somebody([]))
    lines = (
        f"P={folder}",
        "$P/initdb -D db -A trust -U bench --no-sync",
        '$P/pg_ctl -D db -w -l log -o "-k $PWD -c listen_addresses= -c fsync=off" start',
        'trap "$P/pg_ctl -D db -w -m fast stop" EXIT',
        "$P/createdb -h $PWD -U bench bench",
        "$P/pgbench -h $PWD -U bench -q -i -s 16 bench",
    )
    return f"{whom} sh -ec '{'; '.join(lines)}'".strip()
