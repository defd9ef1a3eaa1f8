"""A job as its handler gets it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from . import _wire

ALL_LINES = 100
"""How many lines of a backtrace are kept at most."""

USUAL_LINES = 20
"""How many lines of a backtrace are kept if the job sets no number."""

End = Literal["cancelled", "timeout", "stopping"]


class Job:
    """A job, as its handler gets it.

    ``args`` are as they were enqueued. ``raw`` is the body of the job, byte for byte. ``attempt``
    is the number of this attempt, from 1.
    """

    __slots__ = (
        "_async", "_end", "_enqueued_at", "_expires_at", "_members", "_stopping", "_wakers", "args", "attempt", "backtrace",
        "class_", "dead", "headers", "jid", "priority", "queue", "raw", "retry", "retry_count", "tags", "timeout",
    )  # fmt: skip

    def __init__(self, raw: bytes, queue: str, headers: Mapping[str, Any] | None = None, message_id: str = "", sent: float | None = None):
        """Read a delivery. Raise ValueError if it is not a job."""
        self._members = members = _members(raw)
        self.raw = raw
        self.queue = queue
        self.headers: Mapping[str, Any] = headers or {}
        self.class_: str = _text(members, "class")
        if not self.class_:
            raise ValueError("it has no class")
        self.jid: str = _text(members, "jid") or message_id or hashlib.sha256(raw).hexdigest()[:24]
        if members.get("queue") is not None:
            _wire.check_queue(_text(members, "queue"))
        self.retry = _retry(members.get("retry"))
        self.retry_count = _count(members, "retry_count", _wire.MAX_COUNT)
        self.attempt = self.retry_count + 1
        self.priority = _count(members, "priority", _wire.MAX_PRIORITY)
        self.tags: Sequence[str] = _tags(members.get("tags"))
        self.dead = _flag(members, "dead")
        self._expires_at = _time(members, "expires_at")
        self.args: Any = [] if members.get("args") is None else members["args"]
        self.timeout = _number(members.get("timeout"))
        self.backtrace = _lines(members.get("backtrace"))
        enqueued = _wire.clock(members.get("enqueued_at"))
        self._enqueued_at = sent if enqueued is None else enqueued
        self._stopping = False
        self._end: End | None = None
        # Called when the worker stops and when the cancel signal is set.
        self._wakers: list[Callable[[], object]] = []
        self._async = False  # whether its handler runs on an event loop

    @property
    def fields(self) -> Mapping[str, Any]:
        """The program's own members of the job, such as a tenant, as set by `Options.fields`."""
        return {name: value for name, value in self._members.items() if name not in _wire.JOB_MEMBERS}

    @property
    def stopping(self) -> bool:
        """Whether the worker is stopping.

        The handler may continue until the worker's stop timeout is over.
        """
        return self._stopping

    @property
    def cancelled(self) -> bool:
        """Whether the handler should end now. `end` has the reason."""
        return self._end is not None

    @property
    def end(self) -> End | None:
        """Why the handler should end now, or None if it may continue.

        ``cancelled``: the job was cancelled; ``timeout``: its timeout is over; ``stopping``: the
        worker's stop timeout is over.
        """
        return self._end

    @property
    def traceparent(self) -> str | None:
        """The trace context that came with the job, or None."""
        return _wire.traceparent(self.headers.get("traceparent"))

    def wait(self, seconds: float) -> bool:
        """Sleep for a number of seconds, but end earlier when the job should end.

        Return whether the job should end: ``stopping`` or ``cancelled``. It blocks its thread; an
        async handler awaits `wait_async` instead.
        """
        if self._async and _in_event_loop():
            raise RuntimeError("job.wait would block the event loop: await job.wait_async")
        wake = threading.Event()
        self._wakers.append(wake.set)
        try:
            # After adding the waker: the flags are set before the wakers are called.
            if not self._should_end():
                wake.wait(seconds)
        finally:
            self._wakers.remove(wake.set)
        return self._should_end()

    async def wait_async(self, seconds: float) -> bool:
        """Sleep as `wait` does, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        wake = asyncio.Event()
        waker = partial(call_soon, loop, wake.set)
        self._wakers.append(waker)
        try:
            if not self._should_end():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await wake.wait()
        finally:
            self._wakers.remove(waker)
        return self._should_end()

    def _should_end(self) -> bool:
        return self._stopping or self._end is not None

    def _signal(self, *, stopping: bool = False, end: End | None = None) -> None:
        self._stopping = self._stopping or stopping
        self._end = self._end or end
        for waker in list(self._wakers):
            waker()

    def _cancels(self, cancel: Callable[[], object]) -> None:
        """Call a function once when the cancel signal is set, or now if it is set already."""
        called = False

        def waker() -> None:
            nonlocal called
            if self._end is not None and not called:
                called = True
                cancel()

        self._async = True
        self._wakers.append(waker)
        waker()

    def _expired(self) -> bool:
        return self._expires_at is not None and self._expires_at < time.time()


def call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Call a function on an event loop, unless the loop is closed. Usable from any thread."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _members(raw: bytes) -> dict[str, Any]:
    members = _wire.load(raw.decode())  # UnicodeDecodeError is a ValueError
    if not isinstance(members, dict):
        raise ValueError("it is no JSON object")
    return members


def _text(members: dict[str, Any], name: str) -> str:
    value = members.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    value.encode()  # a lone surrogate raises a ValueError
    return value


def _count(members: dict[str, Any], name: str, most: int) -> int:
    value = members.get(name)
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{name} must be a whole number from 0 to {most}")
    return value


def _retry(value: object) -> int:
    if value is None or value is True:
        return _wire.DEFAULT_RETRY
    return 0 if value is False else _count({"retry": value}, "retry", _wire.MAX_COUNT)


def _flag(members: dict[str, Any], name: str) -> bool:
    value = members.get(name)
    if value is None:
        return True
    if not isinstance(value, bool):
        raise ValueError(f"{name} is not true or false")
    return value


def _tags(value: object) -> Sequence[str]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        raise ValueError("tags is no array of texts")
    return value


def _time(members: dict[str, Any], name: str) -> float | None:
    value = members.get(name)
    if value is None:
        return None
    at = _wire.clock(value)
    if at is None:
        raise ValueError(f"{name} is no time")
    return at


def _number(value: object) -> float | None:
    """Return the value if it is a usable number of seconds, else None. Only workers use it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        return None
    return value


def _lines(value: object) -> int:
    if value is None:
        return USUAL_LINES
    if value is True:
        return ALL_LINES
    if value is False or not isinstance(value, int | float) or not value > 0:
        return 0
    return int(min(value, ALL_LINES))
