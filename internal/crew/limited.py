"""Works on jobs that limits count, as docs/client-contract.md says, with nothing of Millrace's. Writes a
line to a file when a job begins and ends, and when the broker has confirmed its end. Runs one job at a
time. After any error it connects again, to any of the nodes, until it is killed."""

import contextlib
import json
import os
import random
import sys
import time

import pika
from pika.adapters.utils.connection_workflow import AMQPConnectorException

urls, path, name, queue = sys.argv[1:5]
LOST = (pika.exceptions.AMQPError, AMQPConnectorException, OSError)
log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
REPLY = "amq.rabbitmq.reply-to"


def nodes():
    """Returns the nodes in any order. A frozen one must not hold the others up."""
    all_nodes = []
    for url in random.sample(urls.split(","), urls.count(",") + 1):
        node = pika.URLParameters(url)
        node.socket_timeout = node.stack_timeout = 5
        node.heartbeat = 10
        all_nodes.append(node)
    return all_nodes


def note(what, job, *more):
    fields = [what, name, f"{job['jid']}/{job.get('retry_count', 0)}", job["gate"].get("key", ""), f"{time.time():.6f}", *more]
    os.write(log, ("\t".join(fields) + "\n").encode())


class Worker:
    def __init__(self):
        self.connection = pika.BlockingConnection(nodes())
        self.work = self.connection.channel()
        self.work.basic_qos(prefetch_count=1)
        self.work.confirm_delivery()
        self.questions = self.connection.channel()
        self.answers, self.asked = {}, 0
        self.questions.basic_consume(REPLY, self.answered, auto_ack=True)
        self.below = self.ask({"command": "state"}).get("claim_below")

    def answered(self, _channel, _method, properties, body):
        self.answers[properties.correlation_id] = json.loads(body)

    def ask(self, command):
        """Asks the leader, and returns {} if there is no answer within two seconds. A later one must not
        pass for the answer to another question."""
        self.asked += 1
        question = str(self.asked)
        properties = pika.BasicProperties(reply_to=REPLY, correlation_id=question)
        self.questions.basic_publish("", "jobs.leader", json.dumps(command), properties)
        until = time.time() + 2
        while question not in self.answers and time.time() < until:
            self.connection.process_data_events(time_limit=0.05)
        return self.answers.pop(question, {})

    def publish(self, stream, record):
        self.work.basic_publish("", stream, json.dumps(record), pika.BasicProperties(delivery_mode=2), mandatory=True)

    def claim(self, slot):
        """Reports whether the leader lets the job run."""
        while True:
            answer = self.ask({"command": "claim", "slot": slot, "process": name}).get("claim")
            if answer:
                return answer == "run"
            time.sleep(0.2)

    def run(self, method, properties, body):
        job, headers = json.loads(body), properties.headers or {}
        slot = headers.get("millrace-slot")
        old = self.below is None or headers.get("millrace-epoch", 0) < self.below
        claims = method.redelivered or "millrace-claim" in headers or headers.get("millrace-op") == "refired" or old
        if slot and claims and not self.claim(slot):
            note("dropped", job)
            self.work.basic_ack(method.delivery_tag)
            return
        note("begins", job, "again" if method.redelivered or old else "first")
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
    worker = None
    try:
        worker = Worker()
        for delivery in worker.work.consume("queue." + queue, inactivity_timeout=0.2):
            if delivery[0] is not None:
                worker.run(*delivery)
        worker.connection.close()  # the node of the queue is away
    except LOST:
        os.write(log, f"lost\t{name}\t-\t-\t{time.time():.6f}\n".encode())
        with contextlib.suppress(*LOST):
            if worker:
                worker.connection.close()
        time.sleep(0.2)
