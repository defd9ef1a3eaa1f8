"""Reads and writes the stream ``jobs.begins``, from which workers find jobs that kill them.

Without the stream, it lets every job begin.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from . import _wire
from ._amqp import Channel, Connection, Lost
from ._begins import Begins, Key, key_of
from ._core import Core
from ._pairs import pairs
from ._publisher import Publisher
from ._queues import exists
from ._wire import Message
from .errors import Refused
from .job import Job

AFTERMATH = 0.5
"""How many seconds a broker takes at most to remove the exclusive queue of a dead process.

It may already deliver the jobs of that process again.
"""
GRACE = 10.0
"""How many seconds a process may take to reconnect, before a job is buried for its death."""
READ_BACK = 30.0
"""How many seconds a record may take to come back from the stream."""
SHORT = 2.0
FAILURES = (Lost, Refused, TimeoutError)


class Ledger:
    """It belongs to the event loop, except for `begin_from_thread`."""

    def __init__(self, worker: Core, connection: Connection, publisher: Publisher) -> None:
        self._worker = worker
        self._connection = connection
        self._publisher = publisher
        self._begins = Begins()
        self._gone: set[str] = set()  # exclusive queues that do not exist any more
        self._waiting: dict[Key, list[asyncio.Event]] = {}
        self._channel: Channel | None = None

    @property
    def usable(self) -> bool:
        """Whether the stream can be read and written."""
        return self._channel is not None and not self._channel.closed.done()

    async def open(self, control: str) -> None:
        """Write that this process lives, and begin to read.

        The process has the exclusive queue ``control``, which vanishes with it. It reads second,
        because a reader of an empty stream keeps LavinMQ busy.
        """
        if self._worker.max_deaths <= 0:
            return
        queues = [queue for pool in self._worker._pools for queue in pool.queues]
        try:
            async with asyncio.timeout(READ_BACK):
                await self._write("opened", identity=self._worker.identity, queue=control, queues=queues)
                self._channel = await self._read()
        except FAILURES as e:
            self._worker.log.warning("millrace: jobs that kill their workers are not found, there is no stream for it: %s", e)

    async def _read(self) -> Channel:
        channel = await self._connection.channel()
        await channel.qos(500)
        tag = f"{self._worker._process}-begins"
        await channel.consume(_wire.BEGINS, self._on_record, consumer_tag=tag, arguments={"x-stream-offset": "first"})
        return channel

    def _on_record(self, channel: Any, method: Any, _: object, body: bytes) -> None:
        channel.basic_ack(method.delivery_tag)
        record = self._begins.apply(body)
        if record and record.get("type") == "begun" and record["process"] == self._worker._process:
            for read in self._waiting.pop(Key(str(record.get("jid")), str(record.get("body"))), []):
                read.set()

    async def _write(self, kind: str, process: str = "", **members: Any) -> None:
        record = {"type": kind, "process": process or self._worker._process, **members, "at": time.time()}
        await self._publisher.publish(Message("", _wire.BEGINS, _wire.dump(record)))

    async def _try(self, kind: str, process: str = "", **members: Any) -> None:
        """Write a record that may be lost."""
        try:
            async with asyncio.timeout(SHORT):
                await self._write(kind, process, **members)
        except FAILURES as e:
            self._worker.log.warning("millrace: could not write that a job or process has %s: %s", kind, e)

    async def close(self) -> None:
        """Write that this process has no jobs any more.

        Otherwise it would count as dead, which is one of three deaths for the jobs that it ran.
        """
        if self.usable:
            await self._try("closed")

    async def ended(self, job: Job) -> None:
        """Write that a job has ended whose begin was written.

        If the connection is lost, the next one writes it.
        """
        key = key_of(job)
        if self.usable:
            await self._try("ended", jid=_wire.valid(key.jid), body=key.body)
        else:
            self._worker._unended.append(key)

    async def catch_up(self) -> None:
        """Write the ends that the last connection could not write."""
        while self.usable and self._worker._unended:
            key = self._worker._unended.popleft()
            await self._try("ended", jid=_wire.valid(key.jid), body=key.body)

    def begin_from_thread(self, channel: Channel, job: Job) -> int | None:
        """Call `begin` from a thread of the lane, and wait for the result."""
        return asyncio.run_coroutine_threadsafe(self.begin(channel, job), self._worker._loop).result()

    async def begin(self, channel: Channel, job: Job) -> int | None:
        """Write that a job begins that was redelivered on a channel.

        Return how many processes died while they ran it.
        Return None if the job must not begin, because the worker stops or has lost the delivery.
        """
        if not self.usable:
            return 0
        if not await self._worker._pause(channel, AFTERMATH):
            return None
        key = key_of(job)
        try:
            async with asyncio.timeout(READ_BACK):
                gone = await self._look(key, job.queue)
                blames = self._begins.blame(key, job.queue, self._worker._process, job._enqueued_at, gone)
                read = asyncio.Event()
                self._waiting.setdefault(key, []).append(read)
                await self._write("begun", jid=_wire.valid(key.jid), body=key.body, blames=blames)
                await read.wait()
        except FAILURES as e:
            if channel.closed.done():
                return None
            self._worker.log.warning(
                "millrace: a job begins that was delivered before, and that could not be written down  %s", pairs(job, error=e)
            )
            return 0
        deaths = await self._count(key, job.queue)
        if deaths < self._worker.max_deaths:
            return deaths
        # Wait before the job is buried: a process that seems dead may only be reconnecting.
        if not await self._worker._pause(channel, GRACE):
            return None
        self._gone.clear()
        return await self._count(key, job.queue)

    async def _count(self, key: Key, queue: str) -> int:
        try:
            gone = await self._look(key, queue)
        except FAILURES:
            gone = self._gone
        return self._begins.deaths(key, self._worker._process, gone)

    async def _look(self, key: Key, queue: str) -> set[str]:
        """Check which of the processes that count for a job are dead. Write newly found deaths."""
        for process, control in self._begins.maybe_dead(key, queue, self._worker._process).items():
            if control not in self._gone and not await exists(self._connection, control):
                self._gone.add(control)
                await self._try("died", process)
        return set(self._gone)
