# SPDX-License-Identifier: GPL-2.0-only
"""Servers and runtimes of the suites: what of them needs no guest, and no server."""

import json
import os
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ceasefire.bench.apps import common, keyvalue, mariadb, objects, wasm
from ceasefire.bench.apps import keyvalue_client as client
from ceasefire.bench.measure import programs
from ceasefire.errors import Failure

LIMIT = 600

Spoil = Callable[[bytes], bytes]


def same(value: bytes) -> bytes:
    return value


class Redis(socketserver.StreamRequestHandler):
    """Speaks as much RESP as is asked for. spoil: what becomes of a value."""

    spoil: Spoil = staticmethod(same)

    def handle(self) -> None:
        kept: dict[bytes, bytes] = {}
        while line := self.rfile.readline():
            words = [self.word() for _ in range(int(line[1:]))]
            if words[0] == b"SET":
                kept[words[1]] = words[2]
                self.wfile.write(b"+OK\r\n")
            elif words[0] == b"DEL":
                self.wfile.write(b":%d\r\n" % (kept.pop(words[1], None) is not None))
            elif words[1] in kept:
                value = type(self).spoil(kept[words[1]])
                self.wfile.write(b"$%d\r\n%s\r\n" % (len(value), value))
            else:
                self.wfile.write(b"$-1\r\n")

    def word(self) -> bytes:
        return self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2]


class Memcached(socketserver.StreamRequestHandler):
    """Speaks as much of the protocol of text lines as is asked for."""

    spoil: Spoil = staticmethod(same)

    def handle(self) -> None:
        kept: dict[bytes, bytes] = {}
        while line := self.rfile.readline():
            action, key, *rest = line.split()
            if action == b"set":
                kept[key] = self.rfile.read(int(rest[2]) + 2)[:-2]
                self.wfile.write(b"STORED\r\n")
            elif action == b"delete":
                there = kept.pop(key, None) is not None
                self.wfile.write(b"DELETED\r\n" if there else b"NOT_FOUND\r\n")
            else:
                if key in kept:
                    value = type(self).spoil(kept[key])
                    self.wfile.write(b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value))
                self.wfile.write(b"END\r\n")


HANDLERS = {"redis": Redis, "memcached": Memcached}


@contextmanager
def connected(store: str, spoil: Spoil = same) -> Iterator[client.Connection]:
    handler = type("Handler", (HANDLERS[store],), {"spoil": staticmethod(spoil)})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever).start()
        try:
            yield client.Connection(client.STORES[store](), server.server_address[1], "0.0")
        finally:
            server.shutdown()


@pytest.mark.parametrize("store", HANDLERS)
def test_a_client_finds_what_it_has_stored(store: str) -> None:
    with connected(store) as connection:
        assert connection.each("get") == 0
        assert connection.each("set") == 0
        for _ in range(50):
            connection.ask(connection.batch())
            assert connection.answers() == 0
        assert connection.each("get") == 0
        assert connection.each("delete") == 0
        assert connection.each("get") == 0


@pytest.mark.parametrize("store", HANDLERS)
def test_a_client_notices_each_wrong_value(store: str) -> None:
    with connected(store, lambda value: value[:-1] + b"!") as connection:
        assert connection.each("set") == 0
        assert connection.each("get") == 64


@pytest.mark.parametrize("store", HANDLERS)
def test_a_client_notices_an_old_value(store: str) -> None:
    old: dict[bytes, bytes] = {}
    with connected(store, lambda value: old.setdefault(b"first", value)) as connection:
        assert connection.each("set") == 0
        # The value of one key is right, for that key.
        assert connection.each("get") == 63


def test_an_error_of_a_server_ends_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Redis) -> None:
        self.rfile.readline()
        self.wfile.write(b"-ERR no\r\n")

    monkeypatch.setattr(Redis, "handle", refuse)
    with connected("redis") as connection, pytest.raises(Failure, match="ERR no"):
        connection.each("get")


def test_gets_are_the_end_of_a_batch() -> None:
    with connected("redis") as connection:
        actions = [action for action, _ in connection.batch()]
    assert actions == sorted(actions, key=("set", "delete", "get").index)
    assert set(actions) == {"set", "delete", "get"}


