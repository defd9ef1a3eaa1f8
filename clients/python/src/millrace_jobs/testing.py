"""Producer and worker without a broker, for tests.

- `Inline` runs a job as soon as it is enqueued.
- `Fake` collects jobs until they are drained.
- `AsyncInline` and `AsyncFake` are the same for async code.
- `perform` runs one attempt.

A duplicate of a unique job is not enqueued, and ``enqueue_unique`` says so.

All check jobs as a `Client` does, pass args through JSON, and decide outcomes as a worker does.
Give them the worker whose handlers, middleware and hooks should run::

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, Unpack

from . import _wire
from ._async import Loop
from ._attempt import attempt as run_attempt
from ._attempt import limit_of
from ._define import Defined, defining
from ._governed import GovernedQueue
from ._handler import chain
from ._keys import Keys
from ._limit import Limit
from ._newjob import NewJob, Options, seconds
from ._outcome import FAILED, Outcome, expire
from ._periodic import PeriodicJob
from ._report import report
from ._unique import Decision
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
    """A job that was enqueued, and when it is due. If ``at`` is None, it is due immediately."""

    job: Job
    at: float | None

    @property
    def class_(self) -> str:
        """The job's class."""
        return self.job.class_

    @property
    def args(self) -> Any:
        """The args that the job's handler gets."""
        return self.job.args

    @property
    def gate(self) -> Mapping[str, Any] | None:
        """The member ``gate`` of a limited job, with its ``key`` if it has one. Otherwise None."""
        return self.job._members.get("gate")


