"""A worker on one connection."""

from __future__ import annotations

from ._amqp import Connection
from ._claims import Claims
from ._control import ask_state, listen
from ._core import Core
from ._ledger import Ledger
from ._publisher import Publisher
from ._runner import Runner
from ._settle import Settler


class Session:
    """All that belongs to one connection of a worker."""

    def __init__(self, worker: Core, settler: Settler, connection: Connection, publisher: Publisher) -> None:
        self.worker = worker
        self.settler = settler
        self.connection = connection
        self.publisher = publisher
        self.ledger = Ledger(worker, connection, publisher)
        self.claims = Claims(worker, connection)
        self.runner = Runner(worker, settler, self.ledger, self.claims)
        self._tags = 0

    @classmethod
    async def open(cls, worker: Core, settler: Settler) -> Session:
        """Connect, and prepare everything except the lanes."""
        connection = await worker.hosts.open(f"millrace worker {worker.identity}")
        try:
            self = cls(worker, settler, connection, await Publisher.open(connection))
            metrics = await connection.channel()  # for metrics, whose publishes are not confirmed
            for channel in (metrics, self.publisher.channel):
                # The session needs both.
                channel.closed.add_done_callback(lambda _: connection.drop())
            await self.ledger.open(await listen(worker, connection))
            await ask_state(worker, connection, self.claims)
        except BaseException:
            connection.drop()
            raise
        worker._metrics.attach(metrics)
        return self

    def next_tag(self) -> int:
        """Return the number of a new consumer."""
        self._tags += 1
        return self._tags
