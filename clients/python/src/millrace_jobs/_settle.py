"""Settles outcomes: publishes the record, waits for the confirm, and only then acknowledges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from . import _wire
from ._amqp import Lost
from ._core import Core
from ._ledger import Ledger
from ._metrics import metric
from ._outcome import Outcome
from ._pairs import pairs, quoted
from ._pauses import Pauses, first_of
from ._task import Task
from ._wire import Message
from .errors import Refused
from .job import Job

SETTLE_TIME = 2.0
"""How many seconds outcomes in progress may take when the worker ends."""

LAST_CALL = 0.5
"""How many seconds handlers have to end after their cancel signal was set."""


class Settler:
    """Begins and ends the running jobs of a worker. It belongs to the event loop."""

    def __init__(self, worker: Core) -> None:
        self._worker = worker
        self._settling: set[asyncio.Task[None]] = set()
        self._timers: dict[Task, asyncio.TimerHandle] = {}
        self.ledger: Ledger | None = None  # that of the latest connection
        self.idle = asyncio.Event()
        self.idle.set()

    def begin(self, task: Task, work: Callable[[], None]) -> None:
        """Begin a task, whose work a thread of the lane does."""
        self._worker._running_tasks[task] = None
        self.idle.clear()
        task.pool.begin(work)

    def arm(self, task: Task, limit: float) -> None:
        """Start the clock of a timeout."""
        if task in self._worker._running_tasks:
            self._timers[task] = asyncio.get_running_loop().call_later(limit, task.end, "timeout")

    def end(self, task: Task, job: Job | None, outcome: Outcome, at: float) -> None:
        """Settle a task whose handler has ended."""
        timer = self._timers.pop(task, None) if self._timers else None
        if timer:
            timer.cancel()
        if not task.claimed:
            task.claimed = True
            if outcome.record is not None or task.suspect or (task.slot and outcome.ends):
                settling = asyncio.get_running_loop().create_task(self._settle(task, job, outcome, at))
                self._settling.add(settling)
                settling.add_done_callback(self._settling.discard)
                return
            self._answer(task, job, outcome, at)
        self._release(task)

    def _release(self, task: Task) -> None:
        task.settled = True
        self._worker._running_tasks.pop(task, None)
        if not self._worker._running_tasks:
            self.idle.set()
        task.pool.release()

    async def _settle(self, task: Task, job: Job | None, outcome: Outcome, at: float) -> None:
        try:
            if await self._publish(task, job, outcome) and await self._report_end(task, outcome):
                self._answer(task, job, outcome, at)
            elif job and outcome.status:
                self._measure(task, job, outcome, at)
            if task.suspect and job and self.ledger and not outcome.requeue:
                await self.ledger.ended(job)
        finally:
            self._release(task)

    async def _publish(self, task: Task, job: Job | None, outcome: Outcome) -> bool:
        """Publish the record of an outcome, if it has one. Return False if the delivery is lost."""
        if job is None or outcome.record is None:
            return True
        message = Message(
            "", outcome.stream, outcome.record, _wire.short(job.jid), _wire.short(job.class_), job.priority,
            _wire.trace_headers(job.traceparent),
        )  # fmt: skip
        return await self._confirmed(task, message, "what became of a job", pairs(job, stream=outcome.stream))

    async def _report_end(self, task: Task, outcome: Outcome) -> bool:
        """Report that a job has ended that holds a slot. Return False if the delivery is lost."""
        if not (task.slot and outcome.ends):
            return True
        record = {"type": "ended", "slot": task.slot, "process": self._worker.identity, "at": time.time()}
        return await self._confirmed(task, Message("", _wire.ENDS, _wire.dump(record)), "that a job has ended", f"slot={quoted(task.slot)}")

    async def _confirmed(self, task: Task, message: Message, what: str, about: str) -> bool:
        """Publish until it is confirmed.

        Return False if the delivery is lost, because then the broker delivers the job again.
        """
        pauses = Pauses()
        while not task.channel.closed.done():
            publishing = asyncio.ensure_future(task.publisher.publish(message))
            await first_of(publishing, task.channel.closed)
            try:
                if not publishing.done():
                    publishing.cancel()
                    return False
                publishing.result()
                return True
            except Lost:
                return False
            except Refused as e:
                self._worker.log.error("millrace: the broker does not take %s, it is tried again  %s error=%s", what, about, quoted(str(e)))
            await pauses.wait()
        return False

    def _answer(self, task: Task, job: Job | None, outcome: Outcome, at: float) -> None:
        channel, tag = task.channel, task.arrival.tag
        if outcome.requeue:
            channel.requeue(tag)
        elif outcome.reject:
            channel.reject(tag)
        else:
            channel.ack(tag)
        if job and outcome.status:
            self._measure(task, job, outcome, at)
        if job and outcome.died is not None and not task.channel.closed.done():
            self._worker._hooks.call("death", job, outcome.died)

    def _measure(self, task: Task, job: Job, outcome: Outcome, at: float) -> None:
        self._worker._metrics.add(metric(job, outcome, self._worker.identity, at, task.took(at)))

    async def wait(self, timeout: float, hurry: asyncio.Event) -> None:
        """Wait until the running jobs have ended, at most for ``timeout`` seconds.

        Then set the cancel signal of those that still run.
        """
        waits = [asyncio.ensure_future(e.wait()) for e in (self.idle, hurry)]
        await first_of(*waits, timeout=timeout)
        for wait in waits:
            wait.cancel()
        if not self.idle.is_set():
            for task in list(self._worker._running_tasks):
                task.end("stopping")
            last = asyncio.ensure_future(self.idle.wait())
            await first_of(last, timeout=LAST_CALL)
            last.cancel()

    async def hand_back(self) -> None:
        """Requeue jobs that still run, and wait for outcomes in progress."""
        for task in list(self._worker._running_tasks):
            if not task.claimed:
                task.claimed = True
                if task.job:
                    self._worker.log.warning(
                        "millrace: job handed back, its handler did not end within the stop timeout  %s", pairs(task.job)
                    )
                task.channel.requeue(task.arrival.tag)
        if self._settling:
            await asyncio.wait(self._settling, timeout=SETTLE_TIME)
