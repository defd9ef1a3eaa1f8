"""The consume loop around section 3.3's function."""
import os, pika
from specification import process_job

connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
channel = connection.channel()
channel.basic_qos(prefetch_count=1)
for queue in ["queue.critical", "queue.default"]:
    channel.queue_declare(queue, durable=True, arguments={"x-max-priority": 10})
    channel.basic_consume(queue, process_job)
print("Worker started")
channel.start_consuming()
