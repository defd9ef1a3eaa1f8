import logging
import unittest
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from millrace_jobs import Defined, Discard, HandBack, Invalid, Job, Kill, NewJob, PeriodicJob, RetryIn, Timeout, UnknownClass, Worker
from millrace_jobs.testing import Fake, Inline, perform

seen: list[object] = []
worker = Worker("amqp://nowhere.invalid")


@worker.handle("Note")
def note(job: Job) -> None:
    seen.append(job.args[0])


class Helpers(unittest.TestCase):
    def setUp(self) -> None:
        seen.clear()

    def test_inline(self) -> None:
        client = Inline(worker)
        jid = client.enqueue("Note", [(1, 2)], queue="low")
        self.assertEqual(32, len(jid))
        self.assertEqual([[1, 2]], seen, "args went through JSON")
        with self.assertLogs("millrace", "WARNING"), self.assertRaises(UnknownClass):
            client.enqueue("Unhandled")
        with self.assertRaises(Invalid):
            client.enqueue("Note", [object()])

    def test_periodic_jobs_are_kept(self) -> None:
        for client in (Fake(), Inline()):
            first, second = PeriodicJob(name="a", class_="A", every=60), PeriodicJob(name="b", class_="B", cron="@daily")
            self.assertEqual(Defined(made=["a", "b"]), client.define("app", [first, second]))
            self.assertEqual([first, second], client.periodic("app"))
            changed = replace(first, paused=True)
            self.assertEqual(Defined(changed=["a"], forgotten=["b"]), client.define("app", [changed]))
            with self.assertRaises(Invalid):
                client.define("app", [PeriodicJob(name="c", class_="", every=60)])
            self.assertEqual([changed], client.periodic("app"))
            self.assertEqual([], client.periodic("other"))

    def test_fake(self) -> None:
        client = Fake(worker)
        client.enqueue("Note", ["now"])
        client.enqueue_at(12.5, "Note", ["later"])
        client.enqueue_bulk([NewJob("Note", ["many"])])
        self.assertEqual([None, 12.5, None], [j.at for j in client.jobs()])
        self.assertEqual("Note", client.jobs()[0].class_)
        self.assertEqual(["now"], client.jobs()[0].args)
        client.enqueue("Other", [1])
        self.assertEqual([["now"], ["later"], ["many"]], [j.args for j in client.jobs("Note")])
        self.assertEqual([[1]], [j.args for j in client.jobs("Other")])
        self.assertEqual([], client.jobs("Nothing"))
        self.assertEqual(4, len(client.jobs()))
        with self.assertLogs("millrace", "WARNING"), self.assertRaises(UnknownClass):
            self.assertEqual(4, client.drain())
        self.assertEqual(["now", "later", "many"], seen)
        client.enqueue("Note", ["x"])
        client.clear()
        self.assertEqual(0, client.drain())

    def test_why_a_handler_should_end(self) -> None:
        ends: list[object] = []
        waiting = Worker("amqp://nowhere.invalid")

        @waiting.handle("Wait")
        def wait(job: Job) -> None:
            ends.append(job.end)
            job.wait(10)
            ends.append(job.end)

        perform(waiting, "Wait", timeout=0.05)
        perform(waiting, "Wait", cancel_after=0.05)
        perform(waiting, "Wait", stop_after=0.05)
        self.assertEqual([None, "timeout", None, "cancelled", None, None], ends, "a stop alone ends nothing yet")

    def test_the_trace_context_can_be_read(self) -> None:
        traces: list[object] = []
        reader = Worker("amqp://nowhere.invalid")
        reader.handle("Read", lambda job: traces.append(job.traceparent))
        client = Inline(reader)
        client.enqueue("Read", traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        client.enqueue("Read")
        client.enqueue("Read", traceparent="two\nlines")
        self.assertEqual(["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None, None], traces)

    def test_fields_can_be_read(self) -> None:
        fields: list[Any] = []
        reader = Worker("amqp://nowhere.invalid")

        @reader.use
        def tenant(job: Job, call_next: Callable[[], object]) -> object:
            fields.append(job.fields["tenant"])
            return call_next()

        @reader.handle("Read")
        def read(job: Job) -> None:
            fields.append(dict(job.fields))

        Inline(reader).enqueue("Read", fields={"tenant": "ann", "numbers": [1]}, tags=["x"], retry=1)
        self.assertEqual(["ann", {"tenant": "ann", "numbers": [1]}], fields)

    def test_middleware(self) -> None:
        client = Fake()

        @client.use
        def only_small(job: NewJob, next):  # type: ignore[no-untyped-def]
            job.options["queue"] = "changed"
            return next(job) if len(job.args) < 2 else None

        self.assertEqual("", client.enqueue("Note", [1, 2]))
        client.enqueue("Note", [1])
        self.assertEqual(["changed"], [j.job.queue for j in client.jobs()])

    def test_what_middleware_returns_does_not_change_the_jid(self) -> None:
        client = Fake()

        @client.use
        def note(job: NewJob, call_next: Callable[[NewJob], str | None]) -> None:
            call_next(job)

        jids = [client.enqueue("Note"), *client.enqueue_bulk([NewJob("Note"), NewJob("Note")])]
        self.assertEqual([j.job.jid for j in client.jobs()], jids)


class Outcomes(unittest.TestCase):
    """Outcomes of jobs can be tested without a broker."""

    def setUp(self) -> None:
        self.worker = Worker("amqp://nowhere.invalid", log=logging.getLogger("millrace.tests.silent"))
        self.worker.log.setLevel(logging.CRITICAL)
        self.calls: list[Any] = []
        self.worker.on("failure", lambda job, error: self.calls.append(("failure", job.attempt, type(error).__name__)))
        self.worker.on("death", lambda job, error: self.calls.append(("death", job.attempt, type(error).__name__)))

        @self.worker.handle("Fail", retry_in=lambda count, _error, _job: 60 * (count + 1))
        def fail(job: Job) -> None:
            if job.attempt <= job.args[0]:
                raise LookupError(f"attempt {job.attempt}")
            self.calls.append("done")

        @self.worker.handle("Raise")
        def raises(job: Job) -> None:
            raise {"discard": Discard("no"), "kill": Kill("no"), "value": ValueError("no"), "key": KeyError("no")}[job.args[0]]

        @self.worker.handle("Later")
        def later(job: Job) -> None:
            raise RetryIn(timedelta(1))  # type: ignore[arg-type]

        @self.worker.handle("Wait")
        def wait(job: Job) -> None:
            if job.wait(60):
                raise HandBack

        @self.worker.handle("WaitAsync")
        async def wait_async(job: Job) -> None:
            if await job.wait_async(60):
                raise HandBack

    def test_discarding_is_a_good_end(self) -> None:
        self.assertEqual(32, len(Inline(self.worker).enqueue("Raise", ["discard"])))
        client = Fake(self.worker)
        client.enqueue("Raise", ["discard"])
        client.enqueue("Fail", [0])
        self.assertEqual(2, client.drain())
        self.assertEqual(["done"], self.calls)
        self.assertEqual(["discarded", "success"], [r.outcome for r in client.results])

    def test_a_retry_in_of_no_number_is_a_failure(self) -> None:
        result = perform(self.worker, "Later")
        self.assertEqual(("failed", TypeError), (result.outcome, type(result.error)))

    def test_no_error_is_lost(self) -> None:
        client = Fake(self.worker)
        client.enqueue_bulk([NewJob("Raise", [name]) for name in ("value", "key", "kill")] + [NewJob("Fail", [0])])
        with self.assertRaises(ExceptionGroup) as failed:
            client.drain()
        self.assertEqual([ValueError, KeyError, Kill], [type(e) for e in failed.exception.exceptions])
        self.assertIn("done", self.calls)
        self.assertEqual([], client.jobs())
        client.enqueue("Raise", ["value"])
        with self.assertRaises(ValueError):
            client.drain()

    def test_retries(self) -> None:
        client = Fake(self.worker)
        client.enqueue("Fail", [2], fields={"tenant": "ann"})
        client.enqueue("Fail", [0])
        self.assertEqual(4, client.drain(retry=True))
        self.assertEqual([1, 1, 2, 3], [r.job.attempt for r in client.results])
        self.assertEqual([60, None, 120, None], [r.retry_in for r in client.results])
        self.assertEqual({"tenant": "ann"}, client.results[-1].job.fields)
        self.assertEqual(1, len({r.job.jid for r in client.results if r.job.args == [2]}))
        self.assertEqual([("failure", 1, "LookupError"), "done", ("failure", 2, "LookupError"), "done"], self.calls)

    def test_death(self) -> None:
        client = Fake(self.worker)
        client.enqueue("Fail", [9], retry=1)
        client.enqueue("Fail", [9], retry=0, dead=False)
        with self.assertRaises(ExceptionGroup):
            client.drain(retry=True)
        self.assertEqual(["failed", "discarded", "dead"], [r.outcome for r in client.results])
        self.assertEqual(("exhausted", 2), (client.results[-1].reason, client.results[-1].job.attempt))
        self.assertEqual(("death", 2, "LookupError"), self.calls[-1])
        self.assertEqual(5, len(self.calls), "three failures, two deaths")
        with self.assertRaises(Kill):
            Inline(self.worker).enqueue("Raise", ["kill"])
        self.assertEqual(("death", 1, "Kill"), self.calls[-1])

    def test_attempts(self) -> None:
        result = perform(self.worker, "Fail", [9], attempt=4)
        self.assertEqual(("failed", 240, 4), (result.outcome, result.retry_in, result.job.attempt))
        self.assertIsInstance(result.error, LookupError)
        self.assertEqual("dead", perform(self.worker, "Fail", [99], attempt=4, retry=3).outcome)
        self.assertEqual("success", perform(self.worker, "Fail", [3], attempt=4).outcome)
        self.assertEqual("expired", perform(self.worker, "Fail", [3], expires_at=1.0).outcome)
        self.assertIsInstance(perform(self.worker, "Unhandled").error, UnknownClass)

    def test_timeout_and_cancellation(self) -> None:
        for class_ in ("Wait", "WaitAsync"):
            with self.subTest(class_):
                late = perform(self.worker, class_, timeout=0.05)
                self.assertEqual("failed", late.outcome)
                self.assertEqual("ran longer than 0.05 s", str(late.error))
                self.assertEqual("discarded", perform(self.worker, class_, cancel_after=0.05).outcome)
                self.assertEqual("discarded", perform(self.worker, class_, cancel_after=0).outcome)
                self.assertEqual("handed back", perform(self.worker, class_, stop_after=0.05).outcome)
        client = Fake(self.worker)
        client.enqueue("Wait", timeout=0.05)
        with self.assertRaises(Timeout):
            client.drain()
