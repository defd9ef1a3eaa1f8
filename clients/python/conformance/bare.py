"""The loop to which the Python client is compared: pika alone."""

import json
import os
import signal
import sys
from typing import Any

import pika


def on_message(channel: Any, method: Any, _properties: object, _body: bytes) -> None:
    channel.basic_ack(delivery_tag=method.delivery_tag)


def main() -> None:
    settings = json.loads(os.environ["MILLRACE_WORKER"])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    connection = pika.BlockingConnection(pika.URLParameters(os.environ["MILLRACE_AMQP_URL"]))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=settings["concurrency"])
    channel.basic_consume(f"queue.{settings['queues'][0]}", on_message)
    channel.start_consuming()


main()
