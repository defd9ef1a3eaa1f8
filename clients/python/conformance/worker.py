"""Tested by clients/conformance, whose README says what this program must do.

Some of its handlers are async, because those of a program may be.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from millrace_jobs import Discard, HandBack, Job, Kill, Lane, Worker

settings: dict[str, Any] = json.loads(os.environ["MILLRACE_WORKER"])
settings["lanes"] = [Lane(**lane) for lane in settings.get("lanes", [])]
effects = os.open(os.environ["MILLRACE_EFFECTS"], os.O_APPEND | os.O_WRONLY | os.O_CREAT, 0o666)
worker = Worker(os.environ["MILLRACE_AMQP_URL"], **settings)


def write(what: str, text: str, jid: str, attempt: int) -> None:
    os.write(effects, f"{what}\t{text}\t{jid}\t{attempt}\t{time.time():f}\n".encode())


def add(what: str, job: Job, text: str | None = None) -> None:
    write(what, str(job.args[0]) if text is None else text, job.jid, job.attempt)


def handles(class_: str, **options: Any) -> Callable[[Callable[[Job], None]], Callable[[Job], None]]:
    """Register a handler that first reports that it runs."""

    def register(then: Callable[[Job], None]) -> Callable[[Job], None]:
        def handler(job: Job) -> None:
            add("ran", job)
            then(job)

        worker.handle(class_, handler, **options)
        return then

    return register


def around(name: str) -> Callable[[Job, Callable[[], object]], object]:
    """Return middleware that records its position."""

    def middleware(job: Job, next_: Callable[[], object]) -> object:
        if job.class_ != "Wrapped":
            return next_()
        add(name, job)
        if name == "inner" and job.args[0] == "fail":
            fail(job)
        result = next_()
        add(f"{name}-end", job)
        return result

    return middleware


worker.use(around("outer"))
worker.use(around("inner"))


@handles("Wrapped")
@handles("Append")
def append(job: Job) -> None:
    pass


@handles("Fail")
def fail(job: Job) -> None:
    raise RuntimeError(f"failed on purpose: {job.args[0]}")


@worker.handle("FailSoon", retry_in=lambda *_: 0.2)
async def fail_soon(job: Job) -> None:
    add("ran", job)
    await asyncio.sleep(0)
    if job.attempt <= job.args[1]:
        fail_now = f"failed on purpose: {job.args[0]}"
        raise RuntimeError(fail_now)


@handles("Fatal")
def fatal(job: Job) -> None:
    raise SystemExit("ended on purpose")  # a BaseException, but no Exception


@handles("Discard")
def discard(job: Job) -> None:
    raise Discard("on purpose")


@handles("Kill")
def kill(job: Job) -> None:
    raise Kill(f"killed on purpose: {job.args[0]}")


@worker.handle("Sleep")
def sleep(job: Job) -> None:
    add("began", job)
    time.sleep(job.args[1])
    add("ran", job)


@worker.handle("Wait")
def wait(job: Job) -> None:
    add("began", job)
    if job.wait(job.args[1]):
        add("stopped", job)
        raise HandBack
    add("ran", job)


@worker.handle("Die")
def die(job: Job) -> None:
    add("began", job)
    os.kill(os.getpid(), signal.SIGKILL)


@worker.handle("Args")
async def args(job: Job) -> None:
    await asyncio.sleep(0)
    add("args", job, json.dumps(job.args[1:]))


@worker.handle("Trace")
async def trace(job: Job) -> None:
    await asyncio.sleep(0)
    add("trace", job, job.traceparent or "none")


@worker.handle("Noop")
def noop(job: Job) -> None:
    pass


for event in ("startup", "quiet", "shutdown"):
    worker.on(event, lambda event=event: write(event, "-", "", 0))
worker.on("death", lambda job, _error: add("death", job, "-"))
worker.run(signals=True)
