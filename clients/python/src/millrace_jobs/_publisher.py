"""A channel in confirm mode."""

from __future__ import annotations

import asyncio
from typing import Any

from ._amqp import NOT_FOUND, REFUSED, Channel, Connection, Lost
from ._wire import REPLY, Message, read_object
from .errors import Refused

WINDOW = 1000
"""How many publishes may be unconfirmed on a channel."""


class Returned(Refused):
    """Raised when the broker returned the message because no queue takes it.

    The broker has not stored the message.
    """


class Publisher:
    """Publishes, and waits for the broker's answers."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._sent = 0
        # With their exchange, in the order of their tags.
        self._unanswered: dict[int, tuple[asyncio.Future[None], str]] = {}
        self._returned: dict[str, str] = {}
        self._replies: dict[str, asyncio.Future[dict[str, Any]]] = {}  # that the leader still owes
        self._listening: asyncio.Future[str] | None = None
        self._room = asyncio.Semaphore(WINDOW)
        channel.closed.add_done_callback(self._lose)

    @classmethod
    async def open(cls, connection: Connection) -> Publisher:
        """Open a publisher, with a channel of its own, on a connection."""
        channel = await connection.channel()
        self = cls(channel)
        channel.raw.add_on_return_callback(self._return)
        await channel._call(channel.raw.confirm_delivery, self._answer)
        return self

    async def ask(self, message: Message) -> asyncio.Future[dict[str, Any]]:
        """Publish, and return a future for the leader's answer when the broker has the message.

        Raise the errors of `publish`. The future fails with Lost if no answer can come any more.
        """
        if self._listening is None:
            self._listening = asyncio.ensure_future(self.channel.consume(REPLY, self._take_reply, auto_ack=True))
        await asyncio.shield(self._listening)
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        message.reply_to = REPLY
        try:
            await self.publish(message, reply)
        except BaseException:
            reply.cancel()  # none comes, or none is awaited
            raise
        return reply

    async def publish(self, message: Message, reply: asyncio.Future[dict[str, Any]] | None = None) -> None:
        """Publish, and return when the broker has the message. ``reply`` gets the leader's answer.

        Raise Refused if the broker does not take it, Returned if the broker returned it, and Lost
        if it is unknown whether it arrived.
        """
        await self._room.acquire()
        tag = self._sent + 1
        try:
            self.channel.publish(message, str(tag))
        except BaseException:
            self._room.release()
            raise
        self._sent = tag
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unanswered[tag] = future, message.exchange
        if reply:
            self._replies[str(tag)] = reply
            reply.add_done_callback(lambda _: self._replies.pop(str(tag), None))
        await future

    def _take_reply(self, _channel: object, _method: object, properties: Any, body: bytes) -> None:
        reply = self._replies.get(properties.correlation_id)
        if reply and not reply.done():
            reply.set_result(read_object(body))

    def _return(self, _channel: object, method: Any, properties: Any, _body: bytes) -> None:
        why = f"{method.reply_code} {method.reply_text}: exchange {method.exchange!r}, routing key {method.routing_key!r}"
        self._returned[properties.correlation_id] = why  # its confirm comes next

    def _answer(self, frame: Any) -> None:
        method = frame.method
        if method.multiple:
            for tag in [t for t in self._unanswered if t <= method.delivery_tag]:
                self._settle(tag, method.NAME)
        else:
            self._settle(method.delivery_tag, method.NAME)

    def _settle(self, tag: int, name: str) -> None:
        if tag not in self._unanswered:
            return
        future, _ = self._unanswered.pop(tag)
        self._room.release()
        why = self._returned.pop(str(tag), None)
        if future.done():
            return  # no caller waits any more
        if why is not None:
            future.set_exception(Returned(why))
        elif name == "Basic.Ack":
            future.set_result(None)
        else:
            future.set_exception(Refused("the broker answered nack: the queue is full or unavailable, try again later"))

    def _lose(self, closed: asyncio.Future[Lost]) -> None:
        lost = closed.result()
        # The exchange does not exist, or the user may not write to it.
        no_exchange = lost.code in (NOT_FOUND, REFUSED)
        for future, exchange in self._unanswered.values():
            self._room.release()
            if not future.done():
                future.set_exception(Refused(str(lost)) if no_exchange and exchange else Lost(lost.reason))
        self._unanswered.clear()
        for reply in list(self._replies.values()):
            if not reply.done():
                reply.set_exception(Lost(lost.reason))
                reply.exception()  # no caller may wait for it any more
