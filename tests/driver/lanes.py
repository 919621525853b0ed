# SPDX-License-Identifier: GPL-2.0-only
"""Runs jobs in two lanes: "guests" for those that keep every CPU busy, "beside" for the others.

Attacks need their CPUs to themselves most of the time, so no two jobs of the lane of guests run at
a time. What runs on this machine alone, and guests whose time goes into booting, fill the gaps,
with a lower priority. Within a lane the first job that can begin is next: one that waits for a
build or for its control runs lets others pass. When the lane of guests is empty its thread helps
with the rest of the other. Signals arrive in the caller's thread, which is the lane of guests; the
other is told to stop. A guest ends with the thread that runs it: a lane is one thread.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ceasefire.errors import Interrupted
from tests.driver.suites import Job

Place = tuple[int, Job]
Work = Callable[[int, Job, threading.Event], None]
_NICE = 10
_POLL = 0.5


class Lanes:
    """The jobs that have not begun, by lane, and those that are not over."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.stop = threading.Event()
        self._left = list(enumerate(jobs, 1))
        self._under_way = {job.name for job in jobs}
        self._changed = threading.Condition()

    def take(self, lane: str) -> Place | None:
        """Return the next job of a lane, None when there is none; wait until one can begin.

        Raises Interrupted when the run is given up meanwhile.
        """
        with self._changed:
            while waiting := [place for place in self._left if place[1].lane == lane]:
                if self.stop.is_set():
                    raise Interrupted
                for place in waiting:
                    if not self._under_way & {*place[1].needs, place[1].control}:
                        self._left.remove(place)
                        return place
                self._changed.wait(_POLL)
            return None

    def over(self, job: Job) -> None:
        """Let begin what has waited for this job."""
        with self._changed:
            self._under_way.remove(job.name)
            self._changed.notify_all()


def run(jobs: Sequence[Job], work: Work) -> None:
    """Call work(place, job, stop) for each job, place counting from 1.

    stop: set when the run is given up; work then ends its job and raises Interrupted.
    """
    lanes = Lanes(jobs)

    def each(lane: str) -> None:
        while (place := lanes.take(lane)) is not None:
            try:
                work(*place, lanes.stop)
            finally:
                lanes.over(place[1])

    def beside() -> None:
        # Of this thread and of the processes that it starts.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        try:
            each("beside")
        except Interrupted:
            if not lanes.stop.is_set():
                raise
        except BaseException:
            # The other lane may wait for a job that will not come.
            lanes.stop.set()
            raise

    with ThreadPoolExecutor(max_workers=1) as pool:
        other = pool.submit(beside)
        try:
            each("guests")
            each("beside")
            other.result()
        except Interrupted:
            # What went wrong there is what there is to say.
            other.result()
            raise
        except BaseException:
            lanes.stop.set()
            raise
