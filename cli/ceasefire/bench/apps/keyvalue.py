# SPDX-License-Identifier: GPL-2.0-only
"""Redis or memcached, with several threads, under clients that set, get and delete.

Values are between 64 bytes and 64 KiB, so that the server allocates and gives back all the time.
Each is compared at each get, and in the end all are asked for once more (keyvalue_client.py). Redis
saves what it has meanwhile, again and again: a child has a snapshot, and what the server writes to
is copied. What it has saved last is checked by redis-check-rdb. An operation is a command.
"""

import argparse
import contextlib
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from ceasefire.bench.apps import common, keyvalue_client
from ceasefire.errors import Failure

_PORT = 8098
_CLIENTS = 2
_SAVE_EVERY = 0.5
_REDIS = """\
bind 127.0.0.1
port {port}
dir {here}
dbfilename dump.rdb
save ""
appendonly no
io-threads {threads}
io-threads-do-reads yes
lazyfree-lazy-user-del yes
"""


def main(args: argparse.Namespace) -> None:
    """Serve, load, check."""
    here = Path.cwd()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False, capture_output=True)
    log = here / f"{args.store}.log"
    with _server(args, here, log) as process:
        common.wait_until(
            lambda: _answers() or process.poll() is not None,
            120,
            lambda: f"{args.store} does not answer: {common.tail(log)}",
        )
        if process.poll() is not None:
            raise Failure(f"{args.store} has ended: {common.tail(log)}")
        common.check_allocator(process.pid, args)
        with _clients(args) as clients:
            with common.window() as found, _saving(args) as saves:
                for client in clients:
                    _tell(client)
                operations = sum(int(_line(client)) for client in clients)
            wrong = sum(int(_line(client)) for client in clients)
    if args.store == "redis":
        check_saved(here / "dump.rdb")
    common.result(operations, found, wrong, saves=saves[0])


def _server(
    args: argparse.Namespace, here: Path, log: Path
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    command = common.with_allocator(args, _command(args, here))
    return common.server(common.prefixed(args, command), log)


def _command(args: argparse.Namespace, here: Path) -> list[str]:
    # Redis advises against more than eight.
    threads = str(max(2, min(args.cpus, 8)))
    if args.store == "memcached":
        user = ["-u", "root"]
        return ["memcached", *user, "-l", "127.0.0.1", "-p", str(_PORT), "-m", "64", "-t", threads]
    configuration = here / "redis.conf"
    text = _REDIS.format(port=_PORT, here=here, threads=threads)
    configuration.write_text(text, encoding="utf-8")
    (here / "dump.rdb").unlink(missing_ok=True)
    return ["redis-server", str(configuration)]


def _answers() -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", _PORT)) == 0


@contextlib.contextmanager
def _clients(args: argparse.Namespace) -> Iterator[list[subprocess.Popen[str]]]:
    """Start the clients; they have filled their keys then, and wait."""
    # Redis uses its threads only while twice as many connections wait for it.
    each = max(4, 2 * min(args.cpus, 8))
    words = [sys.executable, "-P", "-s", "-m", keyvalue_client.__name__, args.store, str(_PORT)]
    clients = [
        subprocess.Popen(
            [*words, str(number), str(each), str(args.seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(_CLIENTS)
    ]
    try:
        for client in clients:
            _line(client)
        yield clients
    finally:
        for client in clients:
            client.kill()
            client.wait()


def _tell(client: subprocess.Popen[str]) -> None:
    assert client.stdin is not None
    client.stdin.write("go\n")
    client.stdin.flush()


def _line(client: subprocess.Popen[str]) -> str:
    assert client.stdout is not None
    if line := client.stdout.readline():
        return line
    raise Failure(f"a client has ended with status {client.wait()}")


@contextlib.contextmanager
def _saving(args: argparse.Namespace) -> Iterator[list[int]]:
    """Have Redis save what it has until the end; the number of times that it did is in the list."""
    saves = [0]
    if args.store != "redis":
        yield saves
        return
    over = threading.Event()

    def save() -> None:
        with socket.create_connection(("127.0.0.1", _PORT), keyvalue_client.LIMIT) as line:
            reader = line.makefile("rb")
            while not over.is_set():
                line.sendall(b"BGSAVE\r\n")
                # Refused while the last one is still at it.
                saves[0] += reader.readline().startswith(b"+Background saving started")
                over.wait(_SAVE_EVERY)

    thread = threading.Thread(target=save)
    thread.start()
    try:
        yield saves
    finally:
        over.set()
        thread.join()
    if not saves[0]:
        raise Failure("redis has saved nothing: there was no copy on write")


def check_saved(path: Path) -> None:
    """Fail if what Redis has saved is not whole, or nothing."""
    done = subprocess.run(
        ["redis-check-rdb", str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode or not re.search(r"^\[info\] [1-9][0-9]* keys read", done.stdout, re.M):
        raise Failure(f"{path.name}: {done.stdout.strip().splitlines()[-1:]}")


def _options() -> argparse.ArgumentParser:
    options = common.parser(__doc__)
    options.add_argument("--store", choices=tuple(keyvalue_client.STORES), required=True)
    common.add_allocator(options)
    return options


if __name__ == "__main__":
    common.run_main(main, _options())
