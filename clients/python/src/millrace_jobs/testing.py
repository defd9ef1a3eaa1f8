"""Producer and worker without a broker, for tests.

`Inline` runs a job as soon as it is enqueued; `Fake` collects jobs until they are drained; `AsyncInline` and `AsyncFake` are the same for
async code; `perform` runs one attempt. All check jobs as a `Client` does, hand handlers args that went through JSON, and judge what the
handlers do as a worker does. Give them the worker whose handlers, middleware and hooks are to run::

    client = Fake(worker)
    sign_up("ann@example.com", client)
    assert client.jobs()[0].class_ == "SendEmail"
    client.drain()
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, Unpack

from . import _wire
from ._async import Loop
from ._attempt import attempt as run_attempt
from ._attempt import limit_of
from ._handler import chain
from ._newjob import NewJob, Options
from ._outcome import FAILED, Outcome, expire
from ._report import report
from .app import Task
from .async_client import AsyncClient
from .client import Client, collected
from .errors import Error, UnknownClass
from .job import Job
from .worker import Worker

_NOWHERE = "amqp://nowhere.invalid"
HANDED_BACK = "handed back"
T = TypeVar("T")


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


@dataclass
class Result:
    """What became of one attempt.

    ``outcome`` is ``success``, ``failed`` (it would be tried again ``retry_in`` seconds later), ``dead`` (for a ``reason``: ``exhausted``
    or ``killed``), ``discarded``, ``expired`` or ``handed back``. ``error`` is what the handler raised, or a `Timeout`.
    """

    job: Job
    outcome: str
    error: BaseException | None = None
    retry_in: float | None = None
    reason: str = ""
    failure: bool = False


def perform(
    worker: Worker, class_: str, args: Sequence[Any] = (), *, attempt: int = 1, cancel_after: float | None = None,
    stop_after: float | None = None, **options: Unpack[Options],
) -> Result:  # fmt: skip
    """Run one attempt of a job and return what became of it, as a worker would see it. What the handler raises is in the result.

    ``attempt`` is its number, 1 for the first. The job is cancelled, or the worker seems to stop, ``cancel_after`` or ``stop_after``
    seconds after the handler began. The options are those of a job: with a ``timeout`` the job runs into it.
    """
    enqueued = _made(NewJob(class_, args, None, **options))
    return _Performer(worker, worker._async_loop).perform(_numbered(enqueued.job, attempt - 1), cancel_after, stop_after)


class _Performer:
    """Runs attempts of jobs by the handlers of a worker."""

    def __init__(self, worker: Worker | None, loop: Loop | None) -> None:
        self._worker = worker
        self._loop = loop

    def use(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run async handlers in an event loop that runs in another thread."""
        if self._worker:
            self._loop = Loop(self._worker.log, loop)

    def perform(self, job: Job, cancel_after: float | None = None, stop_after: float | None = None) -> Result:
        """Run one attempt."""
        worker = self._worker
        if worker is None:
            raise UnknownClass(job.class_)
        if job._expired():
            outcome = expire(job, time.time())
            report(worker.log, job, outcome)
            return _result(job, outcome)
        loop = self._loop or worker._async_loop
        handler = worker._handlers.get(job.class_)
        call = chain(handler.call, worker._middleware, loop) if handler else None
        timers = [
            _Timer(limit_of(job, handler) if handler else None, partial(job._tell, end="timeout")),
            _Timer(cancel_after, partial(job._tell, end="cancelled")),
            _Timer(stop_after, partial(job._tell, stopping=True)),
        ]
        failed = partial(worker._hooks.call_here, "failure", loop=loop)
        try:
            outcome = run_attempt(job, handler, call, stopping=lambda: job.stopping, failed=failed, log=worker.log)
        finally:
            for timer in timers:
                timer.cancel()
        if outcome.died is not None:
            worker._hooks.call_here("death", job, outcome.died, loop=loop)
        return _result(job, outcome)


