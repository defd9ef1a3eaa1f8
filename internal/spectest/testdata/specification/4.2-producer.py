import pika, json, time, uuid

class JobClient:
    def __init__(self, amqp_url):
        self.connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        self.channel = self.connection.channel()

    def enqueue(self, job_class, args, queue="default", retry=25):
        job = {
            "jid": uuid.uuid4().hex,
            "class": job_class,
            "args": args,
            "queue": queue,
            "retry": retry,
            "retry_count": 0,
            "enqueued_at": time.time()
        }

        self.channel.basic_publish(
            exchange='jobs.direct',
            routing_key=queue,
            body=json.dumps(job),
            properties=pika.BasicProperties(delivery_mode=2)
        )

        return job['jid']

    def schedule(self, job_class, args, scheduled_at, queue="default"):
        scheduled_job = {
            "type": "scheduled_job",
            "jid": uuid.uuid4().hex,
            "scheduled_at": scheduled_at,
            "job": {
                "class": job_class,
                "args": args,
                "queue": queue,
                "retry": 25,
                "enqueued_at": time.time()
            }
        }

        self.channel.basic_publish(
            exchange='',
            routing_key='scheduled_jobs',
            body=json.dumps(scheduled_job),
            properties=pika.BasicProperties(delivery_mode=2)
        )

# Usage
client = JobClient("amqp://localhost")
client.enqueue("SendEmailJob", ["user@example.com", "Hello!"])
client.schedule("SendReminderJob", [123], time.time() + 3600)
