"""Declares the topology of section 2.3 of the specification, and the given queues:
declare.py queue.x ..."""
import os, sys, pika

connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
channel = connection.channel()
channel.exchange_declare("jobs.direct", exchange_type="direct", durable=True)
channel.exchange_declare("jobs.dead", exchange_type="fanout", durable=True)
for queue in sys.argv[1:]:
    channel.queue_declare(queue, durable=True, arguments={"x-max-priority": 10})
for stream in ["scheduled_jobs", "retries", "dead_jobs", "heartbeats", "job_metrics"]:
    channel.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream"})
connection.close()
print("declared")
