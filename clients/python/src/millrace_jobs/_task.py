"""A delivery that is being processed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ._amqp import Channel
from ._lane import Arrival, Pool
from ._publisher import Publisher
from .job import End, Job


class Task:
    """A delivery with a slot of its lane.

    It is answered on ``channel``, and ``publisher`` publishes its record.
    """

    __slots__ = ("arrival", "begun", "channel", "claimed", "job", "pool", "publisher", "queue", "settled", "since", "suspect")

    def __init__(self, pool: Pool, channel: Channel, publisher: Publisher, queue: str, arrival: Arrival) -> None:
        self.pool = pool
        self.channel = channel
        self.publisher = publisher
        self.queue = queue
        self.arrival = arrival
        self.job: Job | None = None  # once its handler runs
        self.since = 0.0  # when its handler began
        self.claimed = False  # the delivery is being settled
        self.settled = False
        self.suspect = False
        self.begun = time.time()

    @property
    def headers(self) -> Mapping[str, Any]:
        """The headers of the delivery."""
        return self.arrival.properties.headers or {}

    @property
    def slot(self) -> str:
        """The slot that the job holds, or "" if limits do not count it."""
        slot = self.headers.get("millrace-slot")
        return slot if isinstance(slot, str) else ""

    def took(self, end: float) -> float:
        """Return how many seconds the job ran."""
        return max(end - self.begun, 0)

    def end(self, why: End) -> None:
        """Set the cancel signal."""
        if self.job:
            self.job._signal(end=why)
