"""Processes deliveries in the threads of the lanes."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from functools import partial

from . import _outcome, _wire
from ._attempt import attempt, limit_of
from ._claims import Claims
from ._core import Core
from ._ledger import Ledger
from ._outcome import Outcome
from ._report import report
from ._settle import Settler
from ._task import Task
from .job import Job


class Runner:
    """The deliveries of one connection. `work` runs in a thread of the lane."""

    def __init__(self, worker: Core, settler: Settler, ledger: Ledger, claims: Claims) -> None:
        self._worker = worker
        self._settler = settler
        self._ledger = ledger
        self._claims = claims

    def work(self, task: Task) -> None:
        """Process a delivery up to its outcome."""
        try:
            job, outcome = self._run(task)
        except CancelledError:  # the worker has ended
            job, outcome = None, Outcome(requeue=True)
        except BaseException:  # our own fault: requeued, the job would come again for ever
            self._worker.log.exception("millrace: a job could not be run, it is rejected")
            job, outcome = None, Outcome(reject=True)
        self._worker._post(partial(self._settler.end, task, job, outcome, time.time()))

    def _run(self, task: Task) -> tuple[Job | None, Outcome]:
        worker, arrival = self._worker, task.arrival
        properties = arrival.properties
        # Pika gives bytes if it is not UTF-8.
        message_id = properties.message_id if isinstance(properties.message_id, str) else ""
        try:
            job = Job(arrival.body, task.queue, properties.headers, message_id, _wire.clock(properties.timestamp))
        except ValueError as e:
            worker.log.error("millrace: a message in %s is no job, it is rejected: %s", task.queue, e)
            return None, Outcome(reject=True)
        if self._claims.needed(task):
            may_run = self._claims.may_run_from_thread(task)
            if not may_run:  # dropped: it ran elsewhere, or another copy stands for it
                return job, Outcome(requeue=may_run is None)
        deaths = 0
        if arrival.redelivered and worker.max_deaths > 0:
            task.suspect = True
            found = self._ledger.begin_from_thread(task.channel, job)
            if found is None:
                return job, Outcome(requeue=True)
            deaths = found
        now = task.begun = time.time()
        if 0 < worker.max_deaths <= deaths:
            outcome = _outcome.poisoned(job, deaths, now)
        elif job._expired():
            outcome = _outcome.expire(job, now)
        else:
            return job, self._attempt(task, job)
        report(worker.log, job, outcome)
        return job, outcome

    def _attempt(self, task: Task, job: Job) -> Outcome:
        worker = self._worker
        handler = worker._handlers.get(job.class_)
        perform = handler.perform if handler else None
        if handler and perform:
            task.since = task.begun
            task.job = job
            # After task.job is set: a stop sets the worker's flag first, and then those of the
            # running jobs.
            job._signal(stopping=worker._stopping)
            limit = limit_of(job, handler)
            if limit:
                worker._post(partial(self._settler.arm, task, limit))
        failed = partial(worker._hooks.call_here, "failure")
        return attempt(job, handler, perform, stopping=lambda: worker._stopping, failed=failed, log=worker.log)
