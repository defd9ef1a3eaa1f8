"""Reads and writes the stream of begins, by which workers find jobs that kill them. Without the stream it lets everything begin."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from . import _wire
from ._amqp import Channel, Lost
from ._begins import Begins, Key, key_of
from ._consume import exists
from ._pauses import first_of
from ._wire import Message
from .errors import Refused
from .job import Job

if TYPE_CHECKING:
    from ._session import Session
    from ._task import Task

AFTERMATH = 0.5
"""How long a broker takes, at most, to remove the exclusive queue of a dead process whose jobs it hands out again."""
GRACE = 10.0
"""How long a process may take to connect again before a job is buried because of its death."""
READ_BACK = 30.0
"""How long a record may take to come back from the stream."""
SHORT = 2.0
FAILURES = (Lost, Refused, TimeoutError)


class Ledger:
    """It belongs to the event loop, but for one method that says so."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._worker = session.worker
        self._begins = Begins()
        self._gone: set[str] = set()  # exclusive queues that are known to be
        self._waiting: dict[Key, list[asyncio.Event]] = {}
        self._channel: Channel | None = None

    @property
    def usable(self) -> bool:
        """Whether there is a stream that can be read and written."""
        return self._channel is not None and not self._channel.closed.done()

    async def open(self) -> None:
        """Begin to read, and say that this process lives."""
        if self._worker.max_deaths <= 0:
            return
        queues = [queue for pool in self._worker._pools for queue in pool.queues]
        try:
            async with asyncio.timeout(READ_BACK):
                channel = await self._read()
                await self._write("opened", identity=self._worker.identity, queue=self._session.control, queues=queues)
            self._channel = channel
        except FAILURES as e:
            self._worker.log.warning("millrace: jobs that kill their workers are not found, there is no stream for it: %s", e)

    async def _read(self) -> Channel:
        channel = await self._session.connection.channel()
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
        await self._session.publisher.publish(Message("", _wire.BEGINS, _wire.dump(record)))

    async def _try(self, kind: str, process: str = "", **members: Any) -> None:
        """Write what may be lost."""
        try:
            async with asyncio.timeout(SHORT):
                await self._write(kind, process, **members)
        except FAILURES as e:
            self._worker.log.warning("millrace: could not write that a job or process has %s: %s", kind, e)

    async def close(self) -> None:
        """Say that this process has nothing in hand any more; else it counts as dead, which costs the jobs at hand one of three."""
        if self.usable:
            await self._try("closed")

    async def ended(self, job: Job) -> None:
        """Write down that a job has ended whose begin was; on the next connection, if this one is lost."""
        key = key_of(job)
        if self.usable:
            await self._try("ended", jid=_wire.valid(key.jid), body=key.body)
        else:
            self._worker._unended.append(key)

    async def catch_up(self) -> None:
        """Write what the last connection could not."""
        while self.usable and self._worker._unended:
            key = self._worker._unended.popleft()
            await self._try("ended", jid=_wire.valid(key.jid), body=key.body)

    def begin_from_thread(self, task: Task, job: Job) -> int | None:
        """Call `begin` from a thread of the lane, and wait for it."""
        return asyncio.run_coroutine_threadsafe(self.begin(task, job), self._worker._loop).result()

    async def begin(self, task: Task, job: Job) -> int | None:
        """Write down that a job begins which was delivered before, and count how often that went wrong.

        None: it must not begin, for the worker stops or has lost the delivery.
        """
        if not self.usable:
            return 0
        if not await self._pause(task, AFTERMATH):
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
            if task.attachment.channel.closed.done():
                return None
            self._worker.log.warning("millrace: job %s begins that was delivered before, that could not be written down: %s", job.jid, e)
            return 0
        deaths = await self._count(key, job.queue)
        if deaths < self._worker.max_deaths:
            return deaths
        # It is to be buried, unless a process that seems dead was only cut off.
        if not await self._pause(task, GRACE):
            return None
        self._gone.clear()
        return await self._count(key, job.queue)

    async def _pause(self, task: Task, seconds: float) -> bool:
        stopped = asyncio.ensure_future(self._worker._stopped.wait())
        ended = await first_of(stopped, task.attachment.channel.closed, timeout=seconds)
        stopped.cancel()
        return not ended

    async def _count(self, key: Key, queue: str) -> int:
        try:
            gone = await self._look(key, queue)
        except FAILURES:
            gone = self._gone
        return self._begins.deaths(key, self._worker._process, gone)

    async def _look(self, key: Key, queue: str) -> set[str]:
        """Find out which of the processes that matter for a job are dead, and write down what is new."""
        for process, control in self._begins.doubtful(key, queue, self._worker._process).items():
            if control not in self._gone and not await exists(self._session.connection, control):
                self._gone.add(control)
                await self._try("died", process)
        return set(self._gone)
