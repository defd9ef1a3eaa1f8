"""The processing of one delivery."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING

from . import _outcome, _wire
from ._attempt import attempt, limit_of
from ._lane import Arrival, Pool
from ._outcome import Outcome
from ._report import report
from .job import End, Job

if TYPE_CHECKING:
    from ._consume import Attachment
    from .worker import Worker


class Task:
    """`work` runs in a thread of the lane. Everything else belongs to the event loop."""

    __slots__ = ("_begun", "_timer", "arrival", "attachment", "claimed", "job", "pool", "queue", "settled", "since", "suspect", "worker")

    def __init__(self, worker: Worker, attachment: Attachment, queue: str, arrival: Arrival) -> None:
        self.worker = worker
        self.attachment = attachment
        self.pool: Pool = attachment.pool
        self.queue = queue
        self.arrival = arrival
        self.job: Job | None = None  # once its handler runs
        self.since = 0.0  # when its handler began
        self.claimed = False  # the delivery is being settled
        self.settled = False
        self.suspect = False
        self._begun = time.time()

    def work(self) -> None:
        """Process the delivery up to its outcome."""
        try:
            job, outcome = self._run()
        except CancelledError:  # the worker has ended
            job, outcome = None, Outcome(requeue=True)
        except BaseException:  # our own fault: requeued, the job would come again for ever
            self.worker.log.exception("millrace: a job could not be run, it is rejected")
            job, outcome = None, Outcome(reject=True)
        self.worker._post(partial(self.worker._settler.end, self, job, outcome, time.time()))

    def _run(self) -> tuple[Job | None, Outcome]:
        arrival = self.arrival
        properties = arrival.properties
        # Pika gives bytes if it is not UTF-8.
        message_id = properties.message_id if isinstance(properties.message_id, str) else ""
        try:
            job = Job(arrival.body, self.queue, properties.headers, message_id, _wire.clock(properties.timestamp))
        except ValueError as e:
            self.worker.log.error("millrace: a message in %s is no job, it is rejected: %s", self.queue, e)
            return None, Outcome(reject=True)
        deaths = 0
        if arrival.redelivered and self.worker.max_deaths > 0:
            self.suspect = True
            found = self.attachment.session.ledger.begin_from_thread(self, job)
            if found is None:
                return job, Outcome(requeue=True)
            deaths = found
        now = self._begun = time.time()
        if 0 < self.worker.max_deaths <= deaths:
            outcome = _outcome.poisoned(job, deaths, now)
        elif job._expired():
            outcome = _outcome.expire(job, now)
        else:
            return job, self._attempt(job)
        report(self.worker.log, job, outcome)
        return job, outcome

    def _attempt(self, job: Job) -> Outcome:
        worker = self.worker
        handler = worker._handlers.get(job.class_)
        perform = handler.perform if handler else None
        if handler and perform:
            self.since = self._begun
            self.job = job
            # After self.job is set: a stop sets the worker's flag first, and then those of the
            # running jobs.
            job._signal(stopping=worker._stopping)
            limit = limit_of(job, handler)
            if limit:
                worker._post(partial(worker._settler.arm, self, limit))
        failed = partial(worker._hooks.call_here, "failure")
        return attempt(job, handler, perform, stopping=lambda: worker._stopping, failed=failed, log=worker.log)

    def took(self, end: float) -> float:
        """Return how many seconds the job ran."""
        return max(end - self._begun, 0)

    def end(self, why: End) -> None:
        """Set the cancel signal."""
        if self.job:
            self.job._signal(end=why)
