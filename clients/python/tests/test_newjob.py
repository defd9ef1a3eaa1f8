import json
import os
import time
import unittest
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from millrace_jobs import BulkError, Client, Closed, Invalid, NewJob, Options, Unique, Unreachable

from . import vectors

NOWHERE = "amqp://guest:guest@127.0.0.1:1/"


class Vectors(unittest.TestCase):
    def test_publish(self) -> None:
        for case in vectors.cases("publish"):
            with self.subTest(case["name"]):
                self.check(case)

    def test_unique(self) -> None:
        for case in vectors.cases("unique"):
            if case["name"] == "a member that unique does not have":
                continue  # a TypeError of Unique itself
            with self.subTest(case["name"]):
                unique: Any = case["options"]["unique"]
                if isinstance(unique, dict):
                    names = {"while": "while_", "for": "for_"}
                    members: dict[str, Any] = {str(names.get(name, name)): value for name, value in unique.items()}
                    case["options"]["unique"] = Unique(**members)
                self.check(case)

    def check(self, case: dict[str, Any]) -> None:
        options = {"jid": case["jid"], **case["options"]}
        job = NewJob(case["class"], case["args"], case.get("at"), **cast(Options, options))
        if "error" in case:
            with self.assertRaises(Invalid):
                job.prepare(case["now"])
            return
        jid, message = job.prepare(case["now"])
        wanted = case["properties"]
        self.assertEqual(options["jid"], jid)
        self.assertEqual((case["exchange"], case["routing_key"]), (message.exchange, message.key))
        self.assertEqual(case["body"], json.loads(message.body))
        self.assertEqual(wanted.get("type"), message.type)
        self.assertEqual(wanted.get("message_id"), message.message_id)
        self.assertEqual(wanted["priority"], message.priority)
        self.assertEqual(wanted["headers"], message.headers)
        self.assertEqual(wanted["mandatory"], message.mandatory)


class Checks(unittest.TestCase):
    def test_invalid(self) -> None:
        nested: list[object] = []
        for _ in range(100_000):
            nested = [nested]
        for name, job in {
            "no JSON": NewJob("A", [object()]),
            "not finite": NewJob("A", [float("nan")]),
            "too deep": NewJob("A", [nested]),
            "too large": NewJob("A", ["x" * (17 << 20)]),
            "an option that is none": NewJob("A", [], retries=3),  # type: ignore[call-arg]
            "a text as tags": NewJob("A", [], tags="abc"),
            "timeout": NewJob("A", [], timeout=-1),
            "a flag as priority": NewJob("A", [], priority=True),
        }.items():
            with self.subTest(name), self.assertRaises(Invalid):
                job.prepare(1.0)

    def test_datetime(self) -> None:
        _, message = NewJob("A", [], datetime(2020, 1, 1, tzinfo=UTC)).prepare(1.0)
        self.assertEqual(1577836800.0, json.loads(message.body)["scheduled_at"])

    def test_a_datetime_without_a_zone_is_local_time(self) -> None:
        zone = os.environ.get("TZ")
        self.addCleanup(time.tzset)
        self.addCleanup(lambda: os.environ.update(TZ=zone) if zone else os.environ.pop("TZ"))
        for name in ("Europe/Berlin", "America/New_York", "UTC"):
            os.environ["TZ"] = name
            time.tzset()
            due = datetime.now() + timedelta(minutes=5)
            _, message = NewJob("A", [], due, expires_at=due).prepare(1.0)
            record = json.loads(message.body)
            self.assertAlmostEqual(time.time() + 300, record["scheduled_at"], delta=30)
            self.assertAlmostEqual(time.time() + 300, record["job"]["expires_at"], delta=30)

    def test_unreachable_says_why(self) -> None:
        began = time.monotonic()
        with Client(NOWHERE, timeout=0.5) as client:
            with self.assertRaisesRegex(Unreachable, r"refused.*\(jid j1\)") as unreached:
                client.enqueue("A", jid="j1")
            self.assertEqual("j1", unreached.exception.jid)
            with self.assertRaises(BulkError) as failed:
                client.enqueue_bulk([NewJob("A"), NewJob("")])
        self.assertEqual([None, None], failed.exception.jids)
        self.assertIsInstance(failed.exception.errors[0], Unreachable)
        self.assertIsInstance(failed.exception.errors[1], Invalid)
        self.assertLess(time.monotonic() - began, 10)
        with self.assertRaises(Closed):
            client.enqueue("A")

    def test_fail_fast_does_not_wait_for_a_broker(self) -> None:
        began = time.monotonic()
        with Client(NOWHERE, timeout=60, fail_fast=True) as client:
            for _ in range(2):
                with self.assertRaisesRegex(Unreachable, "refused"):
                    client.enqueue("A")
            with self.assertRaises(BulkError) as failed:
                client.enqueue_bulk([NewJob("A")] * 100)
        self.assertEqual([Unreachable] * 100, [type(e) for e in failed.exception.errors.values()])
        self.assertLess(time.monotonic() - began, 30)

    def test_url(self) -> None:
        with self.assertRaises(ValueError):
            Client("http://localhost")
