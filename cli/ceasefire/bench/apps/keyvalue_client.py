# SPDX-License-Identifier: GPL-2.0-only
"""A client of a store of keys and values: sets, gets and deletes, and knows what it has to find.

Started by keyvalue.py, `python -m ... STORE PORT NUMBER CONNECTIONS SECONDS`, as a process of its
own. It fills its keys, prints a line, waits for one, loads the server, prints what it has done,
and once more what it has found wrong until then, after it has asked for all its keys.

A value follows from its key and its version. Nobody else uses the keys of a client, and a
connection has keys of its own, so that each answer is known before it comes.
"""

import hashlib
import json
import random
import socket
import sys
import time
from abc import ABC, abstractmethod
from typing import IO, ClassVar

from ceasefire.errors import Failure
from ceasefire.text import shown

LIMIT = 120.0
_KEYS = 64
_BATCH = 16
# Powers of two of the sizes.
_LEAST, _MOST = 6, 16
# What a batch is made of, in its order, and in percent.
_ORDER = ("set", "delete", "get")
_SHARES = (35, 15, 50)


class Store(ABC):
    """How commands and answers look."""

    STORED: ClassVar[bytes]

    @abstractmethod
    def get(self, key: str) -> bytes:
        """Return the command that asks for a value."""

    @abstractmethod
    def set(self, key: str, value: bytes) -> bytes:
        """Return the command that stores a value, which is answered by STORED."""

    @abstractmethod
    def delete(self, key: str) -> bytes:
        """Return the command that deletes; its answer says whether there was something."""

    @abstractmethod
    def deleted(self, there: bool) -> bytes:
        """Return the answer to that."""

    @abstractmethod
    def value(self, reader: IO[bytes]) -> bytes | None:
        """Read the answer to a get; None: there is nothing."""


class Redis(Store):
    """RESP, as Redis has spoken it since 2.0."""

    STORED = b"+OK\r\n"

    def get(self, key: str) -> bytes:
        return b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key.encode())

    def set(self, key: str, value: bytes) -> bytes:
        head = b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n" % (len(key), key.encode())
        return b"%s$%d\r\n%s\r\n" % (head, len(value), value)

    def delete(self, key: str) -> bytes:
        return b"*2\r\n$3\r\nDEL\r\n$%d\r\n%s\r\n" % (len(key), key.encode())

    def deleted(self, there: bool) -> bytes:
        return b":%d\r\n" % there

    def value(self, reader: IO[bytes]) -> bytes | None:
        line = reader.readline()
        if not line.startswith(b"$"):
            raise Failure(f"the server says: {line.decode(errors='replace').strip()}")
        size = int(line[1:])
        return None if size < 0 else reader.read(size + 2)[:-2]


class Memcached(Store):
    """The protocol of text lines."""

    STORED = b"STORED\r\n"

    def get(self, key: str) -> bytes:
        return b"get %s\r\n" % key.encode()

    def set(self, key: str, value: bytes) -> bytes:
        return b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(value), value)

    def delete(self, key: str) -> bytes:
        return b"delete %s\r\n" % key.encode()

    def deleted(self, there: bool) -> bytes:
        return b"DELETED\r\n" if there else b"NOT_FOUND\r\n"

    def value(self, reader: IO[bytes]) -> bytes | None:
        line = reader.readline()
        if line == b"END\r\n":
            return None
        if not line.startswith(b"VALUE "):
            raise Failure(f"the server says: {line.decode(errors='replace').strip()}")
        value = reader.read(int(line.split()[3]) + 2)[:-2]
        if reader.readline() != b"END\r\n":
            raise Failure("an answer of the server has no end")
        return value


STORES: dict[str, type[Store]] = {"redis": Redis, "memcached": Memcached}


def value_of(key: str, version: int) -> bytes:
    """Return what a key has to hold: of any size, and nowhere like another one."""
    token = hashlib.md5(f"{key} {version}".encode()).digest()
    size = 1 << (_LEAST + token[0] % (_MOST - _LEAST + 1))
    return token * (size // len(token))


class Connection:
    """One connection and the keys that it has. versions: 0 where there is nothing."""

    def __init__(self, store: Store, port: int, name: str) -> None:
        self._store = store
        self._socket = socket.create_connection(("127.0.0.1", port), LIMIT)
        self._reader = self._socket.makefile("rb")
        self._versions = {f"{name}:{number}": 0 for number in range(_KEYS)}
        self._random = random.Random(name)
        self._count = 0
        self._asked: list[tuple[str, bytes | None]] = []

    def ask(self, what: list[tuple[str, str]]) -> None:
        """Send a batch: what to do with which key."""
        sent = []
        for action, key in what:
            version = self._versions[key]
            if action == "get":
                sent.append(self._store.get(key))
                self._asked.append(("get", value_of(key, version) if version else None))
            elif action == "set":
                self._count += 1
                self._versions[key] = self._count
                sent.append(self._store.set(key, value_of(key, self._count)))
                self._asked.append(("line", self._store.STORED))
            else:
                self._versions[key] = 0
                sent.append(self._store.delete(key))
                self._asked.append(("line", self._store.deleted(version != 0)))
        self._socket.sendall(b"".join(sent))

    def answers(self) -> int:
        """Read the answers to all that was asked; return how many are wrong."""
        wrong = 0
        for kind, expected in self._asked:
            found = self._store.value(self._reader) if kind == "get" else self._reader.readline()
            wrong += found != expected
        self._asked.clear()
        return wrong

    def batch(self) -> list[tuple[str, str]]:
        """Return some commands, by chance; gets come last.

        A server that waits until somebody takes an answer reads no more. Before the answers that
        are large it has read all that is large, and nobody waits for the other.
        """
        actions = self._random.choices(_ORDER, _SHARES, k=_BATCH)
        keys = self._random.choices(list(self._versions), k=_BATCH)
        return list(zip(sorted(actions, key=_ORDER.index), keys, strict=True))

    def each(self, action: str) -> int:
        """Do something with all keys; return how many answers were wrong."""
        wrong = 0
        keys = list(self._versions)
        for at in range(0, len(keys), _BATCH):
            self.ask([(action, key) for key in keys[at : at + _BATCH]])
            wrong += self.answers()
        return wrong


def main(words: list[str]) -> None:
    """Be a client."""
    store, port, number, count, seconds = words
    connections = [
        Connection(STORES[store](), int(port), f"{number}.{n}") for n in range(int(count))
    ]
    wrong = sum(connection.each("set") for connection in connections)
    print("ready", flush=True)
    sys.stdin.readline()
    operations = 0
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        for connection in connections:
            connection.ask(connection.batch())
        # All of them wait at the same time, so that the server has work for all its threads.
        wrong += sum(connection.answers() for connection in connections)
        operations += _BATCH * len(connections)
    print(json.dumps(operations), flush=True)
    wrong += sum(connection.each("get") for connection in connections)
    print(json.dumps(wrong), flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (Failure, OSError) as error:
        print(shown(f"client: {error}"), file=sys.stderr)
        sys.exit(1)
