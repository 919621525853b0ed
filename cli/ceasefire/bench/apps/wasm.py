# SPDX-License-Identifier: GPL-2.0-only
"""WebAssembly in wasmtime: threads that make an instance, let it grow and write, and drop it.

As a service does that starts an instance for each request. On demand, the memory of an instance is
4 GiB of addresses that are mapped, made accessible as far as the instance has grown, and unmapped.
With --pool the addresses stay, and memory goes back by madvise(). Each instance returns a sum of
what it has written, which has to be right. An operation is an instance.
"""

import argparse

from ceasefire.bench.apps import common

_PROGRAM = r"""
import json, sys, threading, time
import wasmtime
from wasmtime import _ffi

MODULE = '''
(module
  (memory (export "memory") 1 32)
  (func (export "work") (param $seed i32) (param $more i32) (result i32)
    (local $at i32) (local $end i32) (local $sum i32)
    (drop (memory.grow (local.get $more)))
    (local.set $end (i32.mul (memory.size) (i32.const 65536)))
    (loop $write
      (i32.store (local.get $at) (i32.add (local.get $at) (local.get $seed)))
      (local.set $at (i32.add (local.get $at) (i32.const 1024)))
      (br_if $write (i32.lt_u (local.get $at) (local.get $end))))
    (local.set $at (i32.const 0))
    (loop $read
      (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 1024)))
      (br_if $read (i32.lt_u (local.get $at) (local.get $end))))
    (local.get $sum)))
'''

threads, seconds, pool = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:] == ["pool"]
config = wasmtime.Config()
if pool:
    # The package has these calls of the library, and no words for them.
    limits = _ffi.wasmtime_pooling_allocation_config_new()
    _ffi.wasmtime_pooling_allocation_config_total_memories_set(limits, 2 * threads)
    _ffi.wasmtime_pooling_allocation_config_total_core_instances_set(limits, 2 * threads)
    _ffi.wasmtime_pooling_allocation_strategy_set(config.ptr(), limits)
    _ffi.wasmtime_pooling_allocation_config_delete(limits)
engine = wasmtime.Engine(config)
module = wasmtime.Module(engine, MODULE)
counts, wrong = [0] * threads, [0] * threads
stop = time.monotonic() + seconds

def instance(seed, more):
    store = wasmtime.Store(engine)
    exports = wasmtime.Instance(store, module, []).exports(store)
    return exports["work"](store, seed, more) & 0xffffffff

def work(me):
    while not counts[me] or time.monotonic() < stop:
        more = counts[me] % 16
        words = (more + 1) * 64
        right = sum(range(0, words * 1024, 1024)) + words * me
        wrong[me] += instance(me, more) != right & 0xffffffff
        counts[me] += 1

all = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
[t.start() for t in all]
[t.join() for t in all]
print(json.dumps([sum(counts), sum(wrong)]))
"""


def main(args: argparse.Namespace) -> None:
    """Run the program, which checks itself."""
    common.run_python(args, _PROGRAM, *(["pool"] if args.pool else []))


def options() -> argparse.ArgumentParser:
    """Return a parser with the options of this application."""
    parser = common.parser(__doc__)
    parser.add_argument("--pool", action="store_true", help="instances take turns on addresses")
    return parser


if __name__ == "__main__":
    common.run_main(main, options())
