# SPDX-License-Identifier: GPL-2.0-only
"""Show which mappings of a process recycle their frames, and why the others do not.

By default the mappings of files, the largest first; with --all anonymous ones, too. Another
user's process takes the rights to read its /proc/PID/smaps.
"""

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ceasefire.errors import Failure
from ceasefire.output import number, say
from ceasefire.tables import print_table
from ceasefire.text import decoded

SCHEMA = 1
FLAG = "fr"
_HEADER = re.compile(
    r"(?P<start>[0-9a-f]{1,16})-(?P<end>[0-9a-f]{1,16}) (?P<rights>[-a-z]{4}) [0-9a-f]+ "
    r"[0-9a-f]+:[0-9a-f]+ [0-9]+ *(?P<path>.*)",
    re.DOTALL,
)
_RESIDENT = re.compile(r"Rss: +([0-9]{1,18}) kB")


@dataclass(frozen=True)
class Mapping:
    """One line of /proc/PID/maps with what /proc/PID/smaps adds. Sizes are in KiB."""

    start: int
    end: int
    rights: str
    path: str
    size_kib: int
    resident_kib: int
    recycles: bool
    why_not: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire maps`."""
    parser.add_argument("pid", type=int, metavar="PID", help="the process")
    parser.add_argument("-a", "--all", action="store_true", help="also mappings without a file")
    parser.add_argument("--json", action="store_true", help="print JSON, an object a mapping")


def main(args: argparse.Namespace) -> int:
    """Read the mappings and print them."""
    path = Path(f"/proc/{args.pid}/smaps")
    try:
        text = decoded(path.read_bytes())
    except FileNotFoundError:
        raise Failure(f"there is no process {args.pid}") from None
    except PermissionError:
        raise Failure(f"process {args.pid} is somebody else's: use sudo") from None
    except ProcessLookupError:
        raise Failure(f"process {args.pid} has just ended") from None
    found = [m for m in parse(text.split("\n")) if args.all or m.path.startswith("/")]
    found.sort(key=lambda m: (-m.size_kib, m.start))
    if args.json:
        for mapping in found:
            print(json.dumps({"schema": SCHEMA, **asdict(mapping)}))
        return 0
    show(args.pid, found)
    return 0


def parse(lines: Iterable[str]) -> list[Mapping]:
    """Return the mappings that the lines of a smaps file describe.

    Lines end with a line feed and nothing else: the kernel escapes that one in names of files.
    """
    found: list[Mapping] = []
    header: re.Match[str] | None = None
    resident = 0
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match:
            header, resident = match, 0
        elif rss := _RESIDENT.fullmatch(line):
            resident = int(rss[1])
        elif line.startswith("VmFlags:") and header is not None:
            found.append(_mapping(header, resident, line.split()[1:]))
            header = None
    return found


def _mapping(header: re.Match[str], resident: int, flags: Sequence[str]) -> Mapping:
    start, end = int(header["start"], 16), int(header["end"], 16)
    path = header["path"]
    recycles = FLAG in flags
    return Mapping(
        start=start,
        end=end,
        rights=header["rights"],
        path=path,
        size_kib=(end - start) // 1024,
        resident_kib=resident,
        recycles=recycles,
        why_not="" if recycles else why_not(header["rights"], path, flags),
    )


def why_not(rights: str, path: str, flags: Sequence[str]) -> str:
    """Say what a mapping lacks, as far as it shows from outside."""
    if not path.startswith("/"):
        return "no file"
    if "x" in rights or "ex" in flags:
        return "executable"
    if "ht" in flags:
        return "huge pages of a pool"
    if "io" in flags or "pf" in flags:
        return "memory of a device"
    return "not asked for, or at a chosen address"


def show(pid: int, found: Sequence[Mapping]) -> None:
    """Print the table, and the sums below it."""
    rows = [
        [
            f"{m.start:x}",
            m.rights,
            number(m.size_kib),
            number(m.resident_kib),
            "yes" if m.recycles else "no",
            f"{m.path or '(anonymous)'} {f'({m.why_not})' if m.why_not else ''}".rstrip(),
        ]
        for m in found
    ]
    if not rows:
        rows = [["", "", "", "", "", "(no mapping of a file)"]]
    columns = ["address", "rights", "KiB", "resident", "recycles", "file (why not)"]
    print_table(columns, rows, title=f"process {pid}", numbers_from=len(columns))
    good = [m for m in found if m.recycles]
    part, whole = (number(sum(m.size_kib for m in some)) for some in (good, found))
    say(f"{len(good)} of {len(found)} mappings recycle, {part} of {whole} KiB")
