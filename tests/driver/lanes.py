# SPDX-License-Identifier: GPL-2.0-only
"""Runs jobs in two lanes: "guests" for those that keep every CPU busy, "beside" for the others.

Attacks need their CPUs to themselves most of the time, so no two jobs of the lane of guests run at
a time. What runs on this machine alone, and guests whose time goes into booting, fill the gaps,
with a lower priority. Within a lane jobs begin in their order, and a job waits for those that it
needs. When the lane of guests is empty its thread helps with the rest of the other. Signals arrive
in the caller's thread, which is the lane of guests; the other is told to stop. A guest ends with
the thread that runs it: a lane is one thread.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from ceasefire.errors import Interrupted
from tests.driver.suites import Job

Place = tuple[int, Job]
_NICE = 10
_POLL = 0.5


def run(jobs: Sequence[Job], work: Callable[[int, Job, threading.Event], None]) -> None:
    """Call work(place, job, stop) for each job, place counting from 1.

    stop: set when the run is given up; work then ends its job and raises Interrupted.
    """
    stop = threading.Event()
    over = {job.name: threading.Event() for job in jobs}

    def lane(places: Iterator[Place]) -> None:
        for place, job in places:
            for name in job.needs:
                while name in over and not over[name].wait(_POLL):
                    if stop.is_set():
                        raise Interrupted
            try:
                work(place, job, stop)
            finally:
                over[job.name].set()

    def beside(places: Iterator[Place]) -> None:
        # Of this thread and of the processes that it starts.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        try:
            lane(places)
        except Interrupted:
            if not stop.is_set():
                raise
        except BaseException:
            # The other lane may wait for a job that will not come.
            stop.set()
            raise

    places = list(enumerate(jobs, 1))
    # Two threads take from this one; next() of a list's iterator is atomic.
    rest = iter([p for p in places if p[1].lane == "beside"])
    with ThreadPoolExecutor(max_workers=1) as pool:
        other = pool.submit(beside, rest)
        try:
            lane(iter([p for p in places if p[1].lane == "guests"]))
            lane(rest)
            other.result()
        except Interrupted:
            # What went wrong there is what there is to say.
            other.result()
            raise
        except BaseException:
            stop.set()
            raise
