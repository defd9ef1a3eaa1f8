"""Limited jobs: how they are enqueued, claimed, and reported as ended."""

import asyncio
import json
import time
import unittest
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pika

from millrace_jobs import App, Client, Defined, Invalid, Job, Limit, NewJob, Options, PeriodicJob, Worker
from millrace_jobs._claims import Claims
from millrace_jobs._lane import Arrival
from millrace_jobs._task import Task
from millrace_jobs.testing import AsyncFake, AsyncInline, Fake, Inline

from .broker import Broker, eventually, working

broker: Broker
SLOT = "g.7.5.3.abc"
STATE = '{"status": 200, "paused": [], "claim_below": 5}'
RUN = '{"status": 200, "claim": "run"}'
DROP = '{"status": 200, "claim": "drop"}'


def setUpModule() -> None:
    global broker
    broker = Broker()


def tearDownModule() -> None:
    broker.stop()


class Enqueuing(unittest.TestCase):
    def prepared(self, at: float | None = None, **options: Any) -> tuple[str, str, dict[str, Any]]:
        _, message = NewJob("Import", [1], at, **cast(Options, options)).prepare(1.0)
        return message.exchange, message.key, json.loads(message.body)

    def test_a_limited_job_waits_for_its_limits(self) -> None:
        cases: list[tuple[dict[str, Any], object]] = [
            ({"limited": True}, {}),
            ({"limit_key": "customer-42"}, {"key": "customer-42"}),
            ({"limited": True, "limit_key": ""}, {}),
            ({"limited": False, "limit_key": "é" * 100}, {"key": "é" * 100}),
        ]
        for options, gate in cases:
            with self.subTest(options):
                exchange, key, job = self.prepared(queue="imports", priority=3, **options)
                self.assertEqual(("", "jobs.gated", gate, "imports"), (exchange, key, job["gate"], job["queue"]))
                exchange, key, record = self.prepared(at=9.0, **options)
                self.assertEqual(("", "scheduled_jobs", gate), (exchange, key, record["job"]["gate"]))
        for options in ({}, {"limited": False}, {"limit_key": None}, {"limit_key": ""}):
            exchange, key, job = self.prepared(**options)
            self.assertEqual(("jobs.direct", "default", False), (exchange, key, "gate" in job))

    def test_a_task_may_set_them_for_all_its_jobs(self) -> None:
        app = App()
        app.client = client = Fake()

        @app.task(limited=True)
        def load(n: int) -> None: ...

        load.enqueue(1)
        load.options(limit_key="k").enqueue_in(60, 2)
        client.enqueue_bulk([load.options(limited=False).job(3)])
        self.assertEqual([{}, {"key": "k"}, None], [job.gate for job in client.jobs()])

    def test_keys_are_checked(self) -> None:
        wrong: list[dict[str, Any]] = [{"limit_key": key} for key in ("a" * 201, "é" * 101, "a\nb", "a\x85", "\ud800", 42)]
        for options in (*wrong, {"limited": "yes"}, {"fields": {"gate": {}}}):
            with self.subTest(options), self.assertRaises(Invalid):
                self.prepared(**options)


class Publishing(unittest.TestCase):
    def setUp(self) -> None:
        broker.topology("default")

    def test_a_limited_job_goes_to_jobs_gated(self) -> None:
        with Client(broker.url) as client:
            client.enqueue("A", jid="one", limit_key="k", priority=4)
            client.enqueue_bulk([NewJob("A", jid="two", limited=True)])
        for jid, gate, priority in (("one", {"key": "k"}, 4), ("two", {}, 0)):
            properties, body = broker.take("jobs.gated")
            self.assertEqual((jid, gate, priority), (properties.message_id, json.loads(body)["gate"], properties.priority))
            self.assertEqual(2, properties.delivery_mode)
        self.assertEqual(0, broker.count("queue.default"))


def task(redelivered: bool = False, **headers: Any) -> Task:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    arrival = Arrival(1, redelivered, pika.BasicProperties(headers=headers or None), b"", 0.0, 0)
    nothing: Any = None
    return Task(nothing, nothing, nothing, "default", arrival)