@dataclass
class Result:
    """The result of one attempt.

    ``outcome`` is ``success``, ``failed``, ``dead``, ``discarded``, ``expired`` or ``handed back``.
    After ``failed``, the job would be retried in ``retry_in`` seconds. A ``dead`` job has a
    ``reason``, ``exhausted`` or ``killed``. ``error`` is the error that the handler raised, or a
    `Timeout`.
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
    """Run one attempt of a job and return its result, as a worker would see it.

    An error of the handler is in the result. ``attempt`` is the number of the attempt, from 1.
    ``cancel_after`` seconds after the handler began, the job is cancelled. ``stop_after`` seconds
    after the handler began, the worker seems to stop. The options are those of a job. With a
    ``timeout``, the job can run into it.
    """
    enqueued = _made(NewJob(class_, args, None, **options))
    return _Performer(worker, worker._async_loop).perform(_numbered(enqueued.job, attempt - 1), cancel_after, stop_after)


class _Performer:
    """Runs attempts of jobs with the handlers of a worker."""

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
            _Timer(limit_of(job, handler) if handler else None, partial(job._signal, end="timeout")),
            _Timer(cancel_after, partial(job._signal, end="cancelled")),
            _Timer(stop_after, partial(job._signal, stopping=True)),
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
    """Calls a function after some seconds: immediately for 0, never for None."""

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
        """Cancel the call."""
        if self._timer:
            self._timer.cancel()


def _result(job: Job, outcome: Outcome) -> Result:
    kind = HANDED_BACK if outcome.requeue else outcome.status
    return Result(job, kind, outcome.error, outcome.retry_in, outcome.reason, outcome.failure)


def _made(new: NewJob) -> Enqueued:
    jid, message = new.prepare(time.time())
    record = json.loads(message.body)
    job = record["job"] if message.key == _wire.SCHEDULED else record
    body = message.body if job is record else json.dumps(job).encode()
    return Enqueued(Job(body, job["queue"], message.headers, jid), None if new.at is None else seconds(new.at))


def _numbered(job: Job, retry_count: int) -> Job:
    """Return a job as it is after ``retry_count`` failures."""
    return Job(_wire.dump({**job._members, "retry_count": retry_count}), job.queue, job.headers, job.jid)


def _raise(errors: list[BaseException]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} jobs failed", errors)


def _listed(definitions: Iterable[T] | None) -> list[T] | None:
    return None if definitions is None else list(definitions)


_Definition = PeriodicJob | Limit | GovernedQueue


def _changed(did: Defined, old: Sequence[_Definition], new: Sequence[_Definition]) -> Defined:
    """Return what was done, with the change of one kind of definitions."""
    before, now = ({d.name: d.definition() for d in definitions} for definitions in (old, new))
    made = [name for name in now if name not in before]
    changed = [name for name in now if name in before and now[name] != before[name]]
    forgotten = sorted(before.keys() - now.keys())
    unchanged = len(now) - len(made) - len(changed)
    return Defined(did.made + made, did.changed + changed, did.forgotten + forgotten, did.unchanged + unchanged)


class _Offline(Client):
    def __init__(self, worker: Worker | None = None) -> None:
        super().__init__(_NOWHERE)
        self._performer = _Performer(worker, None)
        self.results: list[Result] = []
        self._periodic: dict[str, list[PeriodicJob]] = {}
        self._limits: dict[str, list[Limit]] = {}
        self._queues: dict[str, list[GovernedQueue]] = {}
        self._keys = Keys()

    def define(
        self,
        source: str,
        jobs: Iterable[PeriodicJob] | None = None,
        *,
        limits: Iterable[Limit] | None = None,
        queues: Iterable[GovernedQueue] | None = None,
        deadline: float | None = None,
    ) -> Defined:
        """Keep what a source defines. Nothing is due in a test, and jobs do not wait."""
        jobs, limits, queues = _listed(jobs), _listed(limits), _listed(queues)
        defining(source, jobs, limits, queues)  # checks them
        did = Defined()
        if queues is not None:
            did = _changed(did, self.queues(source), queues)
            self._queues[source] = queues
        if limits is not None:
            did = _changed(did, self.limits(source), limits)
            self._limits[source] = limits
        if jobs is not None:
            did = _changed(did, self.periodic(source), jobs)
            self._periodic[source] = jobs
        return did

    def periodic(self, source: str) -> list[PeriodicJob]:
        """List the periodic jobs that a source has defined."""
        return list(self._periodic.get(source, ()))

    def limits(self, source: str) -> list[Limit]:
        """List the limits that a source has defined."""
        return list(self._limits.get(source, ()))

    def queues(self, source: str) -> list[GovernedQueue]:
        """List the governed queues that a source has defined."""
        return list(self._queues.get(source, ()))

    def push(self, job: NewJob, *, deadline: float | None = None) -> str | None:
        """Enqueue a `NewJob`."""
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
        return self._decide(new)[0]

    def _decide(self, new: NewJob, until: float = 0) -> tuple[str, Decision]:
        enqueued = _made(new)
        decision = self._keys.decide(enqueued.job, self._replaced)
        if not decision.duplicate:
            self._enqueued(enqueued)
        return enqueued.job.jid, decision

    def _replaced(self, jid: str) -> bool:
        """Remove a job that waits, for a later one with the same key. Return whether it was removed."""
        return False

    def _enqueued(self, enqueued: Enqueued) -> None:
        raise NotImplementedError

    def _perform(self, job: Job) -> Result:
        self._keys.begins(job)
        result = self._performer.perform(job)
        self.results.append(result)
        return result


class Inline(_Offline):
    """A client that runs a job's handler immediately.

    It raises the error that the handler raises, except for `Discard`. ``results`` has the result of
    each job.
    """

    def _enqueued(self, enqueued: Enqueued) -> None:
        result = self._perform(enqueued.job)
        self._keys.ends(enqueued.job)
        if result.failure and result.error:
            raise result.error


class Fake(_Offline):
    """A client that collects jobs. ``results`` has the result of each drained attempt."""

    def __init__(self, worker: Worker | None = None) -> None:
        super().__init__(worker)
        self._jobs: list[Enqueued] = []

    def _enqueued(self, enqueued: Enqueued) -> None:
        self._jobs.append(enqueued)

    def _replaced(self, jid: str) -> bool:
        before = len(self._jobs)
        self._jobs = [enqueued for enqueued in self._jobs if enqueued.job.jid != jid or enqueued.job.retry_count > 0]
        return len(self._jobs) < before

    def jobs(self, class_: str | Task[Any, Any] | None = None) -> list[Enqueued]:
        """List the jobs that were enqueued and not drained: all, or those of a class or task."""
        wanted = class_.class_ if isinstance(class_, Task) else class_
        return [enqueued for enqueued in self._jobs if wanted is None or enqueued.class_ == wanted]

    def drain(self, *, retry: bool = False) -> int:
        """Run the collected jobs, and those that they enqueue. Return the number of attempts.

        Scheduled jobs run without waiting. Jobs also run after one that fails.

        With ``retry``, a job that fails is retried immediately, with the next ``attempt``, until it
        ends well or is dead. At the end, the errors of the jobs that did not end well are raised: a
        single error itself, or several in an ExceptionGroup.
        """
        count = 0
        errors: list[BaseException] = []
        while self._jobs:
            count += 1
            job = self._jobs.pop(0).job
            result = self._perform(job)
            if retry and result.outcome == FAILED:
                self._jobs.append(Enqueued(_numbered(job, job.retry_count + 1), None))
                continue
            self._keys.ends(job)
            if result.failure and result.error:
                errors.append(result.error)
        _raise(errors)
        return count

    def clear(self) -> None:
        """Remove all jobs and results."""
        self._jobs.clear()
        self._keys.clear()
        self.results.clear()


class _AsyncOffline(AsyncClient):
    def __init__(self, offline: _Offline) -> None:
        super().__init__(_NOWHERE)
        self._offline = offline

    async def define(
        self,
        source: str,
        jobs: Iterable[PeriodicJob] | None = None,
        *,
        limits: Iterable[Limit] | None = None,
        queues: Iterable[GovernedQueue] | None = None,
        deadline: float | None = None,
    ) -> Defined:
        """Keep what a source defines. Nothing is due in a test, and jobs do not wait."""
        return self._offline.define(source, jobs, limits=limits, queues=queues)

    def periodic(self, source: str) -> list[PeriodicJob]:
        """List the periodic jobs that a source has defined."""
        return self._offline.periodic(source)

    def limits(self, source: str) -> list[Limit]:
        """List the limits that a source has defined."""
        return self._offline.limits(source)

    def queues(self, source: str) -> list[GovernedQueue]:
        """List the governed queues that a source has defined."""
        return self._offline.queues(source)


class AsyncInline(_AsyncOffline):
    """An `Inline` for async code.

    Async handlers run in the event loop of the caller, others in a thread.
    """

    def __init__(self, worker: Worker | None = None) -> None:
        self._inline = Inline(worker)
        super().__init__(self._inline)

    @property
    def results(self) -> list[Result]:
        """The result of each job."""
        return self._inline.results

    async def _send(self, job: NewJob, until: float) -> str:
        return (await self._decide(job, until))[0]

    async def _decide(self, job: NewJob, until: float) -> tuple[str, Decision]:
        return await _in_thread(self._inline, partial(self._inline._decide, job))


class AsyncFake(_AsyncOffline):
    """A `Fake` for async code.

    Async handlers run in the event loop of the caller of `drain`, others in a thread.
    """

    def __init__(self, worker: Worker | None = None) -> None:
        self._fake = Fake(worker)
        super().__init__(self._fake)

    @property
    def results(self) -> list[Result]:
        """The result of each drained attempt."""
        return self._fake.results

    async def _send(self, job: NewJob, until: float) -> str:
        return self._fake._take(job)

    async def _decide(self, job: NewJob, until: float) -> tuple[str, Decision]:
        return self._fake._decide(job)

    def jobs(self, class_: str | Task[Any, Any] | None = None) -> list[Enqueued]:
        """List the jobs that were enqueued and not drained: all, or those of a class or task."""
        return self._fake.jobs(class_)

    async def drain(self, *, retry: bool = False) -> int:
        """Run the collected jobs, as `Fake.drain` does."""
        return await _in_thread(self._fake, partial(self._fake.drain, retry=retry))

    def clear(self) -> None:
        """Remove all jobs and results."""
        self._fake.clear()


async def _in_thread(client: _Offline, call: Callable[[], T]) -> T:
    """Run a blocking call in a thread, and the async handlers that it calls in this event loop."""
    client._performer.use(asyncio.get_running_loop())
    return await asyncio.to_thread(call)
