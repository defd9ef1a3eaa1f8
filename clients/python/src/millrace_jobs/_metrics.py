"""Metrics: one record for each job, sent in arrays.

Adding a record never blocks. A record that does not fit is dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from . import _wire
from ._amqp import Channel, Lost
from ._outcome import Outcome
from ._wire import Message
from .job import Job

KEPT = 10_000
AT_ONCE = 500
AFTER = 1.0
LONGEST_WAIT = 10**12  # ms; a longer wait means that a clock is wrong


def metric(job: Job, outcome: Outcome, identity: str, end: float, took: float) -> dict[str, Any]:
    """Return the record of an attempt that ended at ``end`` and took some seconds."""
    record: dict[str, Any] = {
        "type": "job_metric", "timestamp": end, "job_class": job.class_, "queue": job.queue, "duration_ms": int(took * 1000),
        "status": outcome.status, "worker_identity": identity, "jid": _wire.valid(job.jid),
    }  # fmt: skip
    if job.retry_count == 0 and job._enqueued_at is not None:
        wait = max(int((end - took - job._enqueued_at) * 1000), 0)
        if wait <= LONGEST_WAIT:
            record["wait_ms"] = wait
    record["attempt"] = job.attempt
    if outcome.error_class:
        record["error_class"] = outcome.error_class
    return record


class Metrics:
    """The buffer. It belongs to the event loop."""

    def __init__(self) -> None:
        self.dropped = 0
        self._records: deque[dict[str, Any]] = deque()
        self._channel: Channel | None = None
        self._timer: asyncio.TimerHandle | None = None

    def attach(self, channel: Channel) -> None:
        """Set the channel to send on."""
        self._channel = channel
        self.flush()

    def add(self, record: dict[str, Any]) -> None:
        """Add a record."""
        if len(self._records) >= KEPT:
            self.dropped += 1
            return
        self._records.append(record)
        if len(self._records) >= AT_ONCE:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(AFTER, self.flush)

    def flush(self) -> None:
        """Send all records. Without a connection they wait for the next one."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        while self._records and self._channel and not self._channel.closed.done():
            batch = [self._records[i] for i in range(min(AT_ONCE, len(self._records)))]
            try:
                self._channel.publish(Message("", _wire.METRICS, _wire.dump(batch), mandatory=False))
            except Lost:
                return
            for _ in batch:
                self._records.popleft()
