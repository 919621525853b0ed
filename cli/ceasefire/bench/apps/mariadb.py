# SPDX-License-Identifier: GPL-2.0-only
"""MariaDB, a thread for each connection, under clients that sort, join texts and update.

A query allocates what it sorts in, and gives it back. Each answer is known: rows follow from their
number, and a client alone counts in a row of its own. An operation is a query.

--data is what mariadb-install-db has made; the table is made in the first sample.
"""

import argparse
import hashlib
import os
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from ceasefire.bench.apps import common
from ceasefire.errors import Failure

_ROWS = 4000
_SPAN = 400
_PRIME, _BASE = 7919, 10007
_ROWS_AT_A_TIME = 500
_START = 300.0
_LIMIT = 120.0


@dataclass
class Done:
    """What a client has done. why: it could not go on."""

    operations: int = 0
    wrong: int = 0
    why: str = ""


class Client:
    """A connection by the command line client; what is asked is answered by a line."""

    def __init__(self, socket: Path) -> None:
        words = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root"]
        self._process = subprocess.Popen(
            [*words, "--batch", "--skip-column-names", "--unbuffered"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def tell(self, *statements: str) -> None:
        """Carry out statements that answer nothing."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{statement};\n" for statement in statements))
        self._process.stdin.flush()

    def ask(self, query: str) -> str:
        """Return the one line of an answer."""
        assert self._process.stdout is not None
        self.tell(query)
        if line := self._process.stdout.readline():
            return line.strip()
        raise Failure("mariadb has ended")

    def end(self) -> None:
        """Leave."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_LIMIT)
        finally:
            self._process.kill()


def main(args: argparse.Namespace) -> None:
    """Serve, load, check."""
    here = Path.cwd()
    socket, log = here / "mariadb.sock", here / "mariadb.log"
    socket.unlink(missing_ok=True)
    command = common.with_allocator(args, _server(args, here, socket))
    with common.server(common.prefixed(args, command), log) as process:
        common.wait_until(
            lambda: _answers(socket) or process.poll() is not None,
            _START,
            lambda: f"mariadbd does not answer: {common.tail(log)}",
        )
        if process.poll() is not None:
            raise Failure(f"mariadbd has ended: {common.tail(log)}")
        common.check_allocator(process.pid, args)
        clients = [Client(socket) for _ in range(2 * args.cpus)]
        _make(clients[0], len(clients))
        for client in clients:
            client.tell("USE bench")
        done = [Done() for _ in clients]
        with common.window() as found:
            end = time.monotonic() + args.seconds
            threads = [
                threading.Thread(target=_load, args=(client, number, end, done[number]))
                for number, client in enumerate(clients)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for client in clients:
            client.end()
    if why := next((d.why for d in done if d.why), ""):
        raise Failure(f"{why}: {common.tail(log)}")
    common.result(sum(d.operations for d in done), found, sum(d.wrong for d in done))


def _server(args: argparse.Namespace, here: Path, socket: Path) -> list[str]:
    return [
        "mariadbd",
        "--no-defaults",
        *(["--user=root"] if os.getuid() == 0 else []),
        f"--datadir={args.data.absolute()}",
        f"--socket={socket}",
        f"--pid-file={here}/mariadb.pid",
        f"--tmpdir={here}",
        "--skip-networking",
        "--skip-grant-tables",
        "--innodb-buffer-pool-size=32M",
        "--innodb-flush-log-at-trx-commit=0",
    ]


def _answers(socket: Path) -> bool:
    words = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root"]
    done = subprocess.run([*words, "--execute", "SELECT 1"], capture_output=True, check=False)
    return done.returncode == 0


def _make(client: Client, clients: int) -> None:
    """Make the tables if they are not there; nothing is counted yet."""
    client.tell(
        "CREATE DATABASE IF NOT EXISTS bench",
        "USE bench",
        "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, value INT, padding VARCHAR(200))",
        "CREATE OR REPLACE TABLE counts (id INT PRIMARY KEY, n INT)",
        *(f"INSERT INTO counts VALUES ({number}, 0)" for number in range(clients)),
    )
    if client.ask("SELECT COUNT(*) FROM t") == str(_ROWS):
        return
    client.tell("DELETE FROM t")
    for first in range(0, _ROWS, _ROWS_AT_A_TIME):
        rows = (f"({n}, {value_of(n)}, '{padding_of(n)}')" for n in _numbers(first))
        client.tell(f"INSERT INTO t VALUES {', '.join(rows)}")
    if client.ask("SELECT COUNT(*) FROM t") != str(_ROWS):
        raise Failure("mariadbd has not kept the rows of the table")


def _numbers(first: int) -> range:
    return range(first, min(first + _ROWS_AT_A_TIME, _ROWS))


def value_of(number: int) -> int:
    """Return the value of a row: each has another one."""
    return number * _PRIME % _BASE


def padding_of(number: int) -> str:
    """Return the text of a row, which sorts as its value does."""
    return f"{value_of(number):05}".ljust(200, "x")


def questions(first: int, own: int, count: int) -> list[tuple[str, str]]:
    """Return queries and their answers. first: row; own: of the client, which has asked so often.

    The last one changes the row of the client before it reads it.
    """
    where = f"FROM t WHERE id >= {first} AND id < {first + _SPAN}"
    ordered = sorted(range(first, first + _SPAN), key=value_of)
    text = ",".join(str(number) for number in ordered)
    digest = hashlib.md5(text.encode()).hexdigest()
    return [
        (f"SELECT MD5(GROUP_CONCAT(id ORDER BY value)) {where}", digest),
        (f"SELECT id {where} ORDER BY padding LIMIT 1 OFFSET 200", str(ordered[200])),
        (
            f"UPDATE counts SET n = n + 1 WHERE id = {own}; SELECT n FROM counts WHERE id = {own}",
            str(count + 1),
        ),
    ]


def _load(client: Client, own: int, end: float, done: Done) -> None:
    first, count = own * 37, 0
    try:
        while time.monotonic() < end:
            first = (first * 5 + 3) % (_ROWS - _SPAN)
            for query, answer in questions(first, own, count):
                done.wrong += client.ask(query) != answer
                done.operations += 1
            count += 1
    except (Failure, OSError) as error:
        done.why = str(error)


def _options() -> argparse.ArgumentParser:
    options = common.parser(__doc__)
    options.add_argument("--data", type=Path, required=True, help="folder of the database")
    common.add_allocator(options)
    return options


if __name__ == "__main__":
    common.run_main(main, _options())
