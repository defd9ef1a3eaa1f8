# Python example
import json, time, pika

connection = pika.BlockingConnection(pika.URLParameters('amqp://...'))
channel = connection.channel()

# Schedule job for 1 hour from now
scheduled_msg = {
    "type": "scheduled_job",
    "jid": str(uuid.uuid4()),
    "scheduled_at": time.time() + 3600,
    "job": {
        "class": "SendEmailJob",
        "args": ["user@example.com", "Welcome!"],
        "queue": "default",
        "retry": 25
    }
}

channel.basic_publish(
    exchange='',
    routing_key='scheduled_jobs',
    body=json.dumps(scheduled_msg),
    properties=pika.BasicProperties(delivery_mode=2)  # persistent
)
