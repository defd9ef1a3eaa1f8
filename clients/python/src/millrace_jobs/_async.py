"""The event loop of async handlers and hooks."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable
from functools import partial
from queue import SimpleQueue
from typing import Any

from .job import Job, call_soon

LAST_STEPS = 1.0
"""How many seconds cancelled coroutines have to end when the loop is closed."""


class Loop:
    """An event loop in a thread of its own, which starts at the first use.

    All async handlers and hooks of a worker share it, because connection pools and sessions belong
    to one loop. The worker's input and output runs on another loop. So a handler that blocks delays
    other async handlers, but never heartbeats.
    """

    def __init__(self, log: logging.Logger, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._log = log
        self._loop = loop  # a loop that already runs elsewhere, or None for a loop of its own
        self._lock = threading.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()  # a loop keeps only weak references
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, awaitable: Awaitable[Any], job: Job | None = None) -> Any:
        """Await something on the loop while the calling thread waits, and return its result.

        Its error is raised. It is cancelled when the job's cancel signal is set. It sees the
        context variables of the calling thread.
        """
        ended: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

        async def main() -> tuple[Any, BaseException | None]:
            try:
                return await awaitable, None
            except BaseException as e:  # a SystemExit in a task would end the loop
                return None, e

        def start() -> None:
            task = loop.create_task(main())
            self._tasks.add(task)
            task.add_done_callback(end)
            if job:
                job._cancels(partial(call_soon, loop, task.cancel))

        def end(task: asyncio.Task[tuple[Any, BaseException | None]]) -> None:
            self._tasks.discard(task)
            if not task.cancelled():
                ended.put(task.result())
                return
            _close(awaitable)  # cancelled before it began
            ended.put((None, asyncio.CancelledError()))

        try:
            loop = self._started()
            loop.call_soon_threadsafe(start)
        except RuntimeError:  # closed
            _close(awaitable)
            raise
        result, error = ended.get()
        if error is None:
            return result
        try:
            raise error
        finally:
            del error  # it refers to this frame

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise RuntimeError("the event loop of async handlers is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), name="millrace async", daemon=True)
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not self._closed:  # a handler may have called stop
            try:
                loop.run_forever()
            except BaseException:  # a SystemExit in a task that a handler made
                self._log.exception("millrace: a task of the event loop tried to end it, it continues")
        loop.close()

    def close(self) -> None:
        """Cancel running tasks and end the thread, unless a coroutine blocks it."""
        with self._lock:
            closed, self._closed = self._closed, True
        if self._thread and self._loop and not closed:
            asyncio.run_coroutine_threadsafe(_finish(), self._loop)
            self._thread.join(2 * LAST_STEPS)


async def _finish() -> None:
    loop = asyncio.get_running_loop()
    try:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_STEPS)
        await loop.shutdown_asyncgens()
    finally:
        loop.stop()


def _close(awaitable: Awaitable[Any]) -> None:
    if inspect.iscoroutine(awaitable):
        awaitable.close()
