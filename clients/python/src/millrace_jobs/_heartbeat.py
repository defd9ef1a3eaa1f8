"""The heartbeats of a worker."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import time
from typing import Any

from . import _wire
from ._amqp import Lost
from ._core import Core
from ._publisher import Publisher
from ._settle import SETTLE_TIME
from ._wire import Message
from .errors import Refused

SHOWN_WORK = 100


class Heartbeat:
    """Sends the heartbeats of a worker on one connection."""

    def __init__(self, worker: Core, publisher: Publisher) -> None:
        self._worker = worker
        self._publisher = publisher
        self._rtt_us = 0

    async def run(self) -> None:
        """Send one now, at each interval, and when the worker has changed."""
        while True:
            await self.beat()
            try:
                async with asyncio.timeout(self._worker.heartbeat):
                    await self._worker._beat_due.wait()
            except TimeoutError:
                pass
            self._worker._beat_due.clear()

    async def beat(self) -> None:
        """Send one. It contains the round trip of the one before."""
        body = _wire.dump(describe(self._worker, self._rtt_us))
        start = time.monotonic()
        try:
            async with asyncio.timeout(SETTLE_TIME):
                await self._publisher.publish(Message("", _wire.HEARTBEATS, body))
            self._rtt_us = int((time.monotonic() - start) * 1e6)
        except (Lost, Refused, TimeoutError):
            self._rtt_us = 0


def describe(worker: Core, rtt_us: int) -> dict[str, Any]:
    """Return the body of a heartbeat."""
    pools = worker._pools
    weights = {q: w for pool in pools if pool.weights for q, w in zip(pool.queues, pool.weights, strict=True)}
    work = [
        {"jid": task.job.jid, "class": task.job.class_, "queue": task.queue, "started_at": task.since}
        for task in list(worker._running_tasks)
        if task.job
    ]
    beat: dict[str, Any] = {
        "type": "heartbeat", "identity": worker.identity, "hostname": socket.gethostname(), "pid": os.getpid(), "tag": worker.tag,
        "concurrency": sum(p.concurrency for p in pools), "busy": sum(p.busy for p in pools), "beat": time.time(), "rss_kb": resident_kb(),
        "queues": list(dict.fromkeys(q for p in pools for q in p.queues)), "version": worker.version, "started_at": worker._started_at,
        "state": worker._state, "labels": dict(worker.labels),
        "lanes": [{"name": p.name, "queues": p.queues, "concurrency": p.concurrency, "busy": p.busy} for p in pools],
        "work": work[:SHOWN_WORK], "metrics_dropped": worker._metrics.dropped,
    }  # fmt: skip
    if rtt_us:
        beat["rtt_us"] = rtt_us
    if weights:
        beat["weights"] = weights
    return beat


def resident_kb() -> int:
    """Return the resident memory of the process; if the system does not report it, the peak."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
