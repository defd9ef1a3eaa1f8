"""Serves the lanes of a worker on one connection."""

from __future__ import annotations

import asyncio

from ._amqp import Lost
from ._consume import consume
from ._heartbeat import Heartbeat
from ._pauses import first_of
from ._session import Session
from ._settle import SETTLE_TIME

FEW_ACKS = 24
"""A prefetch with which a consumer never has so many acknowledgements on their way that RabbitMQ
holds some back.

A channel passes 32 acknowledgements on to a quorum queue at a time. It forgets those that it holds
back when it closes, and their jobs run again.
"""
ACK_TIME = 1.0
"""How many seconds the broker gets for the last acknowledgements of other consumers."""


async def serve(session: Session) -> Lost | None:
    """Serve the lanes until the connection is lost, and return the reason.

    Return None when the worker has stopped.
    """
    worker, settler, connection = session.worker, session.settler, session.connection
    heartbeat = Heartbeat(worker, session.publisher)
    parts = [asyncio.ensure_future(consume(session, pool)) for pool in worker._pools]
    parts.append(asyncio.ensure_future(heartbeat.run()))
    parts.append(asyncio.ensure_future(session.ledger.catch_up()))
    stopped = asyncio.ensure_future(worker._stopped.wait())
    try:
        await first_of(stopped, connection.closed)
        if not connection.closed.done():
            await settler.wait(worker.stop_timeout, worker._hurried)
            await settler.hand_back()
            await _finish(session, heartbeat)
            await _await_acks(session)
            return None
        return connection.closed.result()
    finally:
        for part in (stopped, *parts):
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
        await connection.close(SETTLE_TIME)


async def _finish(session: Session, heartbeat: Heartbeat) -> None:
    """Call the shutdown hooks, and send the last records and the last heartbeat."""
    await session.worker._hooks.call_and_wait("shutdown")
    await session.ledger.close()
    session.worker._metrics.flush()
    await heartbeat.beat()


async def _await_acks(session: Session) -> None:
    """Give the broker time for the last acknowledgements before the connection is closed.

    Do not wait if the connection is lost, or after a second stop.
    """
    if any(pool.prefetch > FEW_ACKS for pool in session.worker._pools):
        hurried = asyncio.ensure_future(session.worker._hurried.wait())
        await first_of(hurried, session.connection.closed, timeout=ACK_TIME)
        hurried.cancel()
