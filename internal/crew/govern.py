"""Publishes plain jobs, or works on them, with nothing of Millrace's. A producer writes down which jobs
the broker has confirmed. A worker writes down each job that it gets, which publish that is of, and what
Millrace says of it, and reports the end of those that hold a slot. After any error both connect again, to
any of the nodes, until they are killed."""

import contextlib
import json
import os
import random
import sys
import time

import pika
from pika.adapters.utils.connection_workflow import AMQPConnectorException

what, urls, path, name, queue = sys.argv[1:6]
LOST = (pika.exceptions.AMQPError, AMQPConnectorException, OSError)
log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
published = 0


def nodes():
    """Returns the nodes in any order. A frozen one must not hold the others up."""
    all_nodes = []
    for url in random.sample(urls.split(","), urls.count(",") + 1):
        node = pika.URLParameters(url)
        node.socket_timeout = node.stack_timeout = 5
        node.heartbeat = 10
        node.blocked_connection_timeout = 10
        all_nodes.append(node)
    return all_nodes


def note(*fields):
    os.write(log, ("\t".join(fields) + "\n").encode())


def publish(channel):
    global published
    channel.confirm_delivery()
    while True:
        published += 1  # a job that may not have been taken is not published again
        jid = f"{name}-{published:06d}"
        body = json.dumps({"jid": jid, "class": "Governed", "args": [published % 5]})
        try:
            channel.basic_publish("jobs.direct", queue, body, pika.BasicProperties(delivery_mode=2), mandatory=True)
        except (pika.exceptions.UnroutableError, pika.exceptions.NackError):
            time.sleep(0.05)
            continue
        note("sure", jid)
        time.sleep(float(sys.argv[6]))


def work(channel):
    channel.basic_qos(prefetch_count=5)
    channel.confirm_delivery()
    channel.queue_bind("queue." + queue, "jobs.direct", queue)  # as plain workers do
    for method, properties, body in channel.consume("queue." + queue, inactivity_timeout=0.2):
        if method is None:
            continue
        headers = properties.headers or {}
        op = str(headers.get("millrace-op", "plain"))
        note("got", json.loads(body)["jid"], op, "plain" if op == "plain" else f"{headers['millrace-epoch']}/{headers['millrace-seq']}")
        if headers.get("millrace-slot"):
            end = {"type": "ended", "slot": headers["millrace-slot"], "process": name, "at": time.time()}
            channel.basic_publish("", "jobs.ends", json.dumps(end), pika.BasicProperties(delivery_mode=2))
        channel.basic_ack(method.delivery_tag)


while True:
    connection = None
    try:
        connection = pika.BlockingConnection(nodes())
        {"publish": publish, "work": work}[what](connection.channel())
    except LOST:
        time.sleep(0.2)
    with contextlib.suppress(*LOST):
        if connection:
            connection.close()
