# SPDX-License-Identifier: GPL-2.0-only
"""Python with threads that allocate: objects, buffers, compressed data, which come and go.

What the threads do in C (zlib, hashlib) runs at the same time in all of them; the buffers are large
enough to be mapped, and given back when they go. What was compressed has to come back as it was.
An operation is a buffer.
"""

import argparse

from ceasefire.bench.apps import common

_PROGRAM = r"""
import hashlib, json, random, sys, threading, time, zlib

threads, seconds = int(sys.argv[1]), float(sys.argv[2])
stop = time.monotonic() + seconds
counts, wrong = [0] * threads, [0] * threads

def work(me):
    chance = random.Random(me)
    kept = []
    while not counts[me] or time.monotonic() < stop:
        seed = chance.randbytes(64)
        data = bytearray(seed * chance.randrange(64, 16384))
        kept.append((hashlib.sha1(data).digest(), zlib.compress(data, 1)))
        del data
        if len(kept) > 16:
            digest, packed = kept.pop(chance.randrange(len(kept)))
            wrong[me] += hashlib.sha1(zlib.decompress(packed)).digest() != digest
        words = {n: str(n) for n in range(200)}
        wrong[me] += sum(map(len, words.values())) != 490
        counts[me] += 1

all = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
[t.start() for t in all]
[t.join() for t in all]
print(json.dumps([sum(counts), sum(wrong)]))
"""


def main(args: argparse.Namespace) -> None:
    """Run the program, which checks itself."""
    common.run_python(args, _PROGRAM)


if __name__ == "__main__":
    common.run_main(main, common.parser(__doc__))
