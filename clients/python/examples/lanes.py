"""Shows lanes, middleware, hooks, a handler that stops early, and several ways to fail."""

import asyncio
import logging
import os
from collections.abc import Callable

from millrace_jobs import Discard, HandBack, Job, Lane, RetryIn, Worker

logging.basicConfig(level=logging.INFO)
logging.getLogger("pika").setLevel(logging.CRITICAL)

worker = Worker(
    os.environ.get("MILLRACE_AMQP_URL", "amqp://localhost"),
    queues={"critical": 3, "default": 1},
    concurrency=10,
    lanes=[Lane("slow", ["reports"], concurrency=2)],
    tag="example",
)


@worker.use
def log(job: Job, call_next: Callable[[], object]) -> None:
    """Log each job."""
    logging.info("%s begins, attempt %d", job.class_, job.attempt)
    call_next()


@worker.handle("Report", timeout=600)
def report(job: Job) -> None:
    """Work for long, in steps."""
    for page in range(100):
        if job.wait(1):  # stands for a second's work
            raise HandBack
        logging.info("page %d", page)


@worker.handle("Charge", retry_in=lambda count, _error, _job: 60 * (count + 1))
def charge(job: Job) -> None:
    """Fail in several ways."""
    customer, amount = job.args
    if amount <= 0:
        raise Discard("nothing to pay")
    if customer == "busy":
        raise RetryIn(5, "the bank is busy")


@worker.handle("Notify", timeout=30)
async def notify(job: Job) -> None:
    """Send a notification. The coroutine is cancelled after 30 seconds."""
    await asyncio.sleep(1)
    logging.info("notified %s", job.fields.get("tenant"))


@worker.on("failure")
def failed(job: Job, error: BaseException) -> None:
    """Report each failed attempt to an error tracker. The log has it already."""


@worker.on("death")
def died(job: Job, error: BaseException) -> None:
    """Page a person: this job is not retried."""
    logging.error("%s %s is dead: %s", job.class_, job.jid, error)


if __name__ == "__main__":
    worker.run(signals=True)