class Claiming(unittest.TestCase):
    def test_a_job_that_may_have_begun_is_claimed(self) -> None:
        nothing: Any = None
        claims = Claims(nothing, nothing)
        self.assertTrue(claims.needed(task(millrace_slot=SLOT, millrace_epoch=9)), "no answer of the leader yet")
        claims.below = 5
        for wanted, delivery in (
            (False, task(millrace_slot=SLOT, millrace_epoch=5, millrace_op="fired")),
            (True, task(millrace_slot=SLOT, millrace_epoch=4)),
            (True, task(millrace_slot=SLOT)),
            (True, task(True, millrace_slot=SLOT, millrace_epoch=5)),
            (True, task(millrace_slot=SLOT, millrace_epoch=5, millrace_op="refired")),
            (True, task(millrace_slot=SLOT, millrace_epoch=5, millrace_claim=1)),
            (False, task(True, millrace_epoch=4, millrace_claim=1)),
            (False, task(True)),
        ):
            with self.subTest(delivery.arrival):
                self.assertEqual(wanted, claims.needed(delivery))


LIMIT = Limit(
    name="imports", queues=["imports"], classes=["Import"], per=["key"], concurrency=3, rate={"jobs": 100, "seconds": 60, "burst": 1},
    overrides={"customer-42": {"concurrency": 10}}, paused=True,
)  # fmt: skip


class Defining(unittest.TestCase):
    def defined(self, *jobs: Sequence[PeriodicJob], limits: Sequence[Limit] | None = None) -> Any:
        with broker.leading('{"status": 200, "defined": {"made": ["imports"]}}') as commands, Client(broker.url) as client:
            self.assertEqual(Defined(["imports"]), client.define("billing", *jobs, limits=limits))
        return commands[0]["definitions"]

    def test_limits_are_defined_beside_periodic_jobs(self) -> None:
        imports = {
            "name": "imports", "queues": ["imports"], "classes": ["Import"], "per": ["key"], "concurrency": 3,
            "rate": {"jobs": 100, "seconds": 60, "burst": 1}, "overrides": {"customer-42": {"concurrency": 10}}, "paused": True,
        }  # fmt: skip
        wanted = {"source": "billing", "limits": [imports, {"name": "all", "concurrency": 9}]}
        self.assertEqual(wanted, self.defined(limits=[LIMIT, Limit(name="all", concurrency=9)]))
        job = {"name": "poll", "every": 90, "job": {"class": "Poll", "args": [], "queue": "default", "gate": {"key": "k"}}}
        poll = PeriodicJob(name="poll", class_="Poll", every=90, options={"limit_key": "k"})
        self.assertEqual({"source": "billing", "limits": [], "periodic_jobs": [job]}, self.defined([poll], limits=[]))

    def test_it_defines_something(self) -> None:
        clients: list[Client] = [Client(broker.url), Fake()]
        for client in clients:
            with client, self.assertRaisesRegex(Invalid, "defines nothing"):
                client.define("billing")

    def test_the_fakes_keep_limits(self) -> None:
        for client in (Fake(), Inline()):
            poll, other = PeriodicJob(name="poll", class_="Poll", every=90), Limit(name="all", concurrency=9)
            self.assertEqual(Defined(["imports", "all", "poll"]), client.define("billing", [poll], limits=[LIMIT, other]))
            changed = replace(other, concurrency=2)
            self.assertEqual(Defined([], ["all"], ["imports"]), client.define("billing", limits=[changed]))
            self.assertEqual(([changed], [poll]), (client.limits("billing"), client.periodic("billing")))

        async def define() -> None:
            for client in (AsyncFake(), AsyncInline()):
                self.assertEqual(Defined(["imports"]), await client.define("billing", limits=[LIMIT]))
                self.assertEqual([LIMIT], client.limits("billing"))

        asyncio.run(define())


