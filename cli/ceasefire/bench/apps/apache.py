# SPDX-License-Identifier: GPL-2.0-only
"""Apache httpd (event MPM) under wrk.

Apache maps a file for each request, sends it, and unmaps it. All files are fetched and compared
before and after the load. An operation is a request that was answered in full.
"""

import argparse
import re
import socket
import subprocess
import urllib.request
from pathlib import Path

from ceasefire.bench import latency
from ceasefire.bench.apps import common
from ceasefire.errors import Failure

_PORT = 8099
_MODULES = Path("/usr/lib/apache2/modules")
_CONFIGURATION = """\
ServerRoot {here}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {here}/apache.pid
ErrorLog {here}/error.log
DefaultRuntimeDir {here}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
DocumentRoot {root}
EnableMMAP {mmap}
EnableSendfile {sendfile}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
StartServers 1
ServerLimit 1
ThreadsPerChild {threads}
ThreadLimit {threads}
MaxRequestWorkers {threads}
MinSpareThreads 1
MaxSpareThreads {threads}
<Directory {root}>
Require all granted
</Directory>
"""
_SCRIPT = """\
local number = 0
request = function()
  number = (number + 7) % {count}
  return wrk.format("GET", string.format("/%05d", number))
end
done = function(summary, latency, requests)
  for index = 1, #latency do
    local us, count = latency(index)
    io.write(string.format("took %d us: %d\\n", us, count))
  end
end
"""


def main(args: argparse.Namespace) -> None:
    """Serve, load, check."""
    here = Path.cwd()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False, capture_output=True)
    files = common.make_files(here / "www", args.files, args.kib * 1024)
    configuration = here / "apache.conf"
    configuration.write_text(
        _CONFIGURATION.format(
            here=here,
            root=here / "www",
            port=_PORT,
            modules=_MODULES,
            mmap="On" if args.way == "mmap" else "Off",
            sendfile="On" if args.way == "sendfile" else "Off",
            # More than connections: it closes some when all threads are busy.
            threads=max(16, 8 * args.cpus),
        ),
        encoding="utf-8",
    )
    script = here / "requests.lua"
    script.write_text(_SCRIPT.format(count=len(files)), encoding="utf-8")
    log = here / "apache.log"
    command = ["apache2", "-DFOREGROUND", "-f", str(configuration)]
    with common.server(common.prefixed(args, command), log) as process:
        common.wait_until(
            lambda: _listens() or process.poll() is not None,
            120,
            lambda: f"apache2 does not answer: {common.tail(log)}",
        )
        if process.poll() is not None:
            raise Failure(f"apache2 has ended: {common.tail(log)}")
        wrong = _wrong(files)
        with common.window() as found:
            done = subprocess.run(
                [
                    *("wrk", "-t", "1", "-c", str(2 * args.cpus), "-d", f"{args.seconds:.0f}s"),
                    *("--timeout", "60s", "-s", str(script), f"http://127.0.0.1:{_PORT}/"),
                ],
                capture_output=True,
                text=True,
                check=True,
            )
        wrong += _wrong(files)
    requests, bad = _parse(done.stdout)
    common.result(requests, found, wrong + bad, **latency.fields(_took(done.stdout)))


def _listens() -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", _PORT)) == 0


def _wrong(files: list[Path]) -> int:
    wrong = 0
    for path in files:
        with urllib.request.urlopen(f"http://127.0.0.1:{_PORT}/{path.name}", timeout=120) as answer:
            wrong += answer.read() != path.read_bytes()
    return wrong


def _parse(text: str) -> tuple[int, int]:
    """Return what wrk counted: requests, and those that went wrong."""
    requests = re.search(r"(\d+) requests in", text)
    if requests is None:
        raise Failure("wrk printed no number of requests")
    bad = sum(int(n) for n in re.findall(r"Non-2xx or 3xx responses: (\d+)", text))
    errors = re.search(
        r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text
    )
    if errors is not None:
        bad += sum(int(n) for n in errors.groups())
    return int(requests[1]), bad


def _took(text: str) -> list[tuple[float, int]]:
    """Return (nanoseconds, requests) as wrk has counted them.

    It adds requests that it would have made had one not taken so long.
    """
    found = re.findall(r"^took (\d+) us: (\d+)$", text, re.MULTILINE)
    return [(int(us) * 1000, int(count)) for us, count in found]


def _options() -> argparse.ArgumentParser:
    options = common.parser(__doc__)
    options.add_argument("--way", choices=("mmap", "sendfile", "read"), default="mmap")
    options.add_argument("--files", type=int, default=64, help="files that are asked for")
    options.add_argument("--kib", type=int, default=32, help="size of each")
    return options


if __name__ == "__main__":
    common.run_main(main, _options())
