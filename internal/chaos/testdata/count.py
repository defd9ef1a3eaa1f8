"""Consumes queues and prints a line for each job: the queue, the jid, the epoch and number of its
publish, whether the broker marks it as redelivered, and the time. After any error it connects and
declares again, until it is killed."""

import json
import sys
import time

import pika

url, queues = sys.argv[1], sys.argv[2:]
parameters = pika.URLParameters(url)
parameters.socket_timeout = 5
parameters.heartbeat = 30


class Again(Exception):
    pass


def count(channel, queue):
    def took(_, method, properties, body):
        headers = properties.headers or {}
        try:
            jid = json.loads(body)["jid"]
        except (ValueError, KeyError):
            jid = "?" + body.hex()
        print(queue, jid, headers.get("millrace-epoch", "-"), headers.get("millrace-seq", "-"), int(method.redelivered),
              f"{time.time():.6f}", sep="\t")
        counted[channel] = method.delivery_tag
    return took


def cancelled(_):
    raise Again


def work():
    connection = pika.BlockingConnection(parameters)
    try:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=500)
        for queue in queues:
            channel.queue_declare(queue, durable=True, arguments={"x-max-priority": 10})
            channel.basic_consume(queue, count(channel, queue))
        channel.add_on_cancel_callback(cancelled)
        print("# consuming", flush=True)
        while True:
            connection.process_data_events(time_limit=0.05)
            sys.stdout.flush()
            if tag := counted.pop(channel, None):  # first counted, then acknowledged
                channel.basic_ack(tag, multiple=True)
    finally:
        sys.stdout.flush()
        try:
            connection.close()
        except pika.exceptions.AMQPError:
            pass


while True:
    counted = {}
    try:
        work()
    except (Again, pika.exceptions.AMQPError, OSError) as e:
        print("# again:", repr(e), flush=True)
        time.sleep(0.2)
