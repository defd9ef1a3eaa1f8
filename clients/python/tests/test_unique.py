"""Unique jobs: how they are enqueued, and which of them stays."""

import asyncio
import threading
import time
import unittest
from typing import Any, cast

from millrace_jobs import (
    App,
    AsyncClient,
    Client,
    Decision,
    Invalid,
    Job,
    Kill,
    NewJob,
    Options,
    PeriodicJob,
    Refused,
    Undecided,
    Unique,
    Unreachable,
    Worker,
)
from millrace_jobs.testing import AsyncFake, AsyncInline, Fake, Inline

from .broker import Broker

broker: Broker
NOWHERE = "amqp://guest:guest@127.0.0.1:1/"
OTHER = '{"status": 200, "jid": "mine", "duplicate_of": "other"}'


def setUpModule() -> None:
    global broker
    broker = Broker()


def tearDownModule() -> None:
    broker.stop()


class Deciding(unittest.TestCase):
    def test_the_leader_says_which_job_stays(self) -> None:
        replies = ('{"status": 201, "jid": "mine"}', OTHER, '{"status": 200, "jid": "other"}', '{"status": 503, "reason": "it is full"}')
        with broker.leading(*replies, queue="jobs.gated") as jobs, Client(broker.url) as client:
            self.assertEqual(Decision("mine"), client.enqueue_unique("A", [1], jid="mine"))
            key = Unique(key="k", for_=60)
            for _ in range(2):
                self.assertEqual(Decision("other", True), client.enqueue_unique("A", at=1800000000, jid="mine", unique=key))
            with self.assertRaisesRegex(Refused, "it is full"):
                client.enqueue_unique("A")
        self.assertEqual(
            [{"unique": {}}, *[{"unique": {"key": "k", "for": 60}, "at": 1800000000.0}] * 2], [job["gate"] for job in jobs[:3]]
        )

    def test_async_code_and_tasks(self) -> None:
        app = App(broker.url)

        @app.task(unique=Unique(by=["args.0"]))
        def sync(user: int) -> None:
            pass

        async def enqueue() -> list[Decision]:
            async with AsyncClient(broker.url) as client:
                return [await client.enqueue_unique("A"), await sync.enqueue_unique_async(2)]

        with broker.leading(OTHER, OTHER, OTHER, queue="jobs.gated") as jobs:
            self.assertEqual(Decision("other", True), sync.enqueue_unique(1))
            self.assertEqual([Decision("other", True)] * 2, asyncio.run(enqueue()))
        self.assertEqual([{"by": ["args.0"]}, {}, {"by": ["args.0"]}], [job["gate"]["unique"] for job in jobs])
        app.client.close()
        asyncio.run(app.async_client.close())

    def test_no_decision_comes(self) -> None:
        with broker.leading("", "", queue="jobs.gated") as jobs, Client(broker.url) as client:
            with self.assertRaisesRegex(Undecided, "the job is published.*no leader has answered") as raised:
                client.enqueue_unique("A", jid="late", deadline=2)
            self.assertEqual("late", raised.exception.jid)

            def close() -> None:
                while len(jobs) < 2:
                    time.sleep(0.01)
                time.sleep(0.1)  # for the confirm
                client.close()

            closer = threading.Thread(target=close)
            closer.start()
            with self.assertRaisesRegex(Undecided, "closed"):
                client.enqueue_unique("A")
            closer.join()

    def test_a_job_that_is_not_published_is_not_undecided(self) -> None:
        with Client(NOWHERE) as client:
            with self.assertRaises(Unreachable):
                client.enqueue_unique("A", deadline=0.2)
            with self.assertRaises(Invalid):
                client.enqueue_unique("A", unique=Unique(max=3))
        with Client(broker.url) as client, self.assertRaises(Refused):
            client.enqueue_unique("A", deadline=1)  # there is no jobs.gated

    def test_through_middleware(self) -> None:
        with broker.leading(OTHER, queue="jobs.gated") as jobs, Client(broker.url) as client:

            @client.use
            def middleware(job: NewJob, call: Any) -> str | None:
                job.options["tags"] = ["seen"]
                return cast("str | None", None if job.class_ == "Swallowed" else call(job))

            self.assertEqual(Decision(""), client.enqueue_unique("Swallowed"))
            self.assertEqual("other", client.enqueue_unique("A").jid)
        self.assertEqual(["seen"], jobs[0]["tags"])