class Working(unittest.TestCase):
    def setUp(self) -> None:
        broker.topology("default")
        self.seen: list[str] = []
        self.worker = self.made()

    def made(self, **options: Any) -> Worker:
        worker = Worker(broker.url, **options)
        worker.handle("Note", lambda job: self.seen.append(job.jid))

        @worker.handle("Fail")
        def fail(job: Job) -> None:
            self.seen.append(job.jid)
            raise LookupError(job.jid)

        return worker

    def deliver(self, class_: str, jid: str, headers: Mapping[str, Any] | None = None, body: str = "", redelivered: bool = False) -> None:
        """Deliver a job as the leader does, with a slot."""
        properties = pika.BasicProperties(message_id=jid, headers={"millrace-slot": SLOT, "millrace-epoch": 5, **(headers or {})})
        with broker.channel() as channel:
            channel.confirm_delivery()
            channel.basic_publish("", "queue.default", body or json.dumps({"class": class_, "jid": jid}), properties)
            if redelivered:
                channel.basic_get("queue.default")  # and the channel is closed

    def check_end(self, since: float) -> None:
        properties, body = broker.take("jobs.ends")
        record = json.loads(body)
        self.assertAlmostEqual(since, record.pop("at"), delta=60)
        self.assertEqual({"type": "ended", "slot": SLOT, "process": self.worker.identity}, record)
        self.assertEqual(2, properties.delivery_mode)

    def test_the_end_of_a_job_is_reported(self) -> None:
        with broker.leading(STATE) as commands, self.assertLogs("millrace"), working(self.worker):
            for class_, stream, body in (("Note", None, ""), ("Fail", "retries", ""), ("", None, "no job")):
                self.deliver(class_, class_, body=body)
                self.check_end(time.time())
                if stream:
                    self.assertEqual(1, broker.count(stream), "its record is there already")
            with Client(broker.url) as client:
                client.enqueue("Note", jid="unlimited")
            eventually(lambda: "unlimited" in self.seen, "it runs")
        self.assertEqual(["Note", "Fail", "unlimited"], self.seen)
        self.assertEqual((0, 0), (broker.count("jobs.ends"), broker.count("queue.default")))
        self.assertEqual(["state"], [command["command"] for command in commands])

    def test_the_end_is_reported_before_the_acknowledgement(self) -> None:
        for class_, body in (("Note", ""), ("Fail", ""), ("", "no job")):
            broker.topology("default")
            with broker.channel() as channel:
                channel.queue_delete("jobs.ends")
            self.worker = self.made(stop_timeout=0.1)
            with self.subTest(class_), self.assertLogs("millrace", "ERROR") as logs:
                with broker.leading(STATE), working(self.worker):
                    self.deliver(class_, class_, body=body)
                    eventually(lambda: any("does not take that a job has ended" in line for line in logs.output), "it is tried")
                self.assertEqual(1, broker.count("queue.default"), "not acknowledged")
                self.assertEqual(class_ == "Fail", broker.count("retries") == 1)

    def test_without_its_record_no_end_is_reported(self) -> None:
        with broker.channel() as channel:
            channel.queue_delete("retries")
        self.worker = self.made(stop_timeout=0.1)
        with broker.leading(STATE), self.assertLogs("millrace") as logs, working(self.worker):
            self.deliver("Fail", "j")
            eventually(lambda: any("does not take what became of a job" in line for line in logs.output), "it is tried")
        self.assertEqual((0, 1), (broker.count("jobs.ends"), broker.count("queue.default")))

    def test_a_claimed_job_runs_or_is_dropped(self) -> None:
        self.deliver("Note", "again", redelivered=True)
        replies = (STATE, DROP, RUN, "", '{"status": 503, "reason": "busy"}', '{"status": 500}', RUN)
        with broker.leading(*replies) as commands, working(self.worker):
            eventually(lambda: len(commands) == 2, "it is claimed")
            self.deliver("Note", "runs", {"millrace-claim": "1"})
            self.check_end(time.time())
            self.deliver("Note", "late", {"millrace-op": "refired"})
            self.check_end(time.time())
        self.assertEqual(["runs", "late"], self.seen)
        claim = {"command": "claim", "slot": SLOT, "process": self.worker.identity}
        self.assertEqual([claim] * 6, commands[1:])
        self.assertEqual((0, 0), (broker.count("jobs.ends"), broker.count("queue.default")), "the dropped job is acknowledged")
        measured: set[str] = set()
        while broker.count("job_metrics"):
            measured |= {metric["jid"] for metric in json.loads(broker.take("job_metrics")[1])}
        self.assertEqual({"runs", "late"}, measured)

    def test_a_job_without_an_answer_is_handed_back(self) -> None:
        with working(self.worker):
            eventually(lambda: self.worker._session is not None, "it is connected")
            self.deliver("Note", "waits")
            eventually(lambda: len(self.worker._running_tasks) == 1, "it is claimed")
            time.sleep(0.3)
        self.assertEqual([], self.seen)
        self.assertEqual((0, 1), (broker.count("jobs.ends"), broker.count("queue.default")))
