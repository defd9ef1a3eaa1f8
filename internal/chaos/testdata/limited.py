"""Works on jobs that limits count, as docs/client-contract.md says, with nothing of Millrace's. Writes a
line to a file when a job begins and ends, and when the broker has confirmed its end. Runs one job at a
time. After any error it connects again, until it is killed."""

import json
import os
import random
import sys
import time

import pika

url, path, name, queue = sys.argv[1:5]
parameters = pika.URLParameters(url)
parameters.socket_timeout = 5
parameters.heartbeat = 30
log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
REPLY = "amq.rabbitmq.reply-to"


def note(what, job):
    os.write(log, f"{what}\t{name}\t{job['jid']}/{job.get('retry_count', 0)}\t{job['gate'].get('key', '')}\t{time.time():.6f}\n".encode())


class Worker:
    def __init__(self):
        self.connection = pika.BlockingConnection(parameters)
        self.work = self.connection.channel()
        self.work.basic_qos(prefetch_count=1)
        self.work.confirm_delivery()
        self.questions = self.connection.channel()
        self.answers = []
        self.questions.basic_consume(REPLY, lambda _c, _m, _p, body: self.answers.append(json.loads(body)), auto_ack=True)
        self.below = self.ask({"command": "state"}).get("claim_below")

    def ask(self, command):
        """Asks the leader, and returns {} if there is no answer within two seconds."""
        self.answers.clear()
        self.questions.basic_publish("", "jobs.leader", json.dumps(command), pika.BasicProperties(reply_to=REPLY))
        until = time.time() + 2
        while not self.answers and time.time() < until:
            self.connection.process_data_events(time_limit=0.05)
        return self.answers[0] if self.answers else {}

    def publish(self, stream, record):
        self.work.basic_publish("", stream, json.dumps(record), pika.BasicProperties(delivery_mode=2), mandatory=True)

    def may_run(self, method, headers, slot):
        old = self.below is None or headers.get("millrace-epoch", 0) < self.below
        if not (method.redelivered or "millrace-claim" in headers or headers.get("millrace-op") == "refired" or old):
            return True
        while True:
            answer = self.ask({"command": "claim", "slot": slot, "process": name}).get("claim")
            if answer:
                return answer == "run"
            time.sleep(0.2)

    def run(self, method, properties, body):
        job, headers = json.loads(body), properties.headers or {}
        slot = headers.get("millrace-slot")
        if slot and not self.may_run(method, headers, slot):
            note("dropped", job)
            self.work.basic_ack(method.delivery_tag)
            return
        note("begins", job)
        time.sleep(random.uniform(0.005, 0.5))
        note("ends", job)
        if random.random() < 0.1 and not job.get("retry_count"):
            self.publish("retries", {"type": "retry", "jid": job["jid"], "retry_at": time.time() + 0.5, "retry_count": 1, "error_class": "E",
                                     "error_message": "fails once", "job": {**job, "retry_count": 1}})
            note("failed", job)
        if slot:
            self.publish("jobs.ends", {"type": "ended", "slot": slot, "process": name, "at": time.time()})
        note("confirmed", job)
        self.work.basic_ack(method.delivery_tag)


while True:
    try:
        worker = Worker()
        print("# working", flush=True)
        for delivery in worker.work.consume("queue." + queue, inactivity_timeout=0.2):
            if delivery[0] is not None:
                worker.run(*delivery)
    except (pika.exceptions.AMQPError, OSError) as e:
        os.write(log, f"lost\t{name}\t-\t-\t{time.time():.6f}\n".encode())
        time.sleep(0.2)
