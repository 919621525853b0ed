# SPDX-License-Identifier: GPL-2.0-only
"""Runs jobs in lanes: "guests" for those that need every CPU, "beside", "waits" and "spare".

The threads of attacks spin, on more virtual CPUs than there are: what runs beside them takes four
times as long as alone, they take twice as long, and cases find nothing to attack with. So a job of
the lane of guests runs alone. Jobs of the lane beside run two at a time, when no job of the lane of
guests can begin, and one of the lane waits as a third: its guest sleeps most of the time.

Builds come first, three at a time: each has long steps that keep one CPU busy, and the kernels wait
for one another until their tree is made.

Attacks also wait a lot, and a guest boots on one CPU. That time is for the lane spare: jobs that
boot no guest. While jobs of guests are left two of them run beside whatever runs but a build, and
the scheduler gives them a CPU that nobody else wants. After that they are as those of the lane
beside, and those that still run are one of the two. Builds of that lane make what is not needed at
once: they are the first in it, and also run beside other builds.

A job that waits for a build or for its control runs lets others pass. Signals arrive in the
caller's thread, which is one of the three that work; the others are told to stop. A guest ends with
the thread that runs it.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ceasefire.errors import Interrupted
from tests.driver import priority
from tests.driver.suites import LANES, Job

Place = tuple[int, Job]
Work = Callable[[int, Job, threading.Event], None]
_POLL = 0.5
# One job of guests and two in the time that it leaves, or two jobs and one that waits.
_SPARE = 2
_BESIDE = 2
_BUILDS = 3
_WORKERS = 3


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

        A job of the lane spare that runs as one of the lane beside is returned as such.
        Raises Interrupted when the run is given up meanwhile.
        """
        with self._changed:
            while self._left:
                if self.stop.is_set():
                    raise Interrupted
                if place := self._next():
                    self._left = [left for left in self._left if left[0] != place[0]]
                    self._running.append(place[1])
                    return place
                self._changed.wait(_POLL)
            return None

    def _next(self) -> Place | None:
        """Return the job that may begin now; the caller holds the lock."""
        ready = [p for p in self._left if not self._not_over & {*p[1].needs, p[1].control}]
        first = {lane: next((p for p in ready if p[1].lane == lane), None) for lane in LANES}
        running = {lane: sum(job.lane == lane for job in self._running) for lane in LANES}
        # Without guests there is no time that they leave.
        spare = "spare" if self._guests_left() else None
        later = next((p for p in ready if p[1].builds and p[1].lane == spare), None)
        # Those in the spare time of guests are in nobody's way; builds leave none.
        if any(job.builds and job.lane != spare for job in self._not_ended()):
            first["spare"] = later
            build = next((p for p in ready if p[1].builds and p[1].lane != spare), None)
            if build and len(self._running) < _BUILDS and all(j.builds for j in self._running):
                return build[0], replace(build[1], lane="beside")
        elif later:
            first["spare"] = later
        if self._guests_left():
            if first["guests"] and len(self._running) == running["spare"]:
                return first["guests"]
            if first["spare"] and running["spare"] < _SPARE:
                return first["spare"]
            if first["guests"] or running["guests"]:
                return None
            running["spare"] = 0
        elif first["spare"] and not first["beside"]:
            number, job = first["spare"]
            first["beside"] = number, replace(job, lane="beside")
        if first["waits"] and not running["waits"]:
            return first["waits"]
        counted = running["beside"] + min(1, running["spare"])
        return first["beside"] if counted < _BESIDE else None

    def _not_ended(self) -> list[Job]:
        return [*self._running, *(job for _, job in self._left)]

    def _guests_left(self) -> bool:
        return any(job.lane == "guests" for job in self._not_ended())

    def over(self, job: Job) -> None:
        """Let begin what has waited for this job."""
        with self._changed:
            self._running.remove(job)
            self._not_over.remove(job.name)
            if not self._guests_left() and any(other.lane == "spare" for other in self._running):
                priority.restore()
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

    with ThreadPoolExecutor(max_workers=_WORKERS - 1) as pool:
        others = [pool.submit(other) for _ in range(_WORKERS - 1)]
        try:
            each()
            for one in others:
                one.result()
        except Interrupted:
            # What went wrong there is what there is to say.
            for one in others:
                one.result()
            raise
        except BaseException:
            lanes.stop.set()
            raise
