"""One delivery on its way through the worker."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING

from . import _outcome, _wire
from ._lane import Arrival, Pool
from ._outcome import SUCCEEDED, Outcome
from .errors import Discard, Kill, Timeout, UnknownClass
from .job import Job

if TYPE_CHECKING:
    from ._consume import Attachment
    from ._handler import Call, Handler
    from .worker import Worker


class Task:
    """`work` runs in a thread of the lane; everything else belongs to the event loop."""

    __slots__ = ("_begun", "_timer", "arrival", "attachment", "claimed", "job", "pool", "queue", "settled", "since", "suspect", "worker")

    def __init__(self, worker: Worker, attachment: Attachment, queue: str, arrival: Arrival) -> None:
        self.worker = worker
        self.attachment = attachment
        self.pool: Pool = attachment.pool
        self.queue = queue
        self.arrival = arrival
        self.job: Job | None = None  # once its handler runs
        self.since = 0.0  # when its handler began
        self.claimed = False  # somebody settles it
        self.settled = False
        self.suspect = False
        self._begun = time.time()

    def work(self) -> None:
        """Take the delivery from its beginning to its outcome."""
        try:
            job, outcome = self._run()
        except CancelledError:  # the worker has ended
            job, outcome = None, Outcome(requeue=True)
        except BaseException:  # a fault of ours: handed back, the job would come again at once, for ever
            self.worker.log.exception("millrace: a job could not be run, it is rejected")
            job, outcome = None, Outcome(reject=True)
        self.worker.post(partial(self.worker.settler.end, self, job, outcome, time.time()))

    def _run(self) -> tuple[Job | None, Outcome]:
        arrival = self.arrival
        properties = arrival.properties
        message_id = properties.message_id if isinstance(properties.message_id, str) else ""  # pika gives bytes where it is not UTF-8
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
            return job, _outcome.poisoned(job, deaths, now)
        if job._expired():
            return job, _outcome.expire(job, now)
        handler = self.worker.handlers.get(job.class_)
        if handler is None or handler.perform is None:
            return job, _outcome.judge(job, UnknownClass(job.class_), now)
        return job, self._call(job, handler, handler.perform)

    def _call(self, job: Job, handler: Handler, perform: Call) -> Outcome:
        limit = job.timeout or handler.timeout
        self.since = self._begun
        self.job = job
        job._tell(stopping=self.worker.stopping)  # after the job can be seen: whoever stops sets the flag first, and then tells
        if limit:
            self.worker.post(partial(self.worker.settler.arm, self, limit))
        try:
            perform(job)
        except BaseException as e:  # also what is no Exception: one job does not end the process
            error: BaseException = e
        else:
            return SUCCEEDED
        if job._end == "timeout" and limit and not isinstance(error, Discard | Kill):
            late = Timeout(limit)
            late.__cause__ = error
            error = late
        return _outcome.judge(
            job, error, time.time(), stopping=self.worker.stopping, end=job._end, retry_in=handler.retry_in
        )  # fmt: skip

    def took(self, end: float) -> float:
        """Give the seconds that it ran."""
        return max(end - self._begun, 0)

    def end(self, why: str) -> None:
        """Set the cancel signal."""
        if self.job:
            self.job._tell(end=why)
