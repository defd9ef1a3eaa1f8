"""Works a queue QUEUE, and writes the spans of its jobs to a file SPANS.

Run by internal/readmetest, with a broker at MILLRACE_AMQP_URL.
"""

import json
import os

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from millrace_jobs import Job, Worker
from millrace_jobs.otel import trace_worker


def line(span: ReadableSpan) -> str:
    assert span.context
    members = {
        "name": span.name,
        "kind": span.kind.name,
        "trace": f"{span.context.trace_id:032x}",
        "span": f"{span.context.span_id:016x}",
        "parent": f"{span.parent.span_id:016x}" if span.parent else "",
        "links": [f"{link.context.trace_id:032x}-{link.context.span_id:016x}" for link in span.links],
        "attributes": dict(span.attributes or {}),
        "failed": span.status.status_code.name == "ERROR",
    }
    return json.dumps(members) + "\n"


def order(job: Job) -> None:
    if job.args == ["fails"] and job.attempt == 1:
        raise LookupError("no such order")


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=open(os.environ["SPANS"], "a"), formatter=line)))  # noqa: SIM115
worker = trace_worker(Worker(os.environ["MILLRACE_AMQP_URL"], queues=[os.environ["QUEUE"]]), provider)
worker.handle("Order", order, retry_in=lambda *_: 0.2)
worker.run(signals=True)
