"""Commands to this worker, and what it learns from the leader when it connects."""

from __future__ import annotations

import secrets

from . import _wire
from ._amqp import Connection, Lost
from ._claims import ANSWER_TIME, Claims
from ._core import Core
from ._leader import ask
from ._publisher import Returned
from ._wire import read_object


async def listen(worker: Core, connection: Connection) -> str:
    """Declare the exclusive queue of this process, follow its commands, and return its name.

    The queue vanishes with the connection.
    """
    channel = await connection.channel()
    queue = await channel.declare("", exclusive=True)

    def on_message(_channel: object, _method: object, _properties: object, body: bytes) -> None:
        obey(worker, body)

    await channel.consume(queue, on_message, auto_ack=True)
    # A channel of its own, which closes if the exchange does not exist.
    binding = await connection.channel()
    try:
        await binding.bind(queue, _wire.CONTROL)
    except Lost as e:
        worker.log.warning("millrace: commands do not reach this worker: %s", e)
    finally:
        binding.close()
    return queue


def obey(worker: Core, body: bytes) -> None:
    """Carry out a command, if it is valid and addressed to this worker."""
    command = read_object(body)
    if command.get("identity") not in ("*", worker.identity):
        return
    op, queue = command.get("op"), command.get("queue")
    worker.log.info("millrace: command %s, queue %s, jid %s", op, queue, command.get("jid"))
    match op:
        case "quiet":
            worker._quiet()
        case "stop":
            worker._stop()
        case "cancel" if isinstance(command.get("jid"), str):
            worker._cancel(command["jid"])
        case "pause" if isinstance(queue, str) and queue:
            worker._paused.add(queue)
            worker._changed()
        case "resume" if isinstance(queue, str):
            worker._paused.discard(queue)
            worker._changed()


async def ask_state(worker: Core, connection: Connection, claims: Claims) -> None:
    """Ask the leader which queues are paused, and which jobs to claim.

    Without an answer, nothing changes.
    """
    try:
        reply = await ask(connection, {"id": secrets.token_hex(16), "command": "state"}, ANSWER_TIME)
    except (Lost, Returned):
        return
    if reply.get("status") != 200:
        return
    if isinstance(reply.get("paused"), list):
        worker._paused = {q for q in reply["paused"] if isinstance(q, str)}
    if isinstance(reply.get("claim_below"), int):
        claims.below = reply["claim_below"]
