"""Publishes plain jobs with ten lines of pika: plain.py QUEUE FIRST N"""
import json, os, sys, pika

queue, first, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
channel = connection.channel()
channel.confirm_delivery()
for number in range(first, first + n):
    job = {"jid": f"plain-{number}", "class": "CountedJob", "args": [number]}
    channel.basic_publish("jobs.direct", queue, json.dumps(job), pika.BasicProperties(delivery_mode=2))
connection.close()
