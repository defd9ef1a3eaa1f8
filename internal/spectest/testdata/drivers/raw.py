"""Publishes and takes bytes unchanged.

raw.py publish EXCHANGE KEY [EXPIRATION]   publishes standard input, and waits for the confirm
raw.py ack QUEUE                           waits for a message, acknowledges it and writes its body
raw.py reject QUEUE                        waits for a message, rejects it and writes its body
"""
import os, sys, time, pika


def publish(exchange, key, expiration=None):
    channel = connection.channel()
    channel.confirm_delivery()
    properties = pika.BasicProperties(delivery_mode=2, expiration=expiration)
    channel.basic_publish(exchange, key, sys.stdin.buffer.read(), properties, mandatory=True)


def take(queue, settle):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        channel = connection.channel()
        try:
            method, _, body = channel.basic_get(queue)
        except pika.exceptions.ChannelClosedByBroker:  # the queue does not exist yet
            method = None
        if method:
            settle(channel, method.delivery_tag)
            sys.stdout.buffer.write(body)
            return
        if channel.is_open:
            channel.close()
        time.sleep(0.02)
    sys.exit(f"nothing came to {queue}")


connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
what, *args = sys.argv[1:]
if what == "publish":
    publish(*args)
elif what == "ack":
    take(*args, lambda channel, tag: channel.basic_ack(tag))
else:
    take(*args, lambda channel, tag: channel.basic_reject(tag, requeue=False))
connection.close()
