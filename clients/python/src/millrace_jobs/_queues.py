"""Asks the broker for queues, and declares missing ones."""

from __future__ import annotations

from typing import Any

from . import _wire
from ._amqp import LOCKED, NOT_FOUND, PRECONDITION_FAILED, Connection, Lost
from ._core import Core


async def ensure_queue(worker: Core, connection: Connection, name: str) -> bool:
    """Return whether a queue exists, after declaring a missing one.

    It does not declare an existing queue, which may have other arguments.
    """
    full = _wire.QUEUE_PREFIX + name
    if await exists(connection, full):
        return True
    if not worker.declare:
        return False
    await _declare(worker, connection, full)
    return await exists(connection, full)


async def exists(connection: Connection, queue: str) -> bool:
    """Return whether a queue exists. Ask on a channel of its own, which the answer may close."""
    channel = await connection.channel()
    try:
        await channel.declare(queue, passive=True)
    except Lost as e:
        if e.code in (NOT_FOUND, LOCKED):
            return e.code == LOCKED
        raise
    finally:
        channel.close()
    return True


async def _declare(worker: Core, connection: Connection, queue: str) -> None:
    """Declare a classic queue with priorities.

    It sets the type only if the virtual host has another default type. Elsewhere the queue then
    equals the queues that other programs declare.
    """
    arguments: dict[str, Any] = {"x-max-priority": _wire.MAX_PRIORITY}
    try:
        try:
            await _declare_with(connection, queue, arguments)
        except Lost as e:
            if e.code != PRECONDITION_FAILED:
                raise
            await _declare_with(connection, queue, {**arguments, "x-queue-type": "classic"})
    except Lost as e:
        worker.log.warning("millrace: %s could not be declared: %s", queue, e)


async def _declare_with(connection: Connection, queue: str, arguments: dict[str, Any]) -> None:
    """Declare on a channel of its own, because a refusal closes the channel."""
    channel = await connection.channel()
    try:
        await channel.declare(queue, durable=True, arguments=arguments)
    finally:
        channel.close()
