"""AMQP as coroutines, on pika's asyncio connection. Only this module imports pika.

Everything here belongs to the thread of one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pika
import pika.exceptions
from pika.adapters.asyncio_connection import AsyncioConnection

from ._wire import Message

REFUSED = 403
NOT_FOUND = 404
LOCKED = 405
PRECONDITION_FAILED = 406


class Lost(Exception):
    """Raised when the connection or channel is lost. ``code`` is the broker's reply code, or 0."""

    def __init__(self, reason: BaseException) -> None:
        self.reason = _innermost(reason)
        super().__init__(str(self.reason) or repr(self.reason))
        self.code: int = getattr(self.reason, "reply_code", 0)


class Unreached(Exception):
    """Raised when no host accepted a connection. ``failures`` has each address with the reason."""

    def __init__(self, failures: Sequence[tuple[str, BaseException]]) -> None:
        super().__init__("; ".join(f"{where}: {str(why) or 'no answer in time'}" for where, why in failures))
        self.failures = failures


def _innermost(error: BaseException) -> BaseException:
    """Return the original error. Pika wraps an error of connecting in several others."""
    attempts = getattr(error, "exceptions", None)
    inner = attempts[-1] if attempts else error.args[0] if error.args else None
    return _innermost(inner) if isinstance(inner, BaseException) else error


def host_of(url: str) -> tuple[str, int]:
    """Return the host and port of a URL. Raise ValueError unless it is a URL of one host."""
    parameters = pika.URLParameters(url)
    return parameters.host, parameters.port


def unwelcome(error: BaseException) -> bool:
    """Return whether the broker refuses the client, so that further attempts are useless.

    If several hosts were tried, the refusal of one is enough.
    """
    reason = error.reason if isinstance(error, Lost) else error
    if isinstance(reason, Unreached):
        return any(unwelcome(why) for _, why in reason.failures)
    exceptions = pika.exceptions
    refusals = (exceptions.AuthenticationError, exceptions.ProbableAuthenticationError, exceptions.ProbableAccessDeniedError)
    return isinstance(reason, refusals) or getattr(reason, "reply_code", 0) in (403, 530)


class Connection:
    """A connection. It is open until ``closed`` has a result."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._channels: set[Channel] = set()
        self.closed: asyncio.Future[Lost] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(
        cls, url: str, address: str, name: str, within: float, user: tuple[str, str] | None = None, tls: ssl.SSLContext | None = None
    ) -> Connection:
        """Connect once to an address of the URL's host, and log in within the given seconds.

        Raise Lost or TimeoutError if that fails.
        """
        parameters = pika.URLParameters(url)
        if user:
            parameters.credentials = pika.PlainCredentials(*user)
        if tls:
            parameters.ssl_options = pika.SSLOptions(tls)
        if parameters.ssl_options and parameters.ssl_options.server_hostname is None:
            parameters.ssl_options.server_hostname = parameters.host
        parameters.host = address
        parameters.heartbeat = min(parameters.heartbeat or 10, 10)
        parameters.connection_attempts = 1
        parameters.client_properties = {"connection_name": name}
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = loop.create_future()
        self: Connection | None = None

        def failed(_: object, error: BaseException) -> None:
            if not opened.done():
                opened.set_exception(Lost(error))

        def closed(_: object, reason: BaseException) -> None:
            failed(_, reason)
            if self:
                self._lose(reason)

        raw = AsyncioConnection(parameters, lambda _: _result(opened), failed, closed, custom_ioloop=loop)
        self = cls(raw)
        try:
            async with asyncio.timeout(within):
                await opened
        except BaseException:
            self.drop()
            raise
        return self

    def _lose(self, reason: BaseException) -> None:
        lost = Lost(reason)
        for channel in list(self._channels):
            channel._lose(lost)
        if not self.closed.done():
            self.closed.set_result(lost)

    async def channel(self) -> Channel:
        """Open a channel."""
        if self.closed.done():
            raise self.closed.result()
        channel = Channel(self)
        self._channels.add(channel)
        channel.closed.add_done_callback(lambda _: self._channels.discard(channel))
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            channel.raw = self._raw.channel(on_open_callback=partial(_result, opened))
        except pika.exceptions.AMQPError as e:
            raise Lost(e) from e
        channel.raw.add_on_close_callback(lambda _, reason: channel._lose(Lost(reason)))
        await channel.wait(opened)
        return channel

    def drop(self) -> None:
        """Close without waiting for the broker."""
        with contextlib.suppress(pika.exceptions.AMQPError):
            if not (self._raw.is_closed or self._raw.is_closing):
                self._raw.close()

    async def close(self, within: float) -> None:
        """Close, and wait for the broker's answer for the given seconds."""
        self.drop()
        await asyncio.wait([self.closed], timeout=within)


