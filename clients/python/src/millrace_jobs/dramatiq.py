"""A broker for Dramatiq whose delayed messages wait in Millrace.

With Dramatiq's own broker, workers hold delayed messages in their memory until they are due. With
this one, a message waits in a stream of the broker. When it is due, a sidecar puts it into the
queue of its actor::

    import dramatiq
    from millrace_jobs.dramatiq import MillraceBroker

    dramatiq.set_broker(MillraceBroker(url="amqp://localhost"))

It needs the package ``dramatiq``, and sidecars whose setting ``--deliver-to`` matches the empty
name of the default exchange.
"""

from __future__ import annotations

from typing import Any

from dramatiq import Message
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.errors import ConnectionClosed

from ._message import MessageProperties
from .client import Client
from .errors import Closed, Unconfirmed, Unreachable

__all__ = ["MillraceBroker"]


class MillraceBroker(RabbitmqBroker):
    """A `RabbitmqBroker` whose delayed messages, also those of retries, wait in Millrace.

    It takes the parameters of a `RabbitmqBroker`. ``client`` publishes the delayed messages. The
    default is a client for the same URL. It is required if parameters of pika stand in for a URL.
    """

    def __init__(self, *, url: str | list[str] | None = None, client: Client | None = None, **options: Any) -> None:
        super().__init__(url=url, **options)
        if client is None:
            if url is None:
                raise ValueError("a MillraceBroker needs a url or a client")
            client = Client(url.split(";") if isinstance(url, str) else url)
        self.client = client

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Enqueue a message. If it has a delay, in milliseconds, return when Millrace has it.

        Raise ConnectionClosed if it is not known to have arrived, and Refused if Millrace has never
        run on this virtual host.
        """
        if delay is None or delay <= 0:
            return super().enqueue(message)
        self.declare_queue(message.queue_name, ensure=True)
        self.emit_before("enqueue", message, delay)
        properties: MessageProperties = {"message_id": message.message_id}
        if (priority := message.options.get("broker_priority")) is not None:
            properties["priority"] = priority
        try:
            self.client.publish_in(delay / 1000, "", message.queue_name, message.encode(), properties=properties, tags=[message.actor_name])
        except (Closed, Unconfirmed, Unreachable) as e:
            raise ConnectionClosed(e) from e  # type: ignore[no-untyped-call]
        self.emit_after("enqueue", message, delay)
        return message

    def close(self) -> None:
        """Close all connections, also that of the client."""
        super().close()
        self.client.close()
