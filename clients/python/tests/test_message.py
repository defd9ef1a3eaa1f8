import json
import unittest
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from millrace_jobs import Client, Invalid
from millrace_jobs._message import new_message
from millrace_jobs.testing import AsyncFake, Fake

from . import vectors


class Vectors(unittest.TestCase):
    def test_messages(self) -> None:
        for case in vectors.cases("messages"):
            with self.subTest(case["name"]):
                self.check(case)

    def check(self, case: dict[str, Any]) -> None:
        given = case["message"]
        body = given["body"] if "body" in given else vectors.body(given) if "body_base64" in given else b""
        options: Any = {"jid": case["jid"], **case["options"]}

        def prepare() -> tuple[str, bytes]:
            job = new_message(case["at"], given["exchange"], given.get("routing_key", ""), body, given.get("properties"), options)
            jid, message = job.prepare(case["now"])
            self.assertEqual(("", "scheduled_jobs"), (message.exchange, message.key))
            return jid, message.body

        if "error" in case:
            with self.assertRaises(Invalid):
                prepare()
            return
        jid, record = prepare()
        self.assertEqual(options["jid"], jid)
        self.assertEqual(case["record"], json.loads(record))


class Checks(unittest.TestCase):
    def message(self, **given: Any) -> dict[str, Any]:
        client = Fake()
        client.publish_in(60, **{"exchange": "orders", **given})
        (enqueued,) = client.jobs("millrace.Message")
        message: dict[str, Any] = enqueued.args[0]
        return message

    def test_invalid(self) -> None:
        itself: list[object] = []
        itself.append(itself)
        invalid: dict[str, dict[str, Any]] = {
            "the body must be a text or bytes, not dict": {"body": {"id": 17}},
            "surrogates": {"body": "\ud800"},
            "routing_key must be a text": {"routing_key": None},
            "there is no property user_id": {"properties": {"user_id": "guest"}},
            "expiration must be a text": {"properties": {"expiration": 60000}},
            "timestamp must not be before 1970": {"properties": {"timestamp": datetime(1969, 1, 1, tzinfo=UTC)}},
            "timestamp must": {"properties": {"timestamp": float("inf")}},
            "delivery_mode must be a whole number from 1 to 2": {"properties": {"delivery_mode": True}},
            "headers must be a map": {"properties": {"headers": ["a"]}},
            "a header has a bytes, which JSON does not have": {"properties": {"headers": {"a": {"b": b"c"}}}},
            "a header has a Decimal": {"properties": {"headers": {"a": [Decimal(1)]}}},
            "a header has a datetime": {"properties": {"headers": {"a": datetime.now()}}},
            "not JSON compliant": {"properties": {"headers": {"a": float("nan")}}},
            "the name of a header must be a text": {"properties": {"headers": {1: "a"}}},
            "more than 64 bits": {"properties": {"headers": {"a": 1 << 63}}},
            "recursion": {"properties": {"headers": {"a": itself}}},
            "a message has no option queue": {"queue": "low"},
            "limits count no messages": {"limited": True},
            "there is no option retries": {"retries": 1},
        }
        for reason, given in invalid.items():
            with self.subTest(reason), self.assertRaisesRegex(Invalid, reason):
                self.message(**given)

    def test_values(self) -> None:
        message = self.message(
            body=memoryview(b"\xff"),
            properties={
                "timestamp": datetime(2020, 1, 1, 0, 0, 0, 900_000, UTC),
                "headers": OrderedDict(low=-(1 << 63), high=(1 << 63) - 1, whole=2.0, pair=("a", 1)),
            },
        )
        self.assertEqual("/w==", message["body_base64"])
        self.assertEqual(1577836800, message["properties"]["timestamp"])
        headers = message["properties"]["headers"]
        self.assertEqual({"low": -(1 << 63), "high": (1 << 63) - 1, "whole": 2.0, "pair": ["a", 1]}, headers)
        self.assertIsInstance(headers["whole"], float)

    def test_nothing_is_sent_of_an_invalid_message(self) -> None:
        with Client("amqp://guest:guest@127.0.0.1:1/") as client, self.assertRaises(Invalid):
            client.publish_at(1.0, "x" * 256)


class AsyncMessages(unittest.IsolatedAsyncioTestCase):
    async def test_async(self) -> None:
        client = AsyncFake()
        jid = await client.publish_at(12.5, "orders", "created", "a", properties={"priority": 9}, tags=["web"])
        await client.publish_in(60, "orders")
        first, second = client.jobs()
        self.assertEqual((jid, 12.5, ["web"]), (first.job.jid, first.at, first.job.tags))
        self.assertEqual([{"exchange": "orders", "routing_key": "created", "body": "a", "properties": {"priority": 9}}], first.args)
        self.assertEqual([{"exchange": "orders", "routing_key": "", "body": ""}], second.args)
        with self.assertRaises(Invalid):
            await client.publish_in(60, "orders", body=7)  # type: ignore[arg-type]
