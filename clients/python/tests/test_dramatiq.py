"""The broker for Dramatiq, with a real RabbitMQ. The tests play the sidecar."""

import importlib.util
import json
import logging
import time
import unittest
from typing import Any

from millrace_jobs import Client, Refused

from .broker import Broker

if importlib.util.find_spec("dramatiq"):
    import dramatiq
    from dramatiq.errors import ConnectionClosed

    from millrace_jobs.dramatiq import MillraceBroker


@unittest.skipUnless(importlib.util.find_spec("dramatiq"), "Dramatiq is in .cache/python only")
class Dramatiq(unittest.TestCase):
    rabbit: Broker

    @classmethod
    def setUpClass(cls) -> None:
        cls.rabbit = Broker()
        cls.addClassCleanup(cls.rabbit.stop)
        logging.getLogger("dramatiq").setLevel(logging.CRITICAL)

    def setUp(self) -> None:
        self.rabbit.topology()
        self.broker = MillraceBroker(url=self.rabbit.url)
        self.addCleanup(self.broker.close)
        self.ran: list[str] = []

    def actor(self, **options: Any) -> Any:
        """Make an actor whose first call with "fails" raises."""

        def call(text: str) -> None:
            self.ran.append(text)
            if text == "fails" and self.ran == ["fails"]:
                raise LookupError(text)

        return dramatiq.actor(broker=self.broker, actor_name="call", **options)(call)

    def waiting(self) -> tuple[float, dict[str, Any], dict[str, Any]]:
        """Take the next record. Return how many seconds it waits, its job and the message in it."""
        record = json.loads(self.rabbit.take("scheduled_jobs")[1])
        return record["scheduled_at"] - record["job"]["created_at"], record["job"], record["job"]["args"][0]

    def deliver(self, message: dict[str, Any]) -> None:
        """Publish a message that is due, as a sidecar does."""
        with self.rabbit.channel() as channel:
            channel.basic_publish(message["exchange"], message["routing_key"], message["body"].encode())

    def eventually_ran(self, *texts: str) -> None:
        deadline = time.monotonic() + 20
        while self.ran != list(texts) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(list(texts), self.ran)

    def test_a_delayed_message_waits_in_millrace(self) -> None:
        sent = self.actor(queue_name="mail").send_with_options(args=("late",), delay=60_000, broker_priority=3)
        self.assertEqual("mail", sent.queue_name)
        wait, job, message = self.waiting()
        self.assertAlmostEqual(60, wait, delta=0.01)
        self.assertEqual(("millrace.Message", "millrace.messages", ["call"]), (job["class"], job["queue"], job["tags"]))
        self.assertEqual(("", "mail"), (message["exchange"], message["routing_key"]))
        self.assertEqual({"message_id": sent.message_id, "priority": 3}, message["properties"])
        self.assertEqual([0, 0], [self.rabbit.count(queue) for queue in ("mail", "mail.DQ")])

        self.deliver(message)
        worker = dramatiq.Worker(self.broker, worker_threads=1)
        worker.start()
        self.addCleanup(worker.stop)
        self.eventually_ran("late")

    def test_messages_without_a_delay(self) -> None:
        actor = self.actor()
        actor.send("now")
        actor.send_with_options(args=("zero",), delay=0)
        self.assertEqual([2, 0], [self.rabbit.count(queue) for queue in ("default", "scheduled_jobs")])
        with self.rabbit.channel() as channel:
            channel.queue_purge("default")

    def test_a_retry_waits_in_millrace(self) -> None:
        worker = dramatiq.Worker(self.broker, worker_threads=1)
        self.actor(min_backoff=40_000, max_backoff=40_000).send("fails")
        worker.start()
        self.addCleanup(worker.stop)
        wait, _, message = self.waiting()
        self.assertGreaterEqual(wait, 19)  # Dramatiq subtracts up to a half
        self.assertEqual(1, json.loads(message["body"])["options"]["retries"])
        self.deliver(message)
        self.eventually_ran("fails", "fails")

    def test_middleware_sees_a_delayed_message(self) -> None:
        seen: list[tuple[str, int]] = []

        class Looker(dramatiq.Middleware):
            def before_enqueue(self, broker: dramatiq.Broker, message: dramatiq.Message[Any], delay: int | None) -> None:
                seen.append(("before", delay or 0))

            def after_enqueue(self, broker: dramatiq.Broker, message: dramatiq.Message[Any], delay: int | None) -> None:
                seen.append(("after", delay or 0))

        self.broker.add_middleware(Looker())
        self.actor().send_with_options(args=("late",), delay=5000)
        self.assertEqual([("before", 5000), ("after", 5000)], seen)

    def test_errors(self) -> None:
        actor = self.actor()
        with self.rabbit.channel() as channel:
            channel.queue_delete("scheduled_jobs")
        self.broker.client._timeout = 1
        with self.assertRaisesRegex(Refused, "NO_ROUTE"):
            actor.send_with_options(args=("unroutable",), delay=5000)
        self.broker.client.close()
        with self.assertRaises(ConnectionClosed):
            actor.send_with_options(args=("closed",), delay=5000)

    def test_where_the_client_connects(self) -> None:
        with self.assertRaisesRegex(ValueError, "a url or a client"):
            MillraceBroker(host="127.0.0.1", port=self.rabbit.port)
        for options in (
            {"url": f"{self.rabbit.url};{self.rabbit.url}"},
            {"url": [self.rabbit.url]},
            {"host": "127.0.0.1", "port": self.rabbit.port, "client": Client(self.rabbit.url)},
        ):
            broker = MillraceBroker(**options)
            dramatiq.actor(broker=broker, actor_name="other")(lambda: None).send_with_options(delay=5000)
            broker.close()
            self.assertEqual(["other"], self.waiting()[1]["tags"])
