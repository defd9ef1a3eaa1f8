"""Claims of limited jobs that may have begun before."""

from __future__ import annotations

import asyncio

from ._amqp import Connection, Lost
from ._core import Core
from ._leader import ask
from ._pauses import Pauses
from ._publisher import Returned
from ._task import Task

RUN, DROP = "run", "drop"
ANSWER_TIME = 2.0
"""How many seconds the leader has to answer."""


class Claims:
    """Asks the leader whether jobs that hold a slot may run.

    It belongs to one connection, and to the event loop, except for `may_run_from_thread`.
    """

    def __init__(self, worker: Core, connection: Connection) -> None:
        self._worker = worker
        self._connection = connection
        # Jobs of earlier epochs may have begun before this connection was made. None: any may have.
        self.below: int | None = None

    def needed(self, task: Task) -> bool:
        """Return whether the job of a delivery may have begun before."""
        if not task.slot:
            return False
        epoch = task.headers.get("millrace-epoch")
        refired = task.headers.get("millrace-op") == "refired"
        if task.arrival.redelivered or "millrace-claim" in task.headers or refired or self.below is None:
            return True
        return not isinstance(epoch, int) or epoch < self.below

    def may_run_from_thread(self, task: Task) -> bool | None:
        """Call `may_run` from a thread of the lane, and wait for the result."""
        return asyncio.run_coroutine_threadsafe(self.may_run(task), self._worker._loop).result()

    async def may_run(self, task: Task) -> bool | None:
        """Ask until the leader answers. Return whether the job may run.

        Return None if the worker stops, or has lost the delivery.
        """
        pauses = Pauses()
        while (claim := await self._ask(task.slot)) not in (RUN, DROP):
            if not await self._worker._pause(task.channel, pauses.next()):
                return None
        return claim == RUN

    async def _ask(self, slot: str) -> object:
        command = {"command": "claim", "slot": slot, "process": self._worker.identity}
        try:
            reply = await ask(self._connection, command, ANSWER_TIME)
        except (Lost, Returned):
            return None
        return reply.get("claim") if reply.get("status") == 200 else None
