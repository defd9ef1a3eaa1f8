"""Enqueues jobs with the Python client and with pika alone, for the benchmark of enqueueing."""

import json
import os
import time
from collections.abc import Callable
from typing import Any

import pika

from millrace_jobs import Client, NewJob

URL = os.environ["MILLRACE_AMQP_URL"]
SETTINGS = json.loads(os.environ["MILLRACE_ENQUEUE"])
QUEUE, JOBS, AT_ONCE = SETTINGS["queue"], SETTINGS["jobs"], SETTINGS["at_once"]


def message(n: int) -> tuple[bytes, pika.BasicProperties]:
    now, jid = time.time(), f"{n:032x}"
    body = f'{{"jid":"{jid}","class":"Noop","args":[{n},"some text"],"queue":"{QUEUE}","created_at":{now},"enqueued_at":{now},"retry":25}}'
    return body.encode(), pika.BasicProperties(
        content_type="application/json", delivery_mode=2, message_id=jid, type="Noop", timestamp=int(now)
    )


def bare(channel: Any) -> None:
    for n in range(JOBS):
        body, properties = message(n)
        channel.basic_publish("jobs.direct", QUEUE, body, properties, mandatory=True)


def bare_bulk() -> float:
    """Publish with pika's asynchronous connection, because the blocking one confirms one by one."""
    begun, left, sent = 0.0, JOBS, 0

    def publish(channel: Any) -> None:
        nonlocal sent
        for n in range(sent, min(sent + AT_ONCE, JOBS)):
            body, properties = message(n)
            channel.basic_publish("jobs.direct", QUEUE, body, properties, mandatory=True)
        sent += AT_ONCE

    def opened(channel: Any) -> None:
        nonlocal begun
        done, low = bytearray(JOBS + 1), 1

        def confirmed(frame: Any) -> None:
            nonlocal left, low
            tag = frame.method.delivery_tag
            for confirmed in range(low if frame.method.multiple else tag, tag + 1):
                left -= not done[confirmed]
                done[confirmed] = 1
            if frame.method.multiple:
                low = max(low, tag + 1)
            if left == JOBS - min(sent, JOBS) and left > 0:
                publish(channel)
            elif left == 0:
                connection.ioloop.stop()

        channel.confirm_delivery(confirmed)
        begun = time.perf_counter()
        publish(channel)

    connection = pika.SelectConnection(
        pika.URLParameters(URL),
        on_open_callback=lambda c: c.channel(on_open_callback=opened),
        on_close_callback=lambda c, _why: c.ioloop.stop(),
    )
    connection.ioloop.start()
    took = time.perf_counter() - begun
    connection.close()
    connection.ioloop.start()
    return took


def single(client: Client) -> None:
    for n in range(JOBS):
        client.enqueue("Noop", [n, "some text"], queue=QUEUE)


def bulk(client: Client) -> None:
    for begin in range(0, JOBS, AT_ONCE):
        client.enqueue_bulk([NewJob("Noop", [n, "some text"], queue=QUEUE) for n in range(begin, begin + AT_ONCE)])


def timed(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main() -> None:
    connection = pika.BlockingConnection(pika.URLParameters(URL))
    channel = connection.channel()
    channel.confirm_delivery()
    with Client(URL) as client:
        for _ in range(SETTINGS["rounds"]):
            one = {"bare": timed(lambda: bare(channel)), "library": timed(lambda: single(client))}
            many = {"bare": bare_bulk(), "library": timed(lambda: bulk(client))}
            print(json.dumps({"single": one, "bulk": many}), flush=True)
    connection.close()


main()
