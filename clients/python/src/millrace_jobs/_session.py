"""A worker on one connection."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from . import _wire
from ._amqp import Connection, Lost
from ._consume import serve
from ._control import ask_paused, listen
from ._heartbeat import describe
from ._ledger import Ledger
from ._pauses import first_of
from ._publisher import Publisher
from ._settle import SETTLE_TIME
from ._wire import Message
from .errors import Refused

if TYPE_CHECKING:
    from .worker import Worker


class Session:
    """All that belongs to one connection of a worker."""

    def __init__(self, worker: Worker, connection: Connection) -> None:
        self.worker = worker
        self.connection = connection
        self.publisher: Publisher
        self.control = ""
        self.ledger = Ledger(self)
        self._tags = 0
        self._rtt_us = 0

    @classmethod
    async def open(cls, worker: Worker) -> Session:
        """Connect, and prepare everything except the lanes."""
        connection = await worker.hosts.open(f"millrace worker {worker.identity}")
        self = cls(worker, connection)
        try:
            self.publisher = await Publisher.open(connection)
            metrics = await connection.channel()  # for metrics, whose publishes are not confirmed
            for channel in (metrics, self.publisher.channel):
                # The session needs both.
                channel.closed.add_done_callback(lambda _: connection.drop())
            self.control = await listen(self)
            await self.ledger.open()
            await ask_paused(self)
        except BaseException:
            connection.drop()
            raise
        worker._metrics.attach(metrics)
        return self

    def next_tag(self) -> int:
        """Return the number of a new consumer."""
        self._tags += 1
        return self._tags

    async def run(self) -> Lost | None:
        """Serve the lanes until the connection is lost, and return the reason.

        Return None when the worker has stopped.
        """
        worker = self.worker
        parts = [asyncio.ensure_future(serve(self, pool)) for pool in worker._pools]
        parts.append(asyncio.ensure_future(self._beats()))
        parts.append(asyncio.ensure_future(self.ledger.catch_up()))
        stopped = asyncio.ensure_future(worker._stopped.wait())
        try:
            await first_of(stopped, self.connection.closed)
            if not self.connection.closed.done():
                await worker._settler.wait(worker.stop_timeout, worker._hurried)
                await worker._settler.hand_back()
                await self._finish()
                return None
            return self.connection.closed.result()
        finally:
            for part in (stopped, *parts):
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            await self.connection.close(SETTLE_TIME)

    async def _finish(self) -> None:
        """Call the shutdown hooks, and send the last records and the last heartbeat."""
        await self.worker._hooks.call_and_wait("shutdown")
        await self.ledger.close()
        self.worker._metrics.flush()
        await self._beat()

    async def _beats(self) -> None:
        while True:
            await self._beat()
            try:
                async with asyncio.timeout(self.worker.heartbeat):
                    await self.worker._beat_due.wait()
            except TimeoutError:
                pass
            self.worker._beat_due.clear()

    async def _beat(self) -> None:
        body = _wire.dump(describe(self.worker, self._rtt_us))
        start = time.monotonic()
        try:
            async with asyncio.timeout(SETTLE_TIME):
                await self.publisher.publish(Message("", _wire.HEARTBEATS, body))
            self._rtt_us = int((time.monotonic() - start) * 1e6)
        except (Lost, Refused, TimeoutError):
            self._rtt_us = 0
