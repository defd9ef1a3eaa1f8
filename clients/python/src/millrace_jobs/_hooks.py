"""Hooks: functions that a worker calls at events.

Hooks for failures run in the thread of the job. All others run one after the other in a thread of
their own, so that no I/O waits for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

from ._async import Loop
from ._handler import check_callable, settled

Event = Literal["startup", "quiet", "shutdown", "failure", "death"]
Hook = Callable[..., object]


_ARGUMENTS: dict[str, int] = {"startup": 0, "quiet": 0, "shutdown": 0, "failure": 2, "death": 2}


class Hooks:
    """The hooks of a worker, by their event."""

    def __init__(self, log: logging.Logger, loop: Loop) -> None:
        self._log = log
        self._loop = loop
        self._hooks: dict[str, list[Hook]] = {event: [] for event in _ARGUMENTS}
        self._thread = ThreadPoolExecutor(1, "millrace hooks")

    def add(self, event: str, hook: Hook) -> Hook:
        """Add a hook."""
        if event not in self._hooks:
            raise ValueError(f"there is no hook {event}: there are {', '.join(self._hooks)}")
        check_callable(f"the hook {event}", hook, _ARGUMENTS[event])
        self._hooks[event].append(hook)
        return hook

    def call(self, event: Event, *args: Any) -> Future[None] | None:
        """Call the hooks of an event."""
        return self._thread.submit(self.call_here, event, *args) if self._hooks[event] else None

    async def call_and_wait(self, event: Event) -> None:
        """Call the hooks of an event, and return when they have returned."""
        called = self.call(event)
        if called:
            await asyncio.wrap_future(called)

    def call_here(self, event: Event, *args: Any, loop: Loop | None = None) -> None:
        """Call the hooks of an event in this thread. Log errors."""
        for hook in self._hooks[event]:
            try:
                settled(hook(*args), loop or self._loop)
            except BaseException:
                self._log.exception("millrace: hook %s failed", event)

    async def close(self) -> None:
        """Wait for hooks that still run."""
        await asyncio.to_thread(self._thread.shutdown)
