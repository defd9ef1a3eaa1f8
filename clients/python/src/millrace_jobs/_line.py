"""The connection of a producer, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from ._amqp import Lost, unwelcome
from ._async import Loop
from ._hosts import Hosts, split_hosts
from ._leader import ask
from ._login import AsyncCredentials, Credentials, Login
from ._pauses import Pauses
from ._publisher import Publisher, Returned
from ._wire import Message
from .errors import Closed, Refused, Unconfirmed, Undecided, Unreachable

CLOSED = "the client was closed"

LONGEST_RETURNED = 1.0
"""The maximum of seconds between two tries of a returned message.

RabbitMQ returns a message while its stream has no leader.
"""

ANSWER_TIME = 0.5
"""How many seconds before the deadline the last try must be."""

ANSWER_WITHIN = 5.0
"""How many seconds the leader may take to answer a command."""

T = TypeVar("T")


class Lines:
    """Makes the connection at the first use, and another one in a child after a fork.

    It is safe to use from several threads.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        credentials: Credentials | AsyncCredentials | None = None,
        tls: ssl.SSLContext | None = None,
        *,
        fail_fast: bool,
        sync: bool,
    ) -> None:
        self._urls = split_hosts(url)
        self._fail_fast = fail_fast
        self._login = Login(self._urls, credentials, tls, sync=sync)
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._closed = False

    def publish(self, message: Message, until: float) -> Future[None]:
        """Publish, and return a future for the answer."""
        with self._lock:  # so that a later close knows of the publish
            return self._open().repeat(lambda publisher: publisher.publish(message), until)

    def decide(self, message: Message, until: float) -> Future[dict[str, Any]]:
        """Publish, and return a future for the leader's answer to the message."""
        with self._lock:
            return self._open().decide(message, until)

    def ask(self, command: dict[str, Any], until: float) -> Future[dict[str, Any]]:
        """Send a command to the leader, and return a future for its answer."""
        with self._lock:
            return self._open().repeat(lambda publisher: ask(publisher.channel.connection, command, ANSWER_WITHIN), until)

    def _open(self) -> Line:
        if self._closed:
            raise Closed(CLOSED)
        if self._line is None or self._line.pid != os.getpid():
            self._line = Line(self._urls, self._login, self._fail_fast)
        return self._line

    def close(self) -> None:
        """Close the connection. Publishes that still wait for an answer fail."""
        with self._lock:
            line, self._line, self._closed = self._line, None, True
        if line and line.pid == os.getpid():
            line.close()


class Line:
    """A thread that owns the connection of a producer, with an event loop of its own."""

    def __init__(self, urls: Sequence[str], login: Login, fail_fast: bool) -> None:
        self.pid = os.getpid()
        self._fail_fast = fail_fast
        self._loop = asyncio.new_event_loop()
        self._hosts = Hosts(urls, login, Loop(logging.getLogger("millrace"), self._loop))
        self._publisher: Publisher | None = None
        self._connecting = asyncio.Lock()
        self._thread = threading.Thread(target=self._loop.run_forever, name="millrace producer", daemon=True)
        self._thread.start()

    def repeat(self, act: Callable[[Publisher], Awaitable[T]], until: float) -> Future[T]:
        """Publish until that is answered. Called from another thread."""
        return asyncio.run_coroutine_threadsafe(self._repeat(act, until), self._loop)

    def decide(self, message: Message, until: float) -> Future[dict[str, Any]]:
        """Publish until that is confirmed, and wait for the leader's answer."""
        return asyncio.run_coroutine_threadsafe(self._decide(message, until), self._loop)

    async def _decide(self, message: Message, until: float) -> dict[str, Any]:
        reply = await self._repeat(lambda publisher: publisher.ask(message), until)
        why: BaseException
        try:
            async with asyncio.timeout(max(until - time.monotonic(), 0)):
                return await reply  # it is not published again: the job may have run already
        except TimeoutError:
            why = TimeoutError("no leader has answered before the deadline")
        except Lost as e:
            why = e
        except asyncio.CancelledError:
            if not self._closing:
                raise  # the caller was cancelled
            why = Closed(CLOSED)
        raise Undecided(f"the job is published, and a leader will decide whether it is a duplicate: {why}") from why

    async def _repeat(self, act: Callable[[Publisher], Awaitable[T]], until: float) -> T:
        began = time.monotonic()
        pauses = Pauses(LONGEST_RETURNED)
        sent = False  # the message may have arrived
        why: BaseException | None = None
        try:
            async with asyncio.timeout(max(until - began, 0)):
                while True:
                    publisher = await self._open()
                    before, sent = sent, True
                    try:
                        return await act(publisher)
                    except Lost as e:
                        why = e
                        self._forget(publisher)
                    except Returned:
                        sent = before
                        pause = pauses.next()
                        if time.monotonic() + pause > until - ANSWER_TIME:
                            raise
                        await asyncio.sleep(pause)
        except TimeoutError:
            why = why or self._why
        except Lost as e:
            why = e
        except Returned as e:
            why = Refused(f"{e}; tried for {time.monotonic() - began:.1f} s")
            if not sent:
                raise why from None
        except asyncio.CancelledError:
            if not self._closing:
                raise  # the caller was cancelled
            why = Closed(CLOSED)
            if not sent:
                raise why from None
        kind = Unconfirmed if sent else Unreachable
        raise kind(f"{'not confirmed' if sent else 'broker not reached'}: {why or 'the deadline passed'}") from why

    _why: BaseException | None = None  # the error of the last attempt to connect
    _failures = 0  # how many attempts to connect have failed
    # Whether an attempt succeeded: then a refusal may come from a broker that is starting.
    _welcome = False
    _closing = False  # whether the client was closed

    async def _open(self) -> Publisher:
        """Return the open publisher, or connect until there is one.

        Raise Lost if the broker refuses. With ``fail_fast``, a failed attempt to connect raises
        Lost in every publish that waits for it.
        """
        if self._publisher:
            return self._publisher
        failures = self._failures
        async with self._connecting:
            pauses = Pauses()
            while not self._publisher:
                if self._fail_fast and self._why and self._failures > failures:
                    raise Lost(self._why)
                try:
                    self._publisher = await self._connect()
                except Lost as e:
                    self._why = e
                    self._failures += 1
                    if unwelcome(e) and not self._welcome:
                        raise Lost(e) from e
                    if not self._fail_fast:
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
        self._closing = True
        publisher, self._publisher = self._publisher, None
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if publisher:
            await publisher.channel.connection.close(2)
