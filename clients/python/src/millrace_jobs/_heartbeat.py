"""The description of a worker in its heartbeats."""

from __future__ import annotations

import os
import resource
import socket
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .worker import Worker

SHOWN_WORK = 100


def describe(worker: Worker, rtt_us: int) -> dict[str, Any]:
    """Return the body of a heartbeat."""
    pools = worker._pools
    weights = {q: w for pool in pools if pool.weights for q, w in zip(pool.queues, pool.weights, strict=True)}
    work = [
        {"jid": task.job.jid, "class": task.job.class_, "queue": task.queue, "started_at": task.since}
        for task in list(worker._settler.running)
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
