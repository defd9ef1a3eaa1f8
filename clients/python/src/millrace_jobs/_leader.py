"""Commands to the leader."""

from __future__ import annotations

import asyncio
from typing import Any

from . import _wire
from ._amqp import Connection, Lost
from ._publisher import Returned
from ._wire import REPLY, Message, read_object

NO_LEADER = "no sidecar leads right now"


async def ask(connection: Connection, command: dict[str, Any], within: float) -> dict[str, Any]:
    """Send a command, and return the leader's answer.

    Raise Returned if it is known that the leader has done nothing, and Lost if that is not known.
    """
    channel = await connection.channel()
    answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def on_reply(_channel: object, _method: object, _properties: object, body: bytes) -> None:
        if not answer.done():
            answer.set_result(read_object(body))

    def end(error: Exception) -> None:
        if not answer.done():
            answer.set_exception(error)

    channel.closed.add_done_callback(lambda closed: end(Lost(closed.result().reason)))
    try:
        async with asyncio.timeout(within):
            await channel.consume(REPLY, on_reply, auto_ack=True)
            channel.raw.add_on_return_callback(lambda *_: end(Returned(NO_LEADER)))
            channel.publish(Message("", _wire.LEADER, _wire.dump(command), reply_to=REPLY), command.get("id"))
            reply = await answer
    except TimeoutError:
        raise Lost(TimeoutError("the leader did not answer")) from None
    finally:
        answer.cancel()
        channel.close()
    if reply.get("status") == 503:
        raise Returned(f"{NO_LEADER}: {reply.get('reason')}")
    return reply
