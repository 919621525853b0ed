# SPDX-License-Identifier: GPL-2.0-only
"""`ceasefire maps`: what is read from smaps, and what is said about it."""

import json
import os

import pytest

from ceasefire import maps
from ceasefire.__main__ import main

SMAPS = """\
7f0000000000-7f0000100000 r--s 00000000 fe:00 12 /srv/data file
Size:               1024 kB
Rss:                 512 kB
VmFlags: rd mr me ms fr
7f0000200000-7f0000300000 r-xp 00001000 fe:00 13 /usr/lib/libc.so.6
Rss:                  64 kB
VmFlags: rd ex mr mw me
7f0000400000-7f0000401000 rw-p 00000000 00:00 0
Rss:                   4 kB
VmFlags: rd wr mr mw me ac
7f0000500000-7f0000501000 r--p 00000000 fe:00 14 /srv/other
Rss:                   4 kB
VmFlags: rd mr mw me
"""


def test_smaps_is_read() -> None:
    found = maps.parse(SMAPS.splitlines())
    assert [m.path for m in found] == ["/srv/data file", "/usr/lib/libc.so.6", "", "/srv/other"]
    assert [m.recycles for m in found] == [True, False, False, False]
    assert (found[0].start, found[0].size_kib, found[0].resident_kib) == (0x7F0000000000, 1024, 512)
    assert found[0].why_not == ""
    assert [m.why_not for m in found[1:]] == [
        "executable",
        "no file",
        "not asked for, or at a chosen address",
    ]


@pytest.mark.parametrize(
    ("flags", "reason"), [(["ht"], "huge pages of a pool"), (["io"], "memory of a device")]
)
def test_flags_say_why_not(flags: list[str], reason: str) -> None:
    assert maps.why_not("rw-s", "/dev/x", flags) == reason


def test_own_mappings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["maps", "--all", "--json", str(os.getpid())]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(record["schema"] == maps.SCHEMA for record in records)
    assert any(record["path"].endswith("libc.so.6") for record in records)
    sizes = [record["size_kib"] for record in records]
    assert sizes == sorted(sizes, reverse=True)


def test_table_has_sums(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["maps", str(os.getpid())]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"process {os.getpid()}\n")
    assert " mappings recycle, " in out.splitlines()[-1]
    assert "(anonymous)" not in out


def test_no_such_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["maps", "4194305"]) == 1
    assert "there is no process 4194305" in capsys.readouterr().err
