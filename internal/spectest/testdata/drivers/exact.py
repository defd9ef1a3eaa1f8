"""A plain worker that binds its queue and reports the end of each job: exact.py QUEUE"""
import json, os, sys, pika
from supplied import execute_job_class


def on_message(channel, method, properties, body):
    job = json.loads(body)
    execute_job_class(job["class"], job["args"])
    slot = (properties.headers or {}).get("millrace-slot")
    if slot:
        channel.basic_publish("", "jobs.ends", json.dumps({"type": "ended", "slot": slot}))
    channel.basic_ack(method.delivery_tag)


connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
channel = connection.channel()
channel.basic_qos(prefetch_count=1)
channel.queue_declare("queue." + sys.argv[1], durable=True, arguments={"x-max-priority": 10})
channel.queue_bind("queue." + sys.argv[1], "jobs.direct", sys.argv[1])
channel.basic_consume("queue." + sys.argv[1], on_message)
print("Worker started")
channel.start_consuming()
