"""What the parts of a worker share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence

from ._amqp import Channel
from ._async import Loop
from ._begins import Key
from ._handler import Handler
from ._hooks import Hooks
from ._hosts import Hosts
from ._lane import Lane, Pool
from ._login import Login
from ._metrics import Metrics
from ._pauses import first_of
from ._task import Task


class Core:
    """A worker as its parts see it: its settings, its state, and its event loop.

    The state belongs to the event loop. Other threads change it through `_post`.
    """

    def __init__(
        self, urls: Sequence[str], login: Login, lanes: Sequence[Lane], *, tag: str, labels: Mapping[str, str], stop_timeout: float,
        max_deaths: int, version: str, declare: bool, heartbeat: float, log: logging.Logger,
    ) -> None:  # fmt: skip
        self.tag = tag
        self.labels = labels
        self.stop_timeout = stop_timeout
        self.max_deaths = max_deaths
        self.version = version
        self.declare = declare
        self.heartbeat = heartbeat
        self.log = log
        self.identity = ":".join(filter(None, (socket.gethostname(), str(os.getpid()), tag)))
        self._process = secrets.token_hex(8)  # unique, also among processes with the same identity
        self._started_at = time.time()
        self._pools = [Pool(lane) for lane in lanes]
        self._handlers: dict[str, Handler] = {}
        self._async_loop = Loop(log)
        self.hosts = Hosts(urls, login, self._async_loop)
        self._hooks = Hooks(log, self._async_loop)
        self._metrics = Metrics()
        self._running_tasks: dict[Task, None] = {}  # also those whose delivery is lost
        self._paused: set[str] = set()
        self._quieted = False
        self._stopping = False
        self._stops: Counter[str] = Counter()  # how often each source has stopped it
        self._stopped = asyncio.Event()
        self._hurried = asyncio.Event()
        self._beat_due = asyncio.Event()
        self._unended: deque[Key] = deque(maxlen=10_000)
        self._loop: asyncio.AbstractEventLoop
        self._posted: deque[Callable[[], None]] = deque()
        self._woken = False

    def _post(self, call: Callable[[], None]) -> None:
        """Call a function in the event loop's thread, from any other thread.

        Many calls together cost one wake-up.
        """
        self._posted.append(call)
        if not self._woken:
            self._woken = True
            # The loop is closed: the worker has ended, and this job was handed back.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._woken = False  # before the loop below: a later call must wake this thread again
        while self._posted:
            try:
                self._posted.popleft()()
            except Exception:  # our own fault, which must not delay the others
                self.log.exception("millrace: what a job came to could not be settled")

    async def _pause(self, channel: Channel, seconds: float) -> bool:
        """Wait some seconds. Return False if the worker stops, or the channel is lost."""
        stopped = asyncio.ensure_future(self._stopped.wait())
        ended = await first_of(stopped, channel.closed, timeout=seconds)
        stopped.cancel()
        return not ended

    def _quiet(self) -> None:
        if not self._quieted:
            self._quieted = True
            self._hooks.call("quiet")
            self._changed()

    def _stop(self, source: str = "itself") -> None:
        # A supervisor and the parent of several processes may both pass on one signal. It counts
        # once.
        self._stops[source] += 1
        if max(self._stops.values()) > 1:
            self._hurried.set()
        if self._stopping:
            return
        self._quiet()
        self._stopping = True
        for task in list(self._running_tasks):
            if task.job:
                task.job._signal(stopping=True)
        self._stopped.set()
        self._beat_due.set()

    def _cancel(self, jid: str) -> None:
        """Cancel the job with this jid, if it runs here."""
        for task in list(self._running_tasks):
            if task.job and task.job.jid == jid:
                task.end("cancelled")

    def _changed(self) -> None:
        """Make lanes and heartbeat react to a change."""
        for pool in self._pools:
            if pool.source:
                pool.source.changed()
        self._beat_due.set()

    @property
    def _state(self) -> str:
        """The worker's state in heartbeats."""
        return "stopping" if self._stopping else "quiet" if self._quieted else "running"
