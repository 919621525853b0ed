# SPDX-License-Identifier: GPL-2.0-only
"""Runs jobs in two lanes: "guests" for those that need every CPU, "beside" for the others.

The threads of attacks spin, on more virtual CPUs than there are: what runs beside them takes four
times as long as alone, they take twice as long, and cases find nothing to attack with. So a job of
the lane of guests runs alone. Jobs of the other lane run two at a time, when no job of the lane of
guests can begin. A job that waits for a build or for its control runs lets others pass. Signals
arrive in the caller's thread, which is one of the two that work; the other is told to stop. A guest
ends with the thread that runs it.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ceasefire.errors import Interrupted
from tests.driver.suites import Job

Place = tuple[int, Job]
Work = Callable[[int, Job, threading.Event], None]
_POLL = 0.5


class Lanes:
    """The jobs that have not begun, and those that are not over."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.stop = threading.Event()
        self._left = list(enumerate(jobs, 1))
        self._not_over = {job.name for job in jobs}
        self._running: list[Job] = []
        self._changed = threading.Condition()

    def take(self) -> Place | None:
        """Return the next job, None when there is none; wait until one can begin.

        Raises Interrupted when the run is given up meanwhile.
        """
        with self._changed:
            while self._left:
                if self.stop.is_set():
                    raise Interrupted
                if place := self._next():
                    self._left.remove(place)
                    self._running.append(place[1])
                    return place
                self._changed.wait(_POLL)
            return None

    def _next(self) -> Place | None:
        """Return the job that may begin now; the caller holds the lock."""
        ready = [p for p in self._left if not self._not_over & {*p[1].needs, p[1].control}]
        for place in ready:
            if place[1].lane == "guests":
                return None if self._running else place
        if any(job.lane == "guests" for job in self._running):
            return None
        return ready[0] if ready else None

    def over(self, job: Job) -> None:
        """Let begin what has waited for this job."""
        with self._changed:
            self._running.remove(job)
            self._not_over.remove(job.name)
            self._changed.notify_all()


def run(jobs: Sequence[Job], work: Work) -> None:
    """Call work(place, job, stop) for each job, place counting from 1.

    stop: set when the run is given up; work then ends its job and raises Interrupted.
    """
    lanes = Lanes(jobs)

    def each() -> None:
        while (place := lanes.take()) is not None:
            try:
                work(*place, lanes.stop)
            finally:
                lanes.over(place[1])

    def other() -> None:
        try:
            each()
        except Interrupted:
            if not lanes.stop.is_set():
                raise
        except BaseException:
            # The caller may wait for a job that will not come.
            lanes.stop.set()
            raise

    with ThreadPoolExecutor(max_workers=1) as pool:
        second = pool.submit(other)
        try:
            each()
            second.result()
        except Interrupted:
            # What went wrong there is what there is to say.
            second.result()
            raise
        except BaseException:
            lanes.stop.set()
            raise
