"""Spans of OpenTelemetry, with its SDK."""

import asyncio
import importlib.util
import unittest
from typing import Any

from millrace_jobs import Discard, HandBack, Invalid, Job, Worker
from millrace_jobs.testing import AsyncFake, Fake


@unittest.skipUnless(importlib.util.find_spec("opentelemetry"), "OpenTelemetry is in .cache/python only")
class Traces(unittest.TestCase):
    def setUp(self) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self.spans = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.spans))

    def worker(self, **options: Any) -> Worker:
        from millrace_jobs.otel import trace_worker

        worker = trace_worker(Worker(), self.provider, **options)
        worker.handle("Greet", self.greet)
        return worker

    def greet(self, job: Job) -> None:
        from opentelemetry import trace

        self.seen = trace.get_current_span().get_span_context().span_id
        if job.args == ["fails"] and job.retry_count == 0:
            raise LookupError("no such name")
        if job.args == ["discarded"]:
            raise Discard("not wanted")
        if job.args == ["handed back"]:
            raise HandBack

    def client(self, **options: Any) -> Fake:
        from millrace_jobs.otel import trace_client

        client = Fake(self.worker(**options))
        trace_client(client, self.provider)
        return client

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans.get_finished_spans() if span.name == name]

    def test_a_job_and_its_attempt_are_one_trace(self) -> None:
        from opentelemetry.trace import SpanKind

        client = self.client()
        jid = client.enqueue("Greet", ["Ann"], queue="mail")
        client.drain()
        (sent,), (ran,) = self.named("publish mail"), self.named("process mail")
        self.assertEqual((SpanKind.PRODUCER, SpanKind.CONSUMER), (sent.kind, ran.kind))
        self.assertEqual(sent.context.trace_id, ran.context.trace_id)
        self.assertEqual(sent.context.span_id, ran.parent.span_id)
        self.assertEqual(self.seen, ran.context.span_id, "the handler runs in the span")
        shared = {
            "messaging.system": "rabbitmq",
            "messaging.destination.name": "mail",
            "messaging.message.id": jid,
            "millrace.class": "Greet",
        }
        self.assertEqual(shared | {"messaging.operation.name": "publish", "messaging.operation.type": "send"}, dict(sent.attributes))
        expected = {"messaging.operation.name": "process", "messaging.operation.type": "process", "millrace.attempt": 1}
        self.assertEqual(shared | expected, dict(ran.attributes))
        self.assertTrue(ran.status.is_ok or ran.status.is_unset)

    def test_a_trace_context_of_your_own_is_the_parent(self) -> None:
        self.client().enqueue("Greet", traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        (sent,) = self.named("publish default")
        self.assertEqual((0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331), (sent.context.trace_id, sent.parent.span_id))

    def test_scheduled_jobs_and_retries_are_linked(self) -> None:
        client = self.client()
        client.enqueue_in(60, "Greet", ["fails"])
        client.drain(retry=True)
        (sent,), attempts = self.named("publish default"), self.named("process default")
        self.assertEqual([1, 2], [span.attributes["millrace.attempt"] for span in attempts])
        for span in attempts:
            self.assertIsNone(span.parent)
            self.assertNotEqual(sent.context.trace_id, span.context.trace_id)
            self.assertEqual([sent.context.span_id], [link.context.span_id for link in span.links])
        failed = attempts[0]
        self.assertEqual(("LookupError", False), (failed.attributes["error.type"], failed.status.is_ok or failed.status.is_unset))
        self.assertEqual("exception", failed.events[0].name)

    def test_the_parent_can_be_chosen(self) -> None:
        client = self.client(parent="child")
        client.enqueue_in(60, "Greet")
        client.drain()
        self.assertEqual(self.named("publish default")[0].context.span_id, self.named("process default")[0].parent.span_id)
        self.spans.clear()
        client = self.client(parent="link")
        client.enqueue("Greet")
        client.drain()
        self.assertIsNone(self.named("process default")[0].parent)
        with self.assertRaises(ValueError):
            self.worker(parent="other")

    def test_a_decision_about_a_job_is_no_error(self) -> None:
        client = self.client()
        client.enqueue("Greet", ["discarded"])
        client.drain()
        (ran,) = self.named("process default")
        self.assertTrue(ran.status.is_unset)
        self.assertEqual(0, len(ran.events))

    def test_a_job_that_is_not_enqueued(self) -> None:
        client = self.client()
        with self.assertRaises(Invalid):
            client.enqueue("Greet", [object()])
        (sent,) = self.named("publish default")
        self.assertFalse(sent.status.is_ok or sent.status.is_unset)

    def test_a_job_without_trace_context(self) -> None:
        client = Fake(self.worker())
        client.enqueue("Greet")
        client.enqueue("Greet", traceparent="nonsense")
        client.drain()
        for span in self.named("process default"):
            self.assertIsNone(span.parent)
            self.assertEqual(0, len(span.links))

    def test_async_client(self) -> None:
        from millrace_jobs.otel import trace_async_client

        client = AsyncFake(self.worker())
        trace_async_client(client, self.provider)
        asyncio.run(client.enqueue("Greet"))
        asyncio.run(client.drain())
        (sent,), (ran,) = self.named("publish default"), self.named("process default")
        self.assertEqual(sent.context.span_id, ran.parent.span_id)
