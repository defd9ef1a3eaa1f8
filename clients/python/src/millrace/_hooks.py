"""What a program wants to be told. Hooks run one after the other in a thread of their own, never where I/O waits for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

Event = Literal["startup", "quiet", "shutdown", "death"]
Hook = Callable[..., object]


class Hooks:
    """The hooks of a worker, by what they are told."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._hooks: dict[str, list[Hook]] = {"startup": [], "quiet": [], "shutdown": [], "death": []}
        self._thread = ThreadPoolExecutor(1, "millrace hooks")

    def add(self, event: str, hook: Hook) -> Hook:
        """Add a hook."""
        if event not in self._hooks:
            raise ValueError(f"there is no hook {event}: there are {', '.join(self._hooks)}")
        self._hooks[event].append(hook)
        return hook

    def call(self, event: Event, *args: Any) -> Future[None] | None:
        """Call the hooks of an event."""
        return self._thread.submit(self._run, event, args) if self._hooks[event] else None

    async def call_and_wait(self, event: Event) -> None:
        """Call the hooks of an event, and return when they have."""
        called = self.call(event)
        if called:
            await asyncio.wrap_future(called)

    def _run(self, event: Event, args: tuple[Any, ...]) -> None:
        for hook in self._hooks[event]:
            try:
                hook(*args)
            except BaseException:
                self._log.exception("millrace: hook %s failed", event)

    async def close(self) -> None:
        """Wait for hooks that still run."""
        await asyncio.to_thread(self._thread.shutdown)
