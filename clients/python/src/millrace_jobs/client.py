"""The producer."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar, Unpack

from ._define import Defined, defined, defining
from ._governed import GovernedQueue
from ._handler import check_callable, check_sync
from ._hosts import DEFAULT_URL
from ._limit import Limit
from ._line import Lines
from ._login import Credentials
from ._message import MessageProperties, new_message
from ._newjob import MessageOptions, NewJob, Options
from ._periodic import PeriodicJob
from ._unique import Decision, decided
from .errors import BulkError, Error

Enqueue = Callable[[NewJob], "str | None"]
ClientMiddleware = Callable[[NewJob, Enqueue], "str | None"]
M = TypeVar("M", bound=ClientMiddleware)


class Client:
    """Enqueues jobs. It is safe to use from several threads.

    It connects when it is first used, and again when the connection is lost. After a fork, the
    child opens a connection of its own. In async code use `AsyncClient`.

    - ``url`` is ``amqp://user:password@host:port/vhost``, or ``amqps://``. For a cluster with
      several hosts it is ``amqp://user:password@a,b/vhost``, or a list of URLs. The default is the
      broker on this machine: port 5672, user guest.
    - ``timeout`` is how many seconds a publish may take, including the wait for a connection. A web
      application should set 2 or 3 instead of 30.
    - ``fail_fast`` is whether a publish fails as soon as each host was tried once, instead of
      waiting for the broker.
    - ``credentials`` returns the user and the password, in place of those of the URL, for passwords
      and tokens that rotate. It is called for each connection, the first and each later one. If it
      raises, or takes more than 30 seconds, that attempt to connect fails. The next attempt calls
      it again, or waits for the call that still runs.
    - ``tls`` is for ``amqps://`` URLs that need a private certificate authority or a client
      certificate.
    """

    def __init__(
        self,
        url: str | Sequence[str] = DEFAULT_URL,
        *,
        timeout: float = 30,
        fail_fast: bool = False,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._lines = Lines(url, credentials, tls, fail_fast=fail_fast, sync=True)
        self._timeout = timeout
        self._middleware: list[ClientMiddleware] = []

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def use(self, middleware: M) -> M:
        """Add middleware around each publish: ``middleware(job, next)``.

        The first added is the outermost. It may change the job. If it does not call ``next(job)``,
        nothing is published and the jid is None. Its result does not change the jid.

        ``next(job)`` returns the jid when the broker has confirmed the job, and raises the errors
        of `enqueue`. In `enqueue_bulk` it returns as soon as the job is sent. Only the result of
        `enqueue_bulk` then has the broker's answer.
        """
        check_callable("the middleware", middleware, 2)
        check_sync("the middleware", middleware, "an AsyncClient takes such middleware, a Client plain functions")
        self._middleware.append(middleware)
        return middleware

    def enqueue(self, class_: str, args: Sequence[Any] = (), *, deadline: float | None = None, **options: Unpack[Options]) -> str:
        """Publish a job and return its jid once the broker has confirmed it.

        ``deadline`` is how many seconds that may take; the default is the client's timeout. The
        options are those of `Options`. If middleware does not publish the job, the jid is empty.
        Raise Invalid, Refused, Unreachable, Unconfirmed or Closed.
        """
        return self.push(NewJob(class_, args, None, **options), deadline=deadline) or ""

    def enqueue_at(
        self, at: float | datetime, class_: str, args: Sequence[Any] = (), *, deadline: float | None = None, **options: Unpack[Options]
    ) -> str:
        """Publish a job that is due at a given time: seconds since the epoch, or a datetime.

        If the time is past, the job is due immediately. A datetime without a time zone is local
        time, as everywhere in Python: ``datetime.now() + timedelta(minutes=5)`` is in five minutes.
        """
        return self.push(NewJob(class_, args, at, **options), deadline=deadline) or ""

    def enqueue_in(
        self, delay: float, class_: str, args: Sequence[Any] = (), *, deadline: float | None = None, **options: Unpack[Options]
    ) -> str:
        """Publish a job that is due after a number of seconds."""
        return self.push(NewJob(class_, args, time.time() + delay, **options), deadline=deadline) or ""

    def enqueue_unique(
        self,
        class_: str,
        args: Sequence[Any] = (),
        *,
        at: float | datetime | None = None,
        deadline: float | None = None,
        **options: Unpack[Options],
    ) -> Decision:
        """Publish a job, and return which job stays if there is one with the same key already.

        It waits until the leader has decided. ``at`` is when the job is due. A job without the
        option ``unique`` has ``unique=True``. Raise the errors of `enqueue`, and Undecided if the
        job is published and no leader has answered before the deadline. If middleware does not
        publish the job, the jid is empty.
        """
        return self.push_unique(NewJob(class_, args, at, **options), deadline=deadline)

    def publish_at(
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
        """Delay any AMQP message until a given time. Return the jid of the job that delivers it.

        At that time a sidecar publishes the message to the exchange, with one more header,
        ``millrace-jid``. Its setting ``--deliver-to`` must match the name of the exchange.
        ``""`` is the default exchange. The properties are those of `MessageProperties`. Their headers have
        only values that JSON has: no bytes, decimals or datetimes.

        The message waits as a job, which can be found, rescheduled or deleted by its jid. The other
        parameters and the errors are those of `enqueue_at`.
        """
        return self.push(new_message(at, exchange, routing_key, body, properties, options), deadline=deadline) or ""

    def publish_in(
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
        """Delay any AMQP message for a number of seconds. See `publish_at`."""
        return self.publish_at(time.time() + delay, exchange, routing_key, body, properties=properties, deadline=deadline, **options)

    def enqueue_bulk(self, jobs: Iterable[NewJob], *, deadline: float | None = None) -> list[str | None]:
        """Publish many jobs, in order, and return their jids when all are answered.

        It waits for all confirms together. Raise BulkError if any failed; it has the result of each
        job.
        """
        until = self._until(deadline)
        answers = [self._passed(job, until) for job in jobs]
        return collected(answer() for answer in answers)

    def push(self, job: NewJob, *, deadline: float | None = None) -> str | None:
        """Publish a `NewJob`."""
        until = self._until(deadline)
        return self._through(job, lambda j: self._send(j, until)[1]())

    def push_unique(self, job: NewJob, *, deadline: float | None = None) -> Decision:
        """Publish a `NewJob` as `enqueue_unique` does."""
        until, decision = self._until(deadline), Decision("")

        def last(job: NewJob) -> str:
            nonlocal decision
            jid, decision = self._decide(job, until)
            return jid

        self._through(job.as_unique(), last)
        return decision

    def define(
        self,
        source: str,
        jobs: Iterable[PeriodicJob] | None = None,
        *,
        limits: Iterable[Limit] | None = None,
        queues: Iterable[GovernedQueue] | None = None,
        deadline: float | None = None,
    ) -> Defined:
        """Set all periodic jobs, limits and governed queues of a source, which is the name of a program.

        What the source had defined before and does not any more is removed. A list that
        is None is left as it is. Call it at each deploy: to repeat it changes nothing.

        The leader carries it out. Without a leader it is tried again until the deadline. Raise
        Invalid if a definition breaks a rule, Refused if another source has defined one of them or
        no sidecar leads, and Unreachable, Unconfirmed or Closed as `enqueue` does.
        """
        return defined(self._lines.ask(defining(source, jobs, limits, queues), self._until(deadline)).result())

    def close(self) -> None:
        """Close the connection. Publishes that still wait for an answer fail."""
        self._lines.close()

    def _until(self, deadline: float | None) -> float:
        return time.monotonic() + (self._timeout if deadline is None else deadline)

    def _through(self, job: NewJob, last: Enqueue) -> str | None:
        """Publish a job through the middleware. Return its jid, or None if none was published."""
        jid: str | None = None

        def publish(job: NewJob) -> str | None:
            nonlocal jid
            jid = last(job)
            return jid

        call: Enqueue = publish
        for middleware in reversed(self._middleware):
            call = _wrapped(middleware, call)
        call(job)
        return jid

    def _passed(self, job: NewJob, until: float) -> Callable[[], str | Error | None]:
        """Send one job of a bulk through the middleware, without waiting for the answer."""
        waits: list[Callable[[], str]] = []

        def last(job: NewJob) -> str:
            jid, wait = self._send(job, until)
            waits.append(wait)
            return jid

        def answer() -> str | Error | None:
            try:
                for wait in waits:
                    wait()
            except Error as e:
                return e
            return jid

        try:
            jid = self._through(job, last)
        except Error as e:
            error = e
            return lambda: error
        return answer

    def _send(self, job: NewJob, until: float) -> tuple[str, Callable[[], str]]:
        """Send a job. Return its jid and a function that waits for the answer."""
        jid, message = job.prepare(time.time())
        with naming(jid):
            answer = self._lines.publish(message, until)

        def wait() -> str:
            with naming(jid):
                answer.result()
            return jid

        return jid, wait

    def _decide(self, job: NewJob, until: float) -> tuple[str, Decision]:
        """Send a job, and wait for the decision. Return the jid of the job, and the decision."""
        jid, message = job.prepare(time.time())
        with naming(jid):
            return jid, decided(self._lines.decide(message, until).result(), jid)


def _wrapped(middleware: ClientMiddleware, call: Enqueue) -> Enqueue:
    return lambda job: middleware(job, call)


@contextmanager
def naming(jid: str) -> Iterator[None]:
    """Set the jid of the job in an error."""
    try:
        yield
    except Error as e:
        e.jid = jid
        raise


def collected(answers: Iterable[str | Error | None]) -> list[str | None]:
    """Return the jids of many jobs, or raise BulkError with those that failed."""
    jids: list[str | None] = []
    errors: dict[int, Error] = {}
    for i, answer in enumerate(answers):
        if isinstance(answer, Error):
            errors[i] = answer
        jids.append(None if isinstance(answer, Error) else answer)
    if errors:
        raise BulkError(jids, errors)
    return jids
