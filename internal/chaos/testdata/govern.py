"""Publishes plain jobs, or works on them, with nothing of Millrace's. A producer writes down which jobs
the broker has confirmed. A worker writes down each job that it gets, whether the broker says that it comes
again, and what Millrace says of it, and reports the end of those that hold a slot. After any error both
connect again, until they are killed."""

import json
import os
import sys
import time

import pika

what, url, path, name, queue = sys.argv[1:6]
parameters = pika.URLParameters(url)
parameters.socket_timeout = 5
parameters.heartbeat = 30
parameters.blocked_connection_timeout = 10
log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
published = 0


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
        time.sleep(0.004)


def work(channel):
    channel.basic_qos(prefetch_count=5)
    channel.confirm_delivery()
    channel.queue_bind("queue." + queue, "jobs.direct", queue)  # as plain workers do
    for method, properties, body in channel.consume("queue." + queue, inactivity_timeout=0.2):
        if method is None:
            continue
        headers = properties.headers or {}
        note("got", json.loads(body)["jid"], "again" if method.redelivered else "first", str(headers.get("millrace-op", "plain")))
        if headers.get("millrace-slot"):
            end = {"type": "ended", "slot": headers["millrace-slot"], "process": name, "at": time.time()}
            channel.basic_publish("", "jobs.ends", json.dumps(end), pika.BasicProperties(delivery_mode=2))
        channel.basic_ack(method.delivery_tag)


while True:
    try:
        {"publish": publish, "work": work}[what](pika.BlockingConnection(parameters).channel())
    except (pika.exceptions.AMQPError, OSError):
        time.sleep(0.2)
