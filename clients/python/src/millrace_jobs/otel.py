"""OpenTelemetry: a span for each job that is enqueued, and one for each attempt.

It needs the package ``opentelemetry-api``, and a program that configures OpenTelemetry. Names and
attributes follow the semantic conventions of messaging systems::

    trace_client(client)
    trace_worker(worker)

The trace context travels as the option ``traceparent`` of a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from opentelemetry import context, trace
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ._newjob import NewJob
from ._version import __version__
from ._wire import DEFAULT_QUEUE
from .async_client import AsyncClient, AsyncEnqueue
from .client import Client, Enqueue
from .errors import Discard, HandBack
from .job import Job
from .worker import Worker

Parent = Literal["auto", "child", "link"]

_format = TraceContextTextMapPropagator()


def trace_client(client: Client, tracer_provider: TracerProvider | None = None) -> Client:
    """Make a client begin a span ``publish <queue>`` for each job that it enqueues.

    If the job has a traceparent, for instance from an outbox, that is the parent of the span. In
    ``enqueue_bulk``, the span ends when the job is sent.
    """
    tracer = trace.get_tracer("millrace_jobs", __version__, tracer_provider)

    @client.use
    def publish(job: NewJob, call_next: Enqueue) -> str | None:
        with _publishing(tracer, job) as span:
            return _published(span, call_next(job))

    return client


def trace_async_client(client: AsyncClient, tracer_provider: TracerProvider | None = None) -> AsyncClient:
    """Do the same for an `AsyncClient`."""
    tracer = trace.get_tracer("millrace_jobs", __version__, tracer_provider)

    @client.use
    async def publish(job: NewJob, call_next: AsyncEnqueue) -> str | None:
        with _publishing(tracer, job) as span:
            return _published(span, await call_next(job))

    return client


def trace_worker(worker: Worker, tracer_provider: TracerProvider | None = None, *, parent: Parent = "auto") -> Worker:
    """Make a worker begin a span ``process <queue>`` for each attempt.

    ``parent`` is how the span refers to the one that enqueued the job. A ``"child"`` is in the same
    trace. With ``"link"``, the span begins a trace of its own, and has a link. ``"auto"`` makes a
    child of the first attempt of a job that was not scheduled, and links all others: they may come
    days later.

    Add it before other middleware, so that the span has theirs in it.
    """
    if parent not in ("auto", "child", "link"):
        raise ValueError(f'parent must be "auto", "child" or "link", not {parent!r:.100}')
    tracer = trace.get_tracer("millrace_jobs", __version__, tracer_provider)

    @worker.use
    def process(job: Job, call_next: Callable[[], object]) -> object:
        child = parent == "child" or (parent == "auto" and job.retry_count == 0 and "created_at" not in job._members)
        with _processing(tracer, job, child):
            return call_next()

    return worker


@contextmanager
def _publishing(tracer: trace.Tracer, job: NewJob) -> Iterator[Span]:
    queue = job.options.get("queue", DEFAULT_QUEUE)
    attributes = _attributes("publish", "send", queue, job.class_)
    own = job.options.get("traceparent")
    parent = _format.extract({"traceparent": own}) if own else None
    with tracer.start_as_current_span(f"publish {queue}", parent, SpanKind.PRODUCER, attributes) as span:
        carrier: dict[str, str] = {}
        _format.inject(carrier)
        if "traceparent" in carrier:
            job.options["traceparent"] = carrier["traceparent"]
        yield span


def _published(span: Span, jid: str | None) -> str | None:
    if jid:
        span.set_attribute("messaging.message.id", jid)
    return jid


@contextmanager
def _processing(tracer: trace.Tracer, job: Job, child: bool) -> Iterator[None]:
    attributes = _attributes("process", "process", job.queue, job.class_)
    attributes |= {"messaging.message.id": job.jid, "millrace.attempt": job.attempt}
    sender = _format.extract({"traceparent": job.traceparent or ""}, context.Context())
    enqueued = trace.get_current_span(sender).get_span_context()
    links = [Link(enqueued)] if enqueued.is_valid and not child else []
    parent = sender if child else context.Context()
    name = f"process {job.queue}"
    # What decides about a job is no error of the program.
    with tracer.start_as_current_span(
        name, parent, SpanKind.CONSUMER, attributes, links, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except (Discard, HandBack):
            raise
        except BaseException as e:
            span.record_exception(e)
            span.set_attribute("error.type", type(e).__qualname__)
            span.set_status(Status(StatusCode.ERROR, f"{type(e).__name__}: {e}"))
            raise


def _attributes(operation: str, kind: str, queue: str, class_: str) -> dict[str, Any]:
    return {
        "messaging.system": "rabbitmq",
        "messaging.operation.name": operation,
        "messaging.operation.type": kind,
        "messaging.destination.name": queue,
        "millrace.class": class_,
    }