def test_values_have_all_sizes_and_differ() -> None:
    values = [client.value_of(f"k{n}", v) for n in range(100) for v in (1, 2)]
    assert {len(value) for value in values} == {1 << n for n in range(6, 17)}
    assert len(set(values)) == len(values)


def test_a_snapshot_that_is_none_is_a_failure(tmp_path: Path) -> None:
    dump = tmp_path / "dump.rdb"
    dump.write_bytes(b"REDIS0009 and then nothing")
    checker = tmp_path / "redis-check-rdb"
    checker.write_text('#!/bin/sh\necho "[info] 7 keys read"\nexit 0\n')
    checker.chmod(0o755)
    paths = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", paths)
        keyvalue.check_saved(dump)
        for text in ("exit 1", 'echo "[info] 0 keys read"', "true"):
            checker.write_text(f"#!/bin/sh\n{text}\n")
            with pytest.raises(Failure, match=r"dump\.rdb"):
                keyvalue.check_saved(dump)


def test_rows_sort_by_their_text_as_by_their_value() -> None:
    rows = range(4000)
    assert len({mariadb.value_of(n) for n in rows}) == 4000
    assert sorted(rows, key=mariadb.padding_of) == sorted(rows, key=mariadb.value_of)
    (first, _), (second, answer), (third, count) = mariadb.questions(100, 3, 6)
    assert "id >= 100 AND id < 500" in first and "id >= 100 AND id < 500" in second
    inside = sorted(range(100, 500), key=mariadb.value_of)
    assert answer == str(inside[200]) and count == "7" and third.count("id = 3") == 2


def test_an_allocator_that_is_not_there_is_a_failure() -> None:
    options = common.parser(None)
    common.add_allocator(options)
    args = options.parse_args(["--allocator", "libc.so"])
    assert common.with_allocator(args, ["x"]) == ["env", "LD_PRELOAD=libc.so", "x"]
    common.check_allocator(os.getpid(), args)
    args = options.parse_args(["--allocator", "libnone.so"])
    with pytest.raises(Failure, match=r"runs without libnone\.so"):
        common.check_allocator(os.getpid(), args)
    args = options.parse_args([])
    assert common.with_allocator(args, ["x"]) == ["x"]
    common.check_allocator(os.getpid(), args)


def test_objects_count_what_they_did(capsys: pytest.CaptureFixture[str]) -> None:
    objects.main(common.parser(None).parse_args(["--seconds", "0.2", "--cpus", "3"]))
    found = json.loads(capsys.readouterr().out)
    assert found["operations"] >= 3 and found["wrong"] == 0 and found["rate"] > 0


@pytest.mark.parametrize("words", [[], ["--pool"]])
def test_wasm_counts_what_it_did(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    wasm.main(wasm.options().parse_args(["--seconds", "0.2", "--cpus", "3", *words]))
    found = json.loads(capsys.readouterr().out)
    assert found["operations"] >= 3 and found["wrong"] == 0 and found["rate"] > 0


def test_a_program_in_python_fails_with_its_last_line() -> None:
    args = common.parser(None).parse_args([])
    with pytest.raises(Failure, match="status 1: ValueError: no"):
        common.run_python(args, "raise ValueError('no')")


def runs(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)


def built(name: str) -> str:
    try:
        return str(programs.find(name))
    except Failure:
        pytest.skip(f"there is no compiler for {name}")


def test_go_churn_checks_its_blocks() -> None:
    program = built("go-churn")
    done = runs(program, "--threads", "3", "--seconds", "0.5")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["operations"] > 0 and found["wrong"] == 0
    done = runs(program, "--threads", "3", "--seconds", "0.5", "--spoil")
    assert done.returncode == 1 and json.loads(done.stdout)["wrong"] == 1
    done = runs(program, "--seconds", "0")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("collector", "name"), [("G1", "G1 "), ("Z", "ZGC")])
def test_jvm_churn_checks_its_blocks(collector: str, name: str) -> None:
    words = (built("jvm-churn"), f"-XX:+Use{collector}GC", "-Xmx256m", "Churn", "2")
    done = runs(*words, "0.5")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["operations"] > 0 and found["wrong"] == 0
    assert found["collector"].startswith(name)
    done = runs(*words, "0.5", "spoil")
    assert done.returncode == 1 and json.loads(done.stdout)["wrong"] == 1
    done = runs(*words)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