class _Timer:
    """Calls something after some seconds: immediately for 0, never for None."""

    def __init__(self, seconds: float | None, call: partial[None]) -> None:
        self._timer: threading.Timer | None = None
        if seconds is None:
            return
        if seconds <= 0:
            call()
            return
        self._timer = threading.Timer(seconds, call)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Call nothing any more."""
        if self._timer:
            self._timer.cancel()


def _result(job: Job, outcome: Outcome) -> Result:
    kind = HANDED_BACK if outcome.requeue else outcome.status
    return Result(job, kind, outcome.error, outcome.retry_in, outcome.reason, outcome.failure)


def _made(new: NewJob) -> Enqueued:
    jid, message = new.prepare(time.time())
    record = json.loads(message.body)
    body = message.body if new.at is None else json.dumps(record["job"]).encode()
    queue = record["queue"] if new.at is None else record["job"]["queue"]
    return Enqueued(Job(body, queue, message.headers, jid), None if new.at is None else record["scheduled_at"])


def _numbered(job: Job, retry_count: int) -> Job:
    """Give a job as it comes back after so many retries."""
    return Job(_wire.dump({**job._members, "retry_count": retry_count}), job.queue, job.headers, job.jid)


def _raise(errors: list[BaseException]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} jobs failed", errors)


class _Offline(Client):
    def __init__(self, worker: Worker | None = None) -> None:
        super().__init__(_NOWHERE)
        self._performer = _Performer(worker, None)
        self.results: list[Result] = []

    def push(self, job: NewJob, *, deadline: float | None = None) -> str | None:
        """Enqueue a job that is made already."""
        return self._through(job, self._take)

    def enqueue_bulk(self, jobs: Iterable[NewJob], *, deadline: float | None = None) -> list[str | None]:
        """Enqueue many jobs."""
        return collected([self._tried(job) for job in jobs])

    def _tried(self, job: NewJob) -> str | Error | None:
        try:
            return self.push(job)
        except Error as e:
            return e

    def _take(self, new: NewJob) -> str:
        enqueued = _made(new)
        self._enqueued(enqueued)
        return enqueued.job.jid

    def _enqueued(self, enqueued: Enqueued) -> None:
        raise NotImplementedError

    def _perform(self, job: Job) -> Result:
        result = self._performer.perform(job)
        self.results.append(result)
        return result


class Inline(_Offline):
    """A client that runs a job's handler immediately. What the handler raises is the caller's, but for `Discard`.

    ``results`` has what became of each.
    """

    def _enqueued(self, enqueued: Enqueued) -> None:
        result = self._perform(enqueued.job)
        if result.failure and result.error:
            raise result.error


class Fake(_Offline):
    """A client that collects. ``results`` has what became of each attempt that was drained."""

    def __init__(self, worker: Worker | None = None) -> None:
        super().__init__(worker)
        self._jobs: list[Enqueued] = []

    def _enqueued(self, enqueued: Enqueued) -> None:
        self._jobs.append(enqueued)

    def jobs(self, class_: str | Task[Any, Any] | None = None) -> list[Enqueued]:
        """List what was enqueued and not drained: all jobs, or those of a class or task."""
        wanted = class_.class_ if isinstance(class_, Task) else class_
        return [enqueued for enqueued in self._jobs if wanted is None or enqueued.class_ == wanted]

    def drain(self, *, retry: bool = False) -> int:
        """Run what is there and what that enqueues, scheduled jobs as well, and return how many attempts that were.

        With ``retry`` a job that fails is tried again immediately, with the next ``attempt``, until it ends well or is dead. The jobs
        behind one that fails run too. At the end the error of each job that did not end well is raised: itself if it is the only one,
        else all in an ExceptionGroup.
        """
        count = 0
        errors: list[BaseException] = []
        while self._jobs:
            count += 1
            job = self._jobs.pop(0).job
            result = self._perform(job)
            if retry and result.outcome == FAILED:
                self._jobs.append(Enqueued(_numbered(job, job.retry_count + 1), None))
            elif result.failure and result.error:
                errors.append(result.error)
        _raise(errors)
        return count

    def clear(self) -> None:
        """Forget what was enqueued, and the results."""
        self._jobs.clear()
        self.results.clear()


class AsyncInline(AsyncClient):
    """An `Inline` for async code. Async handlers run in the event loop of the caller, others in a thread."""

    def __init__(self, worker: Worker | None = None) -> None:
        super().__init__(_NOWHERE)
        self._inline = Inline(worker)

    @property
    def results(self) -> list[Result]:
        """What became of each job."""
        return self._inline.results

    async def _send(self, job: NewJob, until: float) -> str:
        return await _in_thread(self._inline, partial(self._inline._take, job))


class AsyncFake(AsyncClient):
    """A `Fake` for async code. Async handlers run in the event loop of the caller of `drain`, others in a thread."""

    def __init__(self, worker: Worker | None = None) -> None:
        super().__init__(_NOWHERE)
        self._fake = Fake(worker)

    @property
    def results(self) -> list[Result]:
        """What became of each attempt that was drained."""
        return self._fake.results

    async def _send(self, job: NewJob, until: float) -> str:
        return self._fake._take(job)

    def jobs(self, class_: str | Task[Any, Any] | None = None) -> list[Enqueued]:
        """List what was enqueued and not drained: all jobs, or those of a class or task."""
        return self._fake.jobs(class_)

    async def drain(self, *, retry: bool = False) -> int:
        """Run what is there, as `Fake.drain` does."""
        return await _in_thread(self._fake, partial(self._fake.drain, retry=retry))

    def clear(self) -> None:
        """Forget what was enqueued, and the results."""
        self._fake.clear()


async def _in_thread(client: _Offline, call: Callable[[], T]) -> T:
    """Run what blocks in a thread, and the async handlers that it calls in this event loop."""
    client._performer.use(asyncio.get_running_loop())
    return await asyncio.to_thread(call)