def _result(future: asyncio.Future[Any], value: Any = None) -> None:
    if not future.done():
        future.set_result(value)


class Channel:
    """A channel. It is open until ``closed`` has a result."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.raw: Any = None
        self.closed: asyncio.Future[Lost] = asyncio.get_running_loop().create_future()
        self._waiting: set[asyncio.Future[Any]] = set()

    def _lose(self, lost: Lost) -> None:
        if not self.closed.done():
            self.closed.set_result(lost)
        for future in list(self._waiting):
            if not future.done():
                future.set_exception(Lost(lost.reason))

    async def wait(self, future: asyncio.Future[Any]) -> Any:
        """Wait for an answer of the broker on this channel."""
        if self.closed.done():
            raise self.closed.result()
        self._waiting.add(future)
        try:
            return await future
        finally:
            self._waiting.discard(future)

    async def _call(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            method(*args, callback=partial(_result, future), **options)
        except pika.exceptions.AMQPError as e:
            raise Lost(e) from e
        return await self.wait(future)

    async def qos(self, prefetch: int) -> None:
        """Limit the unacknowledged messages of each consumer."""
        await self._call(self.raw.basic_qos, prefetch_count=prefetch)

    async def declare(self, queue: str, **options: Any) -> str:
        """Declare a queue and return its name."""
        return str((await self._call(self.raw.queue_declare, queue, **options)).method.queue)

    async def bind(self, queue: str, exchange: str) -> None:
        """Bind a queue to a fanout exchange."""
        await self._call(self.raw.queue_bind, queue, exchange, routing_key="")

    async def consume(self, queue: str, on_message: Callable[..., None], **options: Any) -> str:
        """Consume a queue and return the consumer's tag.

        ``on_message(channel, method, properties, body)`` must not raise.
        """
        return str((await self._call(self.raw.basic_consume, queue, on_message, **options)).method.consumer_tag)

    def cancel(self, tag: str) -> None:
        """Stop consuming. Pika requeues deliveries that arrive later."""
        self._quietly(self.raw.basic_cancel, tag, callback=lambda _: None)

    def ack(self, tag: int) -> None:
        """Acknowledge. A lost channel ignores this: the broker delivers the message again."""
        self._quietly(self.raw.basic_ack, tag)

    def requeue(self, tag: int) -> None:
        """Return a delivery to its queue."""
        self._quietly(self.raw.basic_nack, tag, requeue=True)

    def reject(self, tag: int) -> None:
        """Reject a delivery, which the broker then dead-letters."""
        self._quietly(self.raw.basic_reject, tag, requeue=False)

    def _quietly(self, method: Callable[..., Any], *args: Any, **options: Any) -> None:
        with contextlib.suppress(pika.exceptions.AMQPError):
            method(*args, **options)

    def publish(self, message: Message, correlation_id: str | None = None) -> None:
        """Publish without waiting."""
        if self.closed.done():
            raise self.closed.result()
        properties = pika.BasicProperties(
            content_type="application/json", delivery_mode=2, message_id=message.message_id, type=message.type, priority=message.priority,
            timestamp=int(time.time()), headers=message.headers or None, reply_to=message.reply_to, correlation_id=correlation_id,
        )  # fmt: skip
        try:
            self.raw.basic_publish(message.exchange, message.key, message.body, properties, mandatory=message.mandatory)
        except pika.exceptions.AMQPError as e:
            raise Lost(e) from e

    def close(self) -> None:
        """Close without waiting for the broker."""
        self._quietly(self.raw.close)
