"""A pool of threads for some queues, and its waiting deliveries."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

from . import _wire

CONCURRENCY = 5
Queues = Sequence[str] | Mapping[str, int]


@dataclass
class Lane:
    """A named pool of threads with its own queues, so that quick jobs never wait for slow ones.

    ``queues`` is a list or a map. With a list, the first queue that has a job is served. With a
    map, each queue is served in proportion to its weight.
    """

    name: str
    queues: Queues
    concurrency: int = CONCURRENCY

    def check(self) -> None:
        """Raise ValueError if a setting is invalid."""
        if isinstance(self.queues, str) or not self.queues or len(set(self.queues)) != len(self.queues):
            raise ValueError(f"lane {self.name}: queues must be a list or a map of different names, and not empty")
        for queue in self.queues:
            _wire.check_queue(queue)
        if isinstance(self.queues, Mapping) and not all(weight >= 1 for weight in self.queues.values()):
            raise ValueError(f"lane {self.name}: weights must be 1 or more")
        if self.concurrency < 1:
            raise ValueError(f"lane {self.name}: concurrency is {self.concurrency}")


class Source(Protocol):
    """Where the deliveries of a lane come from."""

    def begin(self) -> None:
        """Begin waiting deliveries while slots are free."""

    def changed(self) -> None:
        """React when a queue was paused or resumed, or the worker became quiet."""


class Pool:
    """The threads of a lane.

    It outlives connections: a job whose delivery is lost keeps its slot until it ends.
    """

    def __init__(self, lane: Lane) -> None:
        self.name = lane.name
        self.queues = list(lane.queues)
        self.weights = list(lane.queues.values()) if isinstance(lane.queues, Mapping) else None
        self.concurrency = lane.concurrency
        self.busy = 0
        self.source: Source | None = None  # while the lane has a channel
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    @property
    def prefetch(self) -> int:
        """How many unacknowledged deliveries the broker sends for each queue.

        For one queue it is the concurrency. For several queues it is twice that. Otherwise, when a
        slot is free, the next job of the first queue would still be on its way, and a job of
        another queue would begin.
        """
        return self.concurrency if len(self.queues) == 1 else 2 * self.concurrency

    def begin(self, work: Callable[[], None]) -> None:
        """Call a function in a thread. The caller has checked that a slot is free."""
        self.busy += 1
        if len(self._threads) < min(self.busy, self.concurrency):
            name = f"millrace {self.name} {len(self._threads) + 1}"
            # A handler that never ends must not keep the process alive.
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._work.put(work)

    def _run(self) -> None:
        while work := self._work.get():
            work()

    def release(self) -> None:
        """Free the slot of a task that is settled."""
        self.busy -= 1
        if self.source:
            self.source.begin()

    def close(self) -> None:
        """End idle threads now, and busy threads when their jobs end."""
        for _ in self._threads:
            self._work.put(None)


@dataclass(slots=True)
class Arrival:
    """A delivery that has not begun."""

    tag: int
    redelivered: bool
    properties: Any
    body: bytes
    at: float
    priority: int


class Hand:
    """A lane's waiting deliveries, by queue."""

    def __init__(self, pool: Pool) -> None:
        self.count = 0
        self._waiting: list[deque[Arrival]] = [deque() for _ in pool.queues]
        self._weights = pool.weights

    def put(self, queue: int, arrival: Arrival) -> None:
        """Add an arrival behind all of the same or a higher priority."""
        waiting = self._waiting[queue]
        at = len(waiting)
        while at > 0 and waiting[at - 1].priority < arrival.priority:
            at -= 1
        waiting.insert(at, arrival)
        self.count += 1

    def take(self) -> tuple[int, Arrival]:
        """Remove the next delivery to begin.

        It is from the first queue that has one, or from a queue that is drawn by weight.
        """
        having = [q for q, waiting in enumerate(self._waiting) if waiting]
        queue = random.choices(having, [self._weights[q] for q in having])[0] if self._weights and len(having) > 1 else having[0]
        self.count -= 1
        return queue, self._waiting[queue].popleft()

    def empty(self, queue: int) -> list[Arrival]:
        """Remove and return all deliveries of a queue."""
        waiting = list(self._waiting[queue])
        self._waiting[queue].clear()
        self.count -= len(waiting)
        return waiting

    def waits_since(self, queue: int) -> float:
        """Return when the oldest delivery of a queue arrived, or now if there is none."""
        return min((a.at for a in self._waiting[queue]), default=time.monotonic())
