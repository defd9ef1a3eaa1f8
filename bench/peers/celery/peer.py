"""Celery in `make bench-peers`."""

import json
import os
import sys
import time

from celery import Celery, signals
from celery.schedules import crontab

work = json.loads(os.environ["PEER_WORK"])
log = os.open(work["log"], os.O_WRONLY | os.O_APPEND)

app = Celery("peer", broker=work["amqp"])
app.conf.task_default_queue = work["row"]
app.conf.task_ignore_result = True
app.conf.broker_connection_retry_on_startup = True
if work["row"] == "periodic":
    app.conf.beat_schedule = {
        f"job-{i}": {"task": "job", "schedule": crontab(), "args": (i, i)} for i in range(work["jobs"])
    }


def note(what, number, key):
    """Writes that a job begins (b) or ends (e). Linux shares this clock among processes."""
    os.write(log, b"%s %d %d %d %d\n" % (what, number, key, os.getpid(), time.monotonic_ns()))


@app.task(name="job", rate_limit=f"{work['rate']}/s" if work["rate"] else None)
def job(number, key):
    note(b"b", number, key)
    time.sleep(work["sleep_ms"] / 1000)
    note(b"e", number, key)


@signals.worker_ready.connect
@signals.beat_init.connect
def ready(**_):
    print("ready", file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    with app.producer_pool.acquire(block=True) as producer:
        for i in range(work["jobs"]):
            job.apply_async((i, i % work["keys"]), producer=producer)
