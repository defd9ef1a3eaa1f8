"""Producer and worker without a broker, for tests.

`Inline` runs a job as soon as it is enqueued; `Fake` collects jobs until they are drained. Both check jobs as a `Client` does, and hand
handlers args that went through JSON. Give them the worker whose handlers and middleware are to run::

    client = Fake(worker)
    sign_up("ann@example.com", client)
    assert client.jobs()[0].class_ == "SendEmail"
    client.drain()
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ._async import Loop
from ._handler import chain
from ._newjob import NewJob
from .client import Client
from .errors import UnknownClass
from .job import Job
from .worker import Worker

_NOWHERE = "amqp://nowhere.invalid"


@dataclass
class Enqueued:
    """A job that was enqueued, and when it is due; ``at`` is None for at once."""

    job: Job
    at: float | None

    @property
    def class_(self) -> str:
        """The job's class."""
        return self.job.class_

    @property
    def args(self) -> Any:
        """The job's args, as its handler will get them."""
        return self.job.args


class _Offline(Client):
    def __init__(self, worker: Worker | None = None) -> None:
        super().__init__(_NOWHERE)
        self._worker = worker
        self._loop = Loop(logging.getLogger("millrace"))

    def push(self, job: NewJob, *, deadline: float | None = None) -> str | None:
        """Enqueue a job that is made already."""
        return self._through(job, self._take)

    def enqueue_bulk(self, jobs: Iterable[NewJob], *, deadline: float | None = None) -> list[str | None]:
        """Enqueue many jobs."""
        return [self.push(job) for job in jobs]

    def _take(self, new: NewJob) -> str:
        jid, message = new.prepare(time.time())
        record = json.loads(message.body)
        body = message.body if new.at is None else json.dumps(record["job"]).encode()
        queue = record["queue"] if new.at is None else record["job"]["queue"]
        self._enqueued(Enqueued(Job(body, queue, message.headers, jid), None if new.at is None else record["scheduled_at"]))
        return jid

    def _enqueued(self, enqueued: Enqueued) -> None:
        raise NotImplementedError

    def _work(self, job: Job) -> None:
        handler = self._worker.handlers.get(job.class_) if self._worker else None
        if self._worker is None or handler is None:
            raise UnknownClass(job.class_)
        chain(handler.call, self._worker._middleware, self._loop)(job)


class Inline(_Offline):
    """A client that runs a job's handler at once. What the handler raises is the caller's."""

    def _enqueued(self, enqueued: Enqueued) -> None:
        self._work(enqueued.job)


class Fake(_Offline):
    """A client that collects."""

    def __init__(self, worker: Worker | None = None) -> None:
        super().__init__(worker)
        self._jobs: list[Enqueued] = []

    def _enqueued(self, enqueued: Enqueued) -> None:
        self._jobs.append(enqueued)

    def jobs(self) -> list[Enqueued]:
        """List what was enqueued and not drained."""
        return list(self._jobs)

    def drain(self) -> int:
        """Run what is there and what that enqueues, scheduled jobs as well, and tell how many that were.

        What a handler raises ends it; the job that failed is gone, those behind it stay.
        """
        count = 0
        while self._jobs:
            count += 1
            self._work(self._jobs.pop(0).job)
        return count

    def clear(self) -> None:
        """Forget what was enqueued."""
        self._jobs.clear()
