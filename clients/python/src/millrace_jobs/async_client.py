"""The producer for async code."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar, Unpack

from ._define import Defined, defined, defining
from ._governed import GovernedQueue
from ._handler import check_callable, is_async
from ._hosts import DEFAULT_URL
from ._limit import Limit
from ._line import Lines
from ._login import AsyncCredentials, Credentials
from ._message import MessageProperties, new_message
from ._newjob import MessageOptions, NewJob, Options
from ._periodic import PeriodicJob
from ._unique import Decision, decided
from .client import collected, naming
from .errors import Error

AsyncEnqueue = Callable[[NewJob], "Awaitable[str | None]"]
AsyncClientMiddleware = Callable[[NewJob, AsyncEnqueue], "Awaitable[str | None]"]
M = TypeVar("M", bound=AsyncClientMiddleware)

TURN = 50
"""How many jobs of a bulk are encoded before other tasks of the event loop may run."""


class AsyncClient:
    """Enqueues jobs from async code, without blocking the event loop.

    It is a `Client` whose methods are awaited, and has the same options. ``credentials`` may be
    async; it is then awaited on the event loop of the connection's thread, not on yours.

    Its connection has a thread of its own, as a Client's does. So it may be used from several event
    loops, heartbeats continue while the event loop is busy, and it may be made when a module is
    imported. Close it with ``await client.close()`` or ``async with``.

    If a call is cancelled, its job may or may not be enqueued, and its jid is lost. Give it a ``jid``
    of your own if you must know it then.
    """

    def __init__(
        self,
        url: str | Sequence[str] = DEFAULT_URL,
        *,
        timeout: float = 30,
        fail_fast: bool = False,
        credentials: Credentials | AsyncCredentials | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._lines = Lines(url, credentials, tls, fail_fast=fail_fast, sync=False)
        self._timeout = timeout
        self._middleware: list[AsyncClientMiddleware] = []

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def use(self, middleware: M) -> M:
        """Add middleware around each publish: ``async def middleware(job, next)``.

        It awaits ``next(job)``. The first added is the outermost. It may change the job. If it does
        not call ``next(job)``, nothing is published and the jid is None. Its result does not change
        the jid.
        """
        check_callable("the middleware", middleware, 2)
        if not is_async(middleware):
            raise TypeError("the middleware is not async: a Client takes plain functions, an AsyncClient async ones")
        self._middleware.append(middleware)
        return middleware

    async def enqueue(self, class_: str, args: Sequence[Any] = (), *, deadline: float | None = None, **options: Unpack[Options]) -> str:
        """Publish a job, and return its jid once the broker has confirmed it.

        See `Client.enqueue`.
        """
        return await self.push(NewJob(class_, args, None, **options), deadline=deadline) or ""

    async def enqueue_at(
        self, at: float | datetime, class_: str, args: Sequence[Any] = (), *, deadline: float | None = None, **options: Unpack[Options]
    ) -> str:
        """Publish a job that is due at a given time. See `Client.enqueue_at`."""
        return await self.push(NewJob(class_, args, at, **options), deadline=deadline) or ""

    async def enqueue_in(
        self, delay: float, class_: str, args: Sequence[Any] = (), *, deadline: float | None = None, **options: Unpack[Options]
    ) -> str:
        """Publish a job that is due after a number of seconds."""
        return await self.push(NewJob(class_, args, time.time() + delay, **options), deadline=deadline) or ""

    async def enqueue_unique(
        self,
        class_: str,
        args: Sequence[Any] = (),
        *,
        at: float | datetime | None = None,
        deadline: float | None = None,
        **options: Unpack[Options],
    ) -> Decision:
        """Publish a job, and return which job stays if there is one with the same key already.

        See `Client.enqueue_unique`.
        """
        return await self.push_unique(NewJob(class_, args, at, **options), deadline=deadline)

    async def publish_at(
        self,
        at: float | datetime,
        exchange: str,
        routing_key: str = "",
        body: str | bytes = b"",
        *,
        properties: MessageProperties | None = None,
        deadline: float | None = None,
        **options: Unpack[MessageOptions],
    ) -> str:
        """Delay any AMQP message until a given time. See `Client.publish_at`."""
        return await self.push(new_message(at, exchange, routing_key, body, properties, options), deadline=deadline) or ""

    async def publish_in(
        self,
        delay: float,
        exchange: str,
        routing_key: str = "",
        body: str | bytes = b"",
        *,
        properties: MessageProperties | None = None,
        deadline: float | None = None,
        **options: Unpack[MessageOptions],
    ) -> str:
        """Delay any AMQP message for a number of seconds. See `Client.publish_at`."""
        return await self.publish_at(time.time() + delay, exchange, routing_key, body, properties=properties, deadline=deadline, **options)

    async def enqueue_bulk(self, jobs: Iterable[NewJob], *, deadline: float | None = None) -> list[str | None]:
        """Publish many jobs, and return their jids when all are answered.

        It waits for all confirms together. The jobs are published in order, unless middleware
        awaits something before it calls ``next``. Raise BulkError if any failed; it has the result
        of each job.
        """
        until = self._until(deadline)
        tasks: list[asyncio.Task[str | Error | None]] = []
        try:
            for job in jobs:
                tasks.append(asyncio.create_task(self._passed(job, until)))
                if len(tasks) % TURN == 0:
                    await asyncio.sleep(0)
            return collected(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def push(self, job: NewJob, *, deadline: float | None = None) -> str | None:
        """Publish a `NewJob`."""
        until = self._until(deadline)
        return await self._through(job, lambda job: self._send(job, until))

    async def push_unique(self, job: NewJob, *, deadline: float | None = None) -> Decision:
        """Publish a `NewJob` as `enqueue_unique` does."""
        until, decision = self._until(deadline), Decision("")

        async def last(job: NewJob) -> str:
            nonlocal decision
            jid, decision = await self._decide(job, until)
            return jid

        await self._through(job.as_unique(), last)
        return decision

    async def define(
        self,
        source: str,
        jobs: Iterable[PeriodicJob] | None = None,
        *,
        limits: Iterable[Limit] | None = None,
        queues: Iterable[GovernedQueue] | None = None,
        deadline: float | None = None,
    ) -> Defined:
        """Set all periodic jobs, limits and governed queues of a source. See `Client.define`."""
        return defined(await asyncio.wrap_future(self._lines.ask(defining(source, jobs, limits, queues), self._until(deadline))))

    async def close(self) -> None:
        """Close the connection. Publishes that still wait for an answer fail."""
        await asyncio.to_thread(self._lines.close)

    def _until(self, deadline: float | None) -> float:
        return time.monotonic() + (self._timeout if deadline is None else deadline)

    async def _passed(self, job: NewJob, until: float) -> str | Error | None:
        try:
            return await self._through(job, lambda job: self._send(job, until))
        except Error as e:
            return e

    async def _through(self, job: NewJob, last: AsyncEnqueue) -> str | None:
        """Publish a job through the middleware. Return its jid, or None if none was published."""
        jid: str | None = None

        async def publish(job: NewJob) -> str | None:
            nonlocal jid
            jid = await last(job)
            return jid

        call: AsyncEnqueue = publish
        for middleware in reversed(self._middleware):
            call = _wrapped(middleware, call)
        await call(job)
        return jid

    async def _send(self, job: NewJob, until: float) -> str:
        jid, message = job.prepare(time.time())
        with naming(jid):
            await asyncio.wrap_future(self._lines.publish(message, until))
        return jid

    async def _decide(self, job: NewJob, until: float) -> tuple[str, Decision]:
        jid, message = job.prepare(time.time())
        with naming(jid):
            return jid, decided(await asyncio.wrap_future(self._lines.decide(message, until)), jid)


def _wrapped(middleware: AsyncClientMiddleware, call: AsyncEnqueue) -> AsyncEnqueue:
    return lambda job: middleware(job, call)
