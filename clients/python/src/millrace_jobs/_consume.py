"""A lane on one channel. It consumes the lane's queues and begins the deliveries."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

from . import _wire
from ._amqp import Channel, Lost
from ._lane import Arrival, Hand, Pool
from ._pauses import LONGEST, Pauses, first_of
from ._queues import ensure_queue
from ._session import Session
from ._task import Task

PATIENCE = 5.0
"""How many seconds a delivery may wait while the lane is busy with other queues."""


class Attachment:
    """The lane's only source of deliveries, so that no job of a paused queue can begin."""

    def __init__(self, session: Session, pool: Pool, channel: Channel) -> None:
        self.session = session
        self.pool = pool
        self.channel = channel
        self._worker = session.worker
        self._hand = Hand(pool)
        self._tags: list[str | None] = [None] * len(pool.queues)  # of consumers, by queue
        # Queues that were given back, until a slot is free.
        self._resting = [False] * len(pool.queues)
        self._missing = [False] * len(pool.queues)  # checked again every second
        self._changed = asyncio.Event()
        self._cancelled = False
        channel.raw.add_on_cancel_callback(self._on_cancel)

    async def run(self) -> None:
        """Consume until the channel is lost."""
        await self.channel.qos(self.pool.prefetch)
        changed: asyncio.Future[Any] | None = None
        while not (self.channel.closed.done() or self._cancelled):
            await self._adjust()
            changed = changed or asyncio.ensure_future(self._changed.wait())
            await first_of(changed, self.channel.closed, timeout=1)
            if changed.done():
                self._changed.clear()
                changed = None
            self._share()
        if changed:
            changed.cancel()

    def changed(self) -> None:
        """React when a queue was paused or resumed, or the worker became quiet."""
        self._withdraw()
        self._changed.set()

    def begin(self) -> None:
        """Begin waiting deliveries while slots are free."""
        while self._hand.count and self.pool.busy < self.pool.concurrency and not self.channel.closed.done():
            queue, arrival = self._hand.take()
            task = Task(self.pool, self.channel, self.session.publisher, self.pool.queues[queue], arrival)
            self.session.settler.begin(task, partial(self.session.runner.work, task))

    def _wanted(self, queue: int) -> bool:
        return not (self._worker._quieted or self._resting[queue] or self.pool.queues[queue] in self._worker._paused)

    def _withdraw(self) -> None:
        for queue, tag in enumerate(self._tags):
            if tag is not None and not self._wanted(queue):
                self._tags[queue] = None
                self.channel.cancel(tag)
                for arrival in self._hand.empty(queue):
                    self.channel.requeue(arrival.tag)

    async def _adjust(self) -> None:
        """Start the consumers that are wanted, and cancel the others."""
        self._withdraw()
        for queue, name in enumerate(self.pool.queues):
            if self._tags[queue] is None and self._wanted(queue):
                found = await ensure_queue(self._worker, self.session.connection, name)
                if not (found or self._missing[queue]):
                    self._worker.log.warning("millrace: queue %s does not exist yet", name)
                self._missing[queue] = not found
                if not found:
                    continue
                tag = f"{self._worker._process}-{self.session.next_tag()}"
                self._tags[queue] = tag
                await self.channel.consume(_wire.QUEUE_PREFIX + name, partial(self._on_message, queue, tag), consumer_tag=tag)
                self._withdraw()  # the state may have changed meanwhile

    def _on_message(self, queue: int, tag: str, _: object, method: Any, properties: Any, body: bytes) -> None:
        if self._tags[queue] != tag:
            # The delivery was on its way when its consumer was cancelled.
            self.channel.requeue(method.delivery_tag)
            return
        priority = properties.priority or 0
        self._hand.put(queue, Arrival(method.delivery_tag, method.redelivered, properties, body, time.monotonic(), priority))
        self.begin()

    def _on_cancel(self, _: object) -> None:
        self._cancelled = True
        self._changed.set()

    def _share(self) -> None:
        """Give back queues whose deliveries wait too long because the lane is busy with others.

        Consume such queues again when the lane has a free slot.
        """
        if len(self.pool.queues) == 1:
            return
        idle = self._hand.count == 0 and self.pool.busy < self.pool.concurrency
        for queue in range(len(self.pool.queues)):
            if idle:
                self._resting[queue] = False
            elif time.monotonic() - self._hand.waits_since(queue) > PATIENCE:
                self._resting[queue] = True


async def consume(session: Session, pool: Pool) -> None:
    """Consume a lane's queues until the connection is lost. Open a new channel when one is lost."""
    pauses = Pauses()
    while not session.connection.closed.done():
        started = time.monotonic()
        why: object = "the broker cancelled a consumer"
        try:
            channel = await session.connection.channel()
            attachment = pool.source = Attachment(session, pool, channel)
            try:
                await attachment.run()
            finally:
                channel.close()
            if channel.closed.done():
                why = channel.closed.result()
        except Lost as e:
            why = e
        pool.source = None
        if session.connection.closed.done():
            return
        if time.monotonic() - started > LONGEST:
            pauses = Pauses()
        session.worker.log.warning("millrace: lane %s lost its channel, it opens another: %s", pool.name, why)
        await pauses.wait()
