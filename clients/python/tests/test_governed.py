"""Governed queues: how they are defined, and what a producer hears of a full one."""

import asyncio
import unittest
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from millrace_jobs import Client, Defined, GovernedQueue, Invalid, Limit, PeriodicJob, Refused
from millrace_jobs.testing import AsyncFake, AsyncInline, Fake, Inline

from . import vectors
from .broker import Broker

broker: Broker
IMPORTS = GovernedQueue(name="imports", key="args.0.customer_id", max_waiting=100_000, weights={"customer-42": 3}, ahead=20, paused=True)


def setUpModule() -> None:
    global broker
    broker = Broker()


def tearDownModule() -> None:
    broker.stop()


class Defining(unittest.TestCase):
    def test_definitions_are_checked(self) -> None:
        for case in vectors.cases("queues"):
            with self.subTest(case["name"]):
                queue = GovernedQueue(**case["queue"])
                if "error" in case:
                    with self.assertRaises(Invalid):
                        queue.definition()
                else:
                    self.assertEqual(case["queue"], queue.definition())

    def test_errors_say_what_is_wrong(self) -> None:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"max_waiting": 0}, "'imports': max_waiting must be a whole number from 1 to 1000000000"),
            ({"ahead": 1.5}, "ahead must be a whole number"),
            ({"weights": {"a": True}}, "the weight of key 'a' must be a whole number from 1 to 1000"),
            ({"key": ".0"}, "key must be a path into the job, such as args.0.customer_id"),
        ]
        for members, text in wrong:
            with self.subTest(members), self.assertRaisesRegex(Invalid, text):
                GovernedQueue(name="imports", **members).definition()

    def defined(self, queues: Sequence[GovernedQueue], **others: Any) -> Any:
        with broker.leading('{"status": 200, "defined": {"made": ["imports"]}}') as commands, Client(broker.url) as client:
            self.assertEqual(Defined(["imports"]), client.define("billing", queues=queues, **others))
        return commands[0]["definitions"]

    def test_queues_are_defined_beside_limits(self) -> None:
        imports = {
            "name": "imports", "key": "args.0.customer_id", "max_waiting": 100_000, "weights": {"customer-42": 3}, "ahead": 20,
            "paused": True,
        }  # fmt: skip
        defined = self.defined([IMPORTS, GovernedQueue(name="mails")])
        self.assertEqual({"source": "billing", "queues": [imports, {"name": "mails"}]}, defined)
        self.assertEqual({"source": "billing", "queues": [], "limits": []}, self.defined([], limits=[]))

    def test_the_fakes_keep_queues(self) -> None:
        for client in (Fake(), Inline()):
            poll, limit, mails = PeriodicJob(name="a", class_="A", every=90), Limit(name="a", concurrency=9), GovernedQueue(name="mails")
            self.assertEqual(Defined(["imports", "mails", "a", "a"]), client.define("x", [poll], limits=[limit], queues=[IMPORTS, mails]))
            changed = replace(mails, ahead=2)
            self.assertEqual(Defined([], ["mails"], ["imports"]), client.define("x", queues=[changed]))
            self.assertEqual(([changed], [limit], [poll]), (client.queues("x"), client.limits("x"), client.periodic("x")))
            with self.assertRaises(Invalid):
                client.define("x", queues=[GovernedQueue(name="")])
            self.assertEqual([changed], client.queues("x"))

        async def define() -> None:
            for client in (AsyncFake(), AsyncInline()):
                self.assertEqual(Defined(["imports"]), await client.define("x", queues=[IMPORTS]))
                self.assertEqual([IMPORTS], client.queues("x"))

        asyncio.run(define())


class Full(unittest.TestCase):
    def test_a_job_for_a_full_queue_is_refused(self) -> None:
        broker.topology()
        with broker.channel() as channel:
            channel.queue_declare("jobs.full", durable=True, arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
            channel.queue_bind("jobs.full", "jobs.direct", "imports")
            with Client(broker.url) as client:
                with self.assertRaisesRegex(Refused, "the queue is full or unavailable, try again later"):
                    client.enqueue("Import", queue="imports")
                channel.queue_unbind("jobs.full", "jobs.direct", "imports")
                channel.queue_bind("jobs.gated", "jobs.direct", "imports")
                self.assertEqual("taken", client.enqueue("Import", queue="imports", jid="taken"))
