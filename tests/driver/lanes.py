# SPDX-License-Identifier: GPL-2.0-only
"""Runs jobs in two lanes: those that boot guests one after the other, the others beside them.

Guests use every CPU there is and never run beside each other; what runs on this machine alone fills
the gaps that they leave. The guests' lane is the caller's thread: a guest ends with the thread that
started it, and signals arrive there. Within a lane jobs keep their order.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.driver.host import Interrupted
from tests.driver.suites import Job

Place = tuple[int, Job]


def run(jobs: Sequence[Job], work: Callable[[int, Job, threading.Event], None]) -> None:
    """Call work(place, job, stop) for each job, place counting from 1.

    stop: set when the run is given up; work then ends its job and raises Interrupted.
    """
    stop = threading.Event()

    def lane(places: Sequence[Place]) -> None:
        for place, job in places:
            work(place, job, stop)

    def beside(places: Sequence[Place]) -> None:
        try:
            lane(places)
        except Interrupted:
            if not stop.is_set():
                raise

    places = list(enumerate(jobs, 1))
    with ThreadPoolExecutor(max_workers=1) as pool:
        other = pool.submit(beside, [p for p in places if not boots(p[1])])
        try:
            lane([p for p in places if boots(p[1])])
            other.result()
        except BaseException:
            stop.set()
            raise


def boots(job: Job) -> bool:
    """Return whether a job boots guests that use the whole machine."""
    return job.kind == "guest" or job.boots