class Refusing(unittest.TestCase):
    def test_what_cannot_be_unique(self) -> None:
        for unique in (Unique(while_=cast(Any, "running")), cast(Any, {"key": "k"}), Unique(key=cast(Any, 7))):
            with self.assertRaises(Invalid):
                NewJob("A", unique=unique).prepare(1.0)
        with self.assertRaises(Invalid):
            PeriodicJob(name="a", class_="A", every=60, options={"unique": True}).definition()
        with Client(NOWHERE) as client, self.assertRaises(Invalid):
            client.publish_in(60, "orders", unique=True)  # type: ignore[call-arg]


class Fakes(unittest.TestCase):
    def setUp(self) -> None:
        self.during: list[Decision] = []
        self.worker = Worker(NOWHERE)
        self.worker.handle("A", self.run_again)
        self.worker.handle("Kill", self.kill)

    def kill(self, job: Job) -> None:
        raise Kill("no")

    def run_again(self, job: Job) -> None:
        if job.attempt == 1 and len(self.during) < 2:
            self.during.append(Decision(""))
            self.during[-1] = self.client.enqueue_unique("A", [1], **self.options)
            raise ValueError("fails")

    def use(self, client: Fake | Inline, **options: Any) -> None:
        self.client, self.options = client, cast(Options, options)

    def test_a_duplicate_is_not_enqueued(self) -> None:
        self.use(fake := Fake(self.worker))
        first = fake.enqueue_unique("A", [1])
        self.assertEqual(Decision(first.jid, True), fake.enqueue_unique("A", [1], unique=True))
        self.assertFalse(fake.enqueue_unique("A", [2]).duplicate)
        self.assertNotEqual(first.jid, fake.enqueue("A", [1], unique=True))
        self.assertEqual(2, len(fake.jobs()))
        fake.drain(retry=True)
        self.assertEqual([Decision(first.jid, True)] * 2, self.during)
        self.assertFalse(fake.enqueue_unique("A", [1]).duplicate)
        fake.clear()
        self.assertFalse(fake.enqueue_unique("A", [1]).duplicate)

    def test_while_it_waits(self) -> None:
        for client in (Fake(self.worker), Inline(self.worker)):
            self.during = [Decision("")]
            self.use(client, unique=Unique(while_="waiting"))
            with self.assertRaises((ValueError, ExceptionGroup)):
                client.enqueue("A", [1], **self.options)
                if isinstance(client, Fake):
                    client.drain()
            self.assertFalse(self.during[1].duplicate, client)

    def test_for_a_time(self) -> None:
        self.use(fake := Fake(self.worker))
        fake.enqueue("Kill", unique=Unique(key="hour", for_=3600))
        fake.enqueue("Kill", unique=Unique(key="dead"))
        with self.assertRaises(ExceptionGroup):
            fake.drain()
        self.assertTrue(fake.enqueue_unique("A", unique=Unique(key="hour")).duplicate)
        self.assertFalse(fake.enqueue_unique("A", unique=Unique(key="dead")).duplicate)

    def test_a_later_job_replaces_one_that_waits(self) -> None:
        fake = Fake()
        customer = Unique(by=["args.0.customer"], on="replace")
        fake.enqueue("A", [{"customer": 1, "n": 1}], unique=customer)
        self.assertFalse(fake.enqueue_unique("A", [{"customer": 1, "n": 2}], at=2000000000, unique=customer).duplicate)
        self.assertEqual([[{"customer": 1, "n": 2}]], [job.args for job in fake.jobs()])
        self.assertEqual(2000000000, fake.jobs()[0].at)

    def test_async_code(self) -> None:
        async def enqueue() -> None:
            fake, inline = AsyncFake(), AsyncInline(self.worker)
            self.assertFalse((await fake.enqueue_unique("A")).duplicate)
            self.assertTrue((await fake.enqueue_unique("A")).duplicate)
            self.during = [Decision("")] * 2
            self.assertFalse((await inline.enqueue_unique("A")).duplicate)
            self.assertFalse((await inline.enqueue_unique("A")).duplicate)

        asyncio.run(enqueue())
