"""The producer."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from datetime import datetime
from typing import Any, Unpack

from ._amqp import Lost, unwelcome
from ._hosts import Hosts, split_hosts
from ._newjob import NewJob, Options
from ._pauses import Pauses
from ._publisher import Publisher
from ._wire import Message
from .errors import BulkError, Closed, Error, Unconfirmed, Unreachable

Enqueue = Callable[[NewJob], "str | None"]
ClientMiddleware = Callable[[NewJob, Enqueue], "str | None"]


class Client:
    """Enqueues jobs. It is safe to use from several threads, connects when it has to, and again when a connection is lost.

    A fork is survived: the child connects for itself. ``url`` is ``amqp://user:password@host:port/vhost``, or ``amqps://``; of a
    cluster with several hosts, ``amqp://user:password@a,b/vhost``, or a list of URLs. ``timeout`` is how many seconds a publish may
    take.
    """

    def __init__(self, url: str | Sequence[str], *, timeout: float = 30) -> None:
        self._urls = split_hosts(url)
        self._timeout = timeout
        self._middleware: list[ClientMiddleware] = []
        self._lock = threading.Lock()
        self._line: _Line | None = None
        self._closed = False

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def use(self, middleware: ClientMiddleware) -> ClientMiddleware:
        """Wrap each publish: ``middleware(job, next)``; the first added is the outermost.

        It may change the job, or not call ``next(job)``: then nothing is published and the jid is None.
        """
        self._middleware.append(middleware)
        return middleware

    def enqueue(self, class_: str, args: Sequence[Any] = (), *, deadline: float | None = None, **options: Unpack[Options]) -> str:
        """Publish a job and return its jid once the broker has confirmed it.

        ``deadline`` is how many seconds that may take (default: the client's timeout). The options are those of `Options`. If
        middleware did not let the job pass, the jid is empty. Raises Invalid, Refused, Unreachable, Unconfirmed or Closed.
        """
        return self.push(NewJob(class_, args, None, options), deadline=deadline) or ""

    def enqueue_at(
        self, at: float | datetime, class_: str, args: Sequence[Any] = (), *, deadline: float | None = None, **options: Unpack[Options]
    ) -> str:
        """Publish a job that is due at a time: seconds since the epoch, or a datetime. One in the past is due at once."""
        return self.push(NewJob(class_, args, at, options), deadline=deadline) or ""

    def enqueue_in(
        self, delay: float, class_: str, args: Sequence[Any] = (), *, deadline: float | None = None, **options: Unpack[Options]
    ) -> str:
        """Publish a job that is due in some seconds."""
        return self.push(NewJob(class_, args, time.time() + delay, options), deadline=deadline) or ""

    def enqueue_bulk(self, jobs: Iterable[NewJob], *, deadline: float | None = None) -> list[str | None]:
        """Publish many jobs, in order, in one window, and return their jids when all are answered.

        Raises BulkError if any failed, which says what became of each.
        """
        until = self._until(deadline)
        answers = [self._passed(job, until) for job in jobs]
        jids: list[str | None] = [None] * len(answers)
        errors: dict[int, Error] = {}
        for i, answer in enumerate(answers):
            try:
                jids[i] = answer()
            except Error as e:
                errors[i] = e
        if errors:
            raise BulkError(jids, errors)
        return jids

    def push(self, job: NewJob, *, deadline: float | None = None) -> str | None:
        """Publish a job that is made already."""
        until = self._until(deadline)
        return self._through(job, lambda j: self._send(j, until)())

    def close(self) -> None:
        """End the connection. Publishes that wait for an answer fail."""
        with self._lock:
            line, self._line, self._closed = self._line, None, True
        if line and line.pid == os.getpid():
            line.close()

    def _until(self, deadline: float | None) -> float:
        return time.monotonic() + (self._timeout if deadline is None else deadline)

    def _through(self, job: NewJob, last: Enqueue) -> str | None:
        call = last
        for middleware in reversed(self._middleware):
            call = _wrapped(middleware, call)
        return call(job)

    def _passed(self, job: NewJob, until: float) -> Callable[[], str | None]:
        """Send one of many. With middleware each is awaited inside, for that is where its jid and error are expected."""
        try:
            if self._middleware:
                jid = self._through(job, lambda j: self._send(j, until)())
                return lambda: jid
            return self._send(job, until)
        except Error as e:
            return _raising(e)

    def _send(self, job: NewJob, until: float) -> Callable[[], str]:
        jid, message = job.prepare(time.time())
        answer = self._current().publish(message, until)

        def wait() -> str:
            try:
                answer.result()
            except CancelledError:
                raise Closed("the client was closed") from None
            return jid

        return wait

    def _current(self) -> _Line:
        with self._lock:
            if self._closed:
                raise Closed("the client was closed")
            if self._line is None or self._line.pid != os.getpid():
                self._line = _Line(self._urls)
            return self._line


def _wrapped(middleware: ClientMiddleware, call: Enqueue) -> Enqueue:
    return lambda job: middleware(job, call)


def _raising(error: Error) -> Callable[[], str]:
    def fail() -> str:
        raise error

    return fail


class _Line:
    """A thread that owns the connection."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.pid = os.getpid()
        self._hosts = Hosts(urls)
        self._loop = asyncio.new_event_loop()
        self._publisher: Publisher | None = None
        self._connecting = asyncio.Lock()
        self._thread = threading.Thread(target=self._loop.run_forever, name="millrace producer", daemon=True)
        self._thread.start()

    def publish(self, message: Message, until: float) -> Future[None]:
        """Publish until it is answered, from another thread."""
        return asyncio.run_coroutine_threadsafe(self._publish(message, until), self._loop)

    async def _publish(self, message: Message, until: float) -> None:
        sent = False
        why: BaseException | None = None
        try:
            async with asyncio.timeout(max(until - time.monotonic(), 0)):
                while True:
                    publisher = await self._open()
                    sent = True
                    try:
                        return await publisher.publish(message)
                    except Lost as e:
                        why = e
                        self._forget(publisher)
        except TimeoutError:
            why = why or self._why
        except Lost as e:
            why = e
        kind = Unconfirmed if sent else Unreachable
        raise kind(f"{'not confirmed' if sent else 'broker not reached'}: {why or 'the deadline passed'}") from why

    _why: BaseException | None = None  # the last attempt to connect failed
    _welcome = False  # one did not: then what sounds like a refusal is a broker that is starting

    async def _open(self) -> Publisher:
        """Give the publisher that is open, or connect until there is one. Lost: the broker does not want us."""
        if self._publisher:
            return self._publisher
        async with self._connecting:
            pauses = Pauses()
            while not self._publisher:
                try:
                    self._publisher = await self._connect()
                except Lost as e:
                    self._why = e
                    if unwelcome(e) and not self._welcome:
                        raise Lost(e) from e
                    await pauses.wait()
            return self._publisher

    async def _connect(self) -> Publisher:
        connection = await self._hosts.open(f"millrace producer {socket.gethostname()}:{self.pid}")
        try:
            publisher = await Publisher.open(connection)
        except BaseException:
            connection.drop()
            raise
        self._welcome = True
        publisher.channel.closed.add_done_callback(lambda _: self._forget(publisher))
        return publisher

    def _forget(self, publisher: Publisher) -> None:
        if self._publisher is publisher:
            self._publisher = None
            publisher.channel.connection.drop()

    def close(self) -> None:
        """Close the connection and end the thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        publisher, self._publisher = self._publisher, None
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if publisher:
            await publisher.channel.connection.close(2)
