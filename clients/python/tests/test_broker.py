"""Behaviour that needs a real broker."""

import asyncio
import json
import logging
import os
import signal
import threading
import time
import traceback
import unittest
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from millrace_jobs import (
    AsyncClient,
    BulkError,
    Client,
    Closed,
    Defined,
    HandBack,
    Invalid,
    Job,
    Lane,
    NewJob,
    PeriodicJob,
    Refused,
    Unconfirmed,
    Worker,
)  # fmt: skip

from .broker import Broker, Proxy, eventually, working

broker: Broker


def setUpModule() -> None:
    global broker
    broker = Broker()


def tearDownModule() -> None:
    broker.stop()


class Case(unittest.TestCase):
    def setUp(self) -> None:
        broker.topology("default", "slow")

    def proxy(self) -> Proxy:
        proxy = Proxy(broker.port)
        self.addCleanup(proxy.close)
        return proxy


class Defining(Case):
    nightly = PeriodicJob(
        name="nightly", class_="Report", args=["daily", 2**60], cron="0 3 * * *", tz="Europe/Stockholm",
        options={"queue": "reports", "retry": 2}, jitter=1.5, expires_in=3600, grace=0, catch_up="all", catch_up_max=7, overlap="skip",
        except_=["2026-12-24"], paused=True,
    )  # fmt: skip

    def test_periodic_jobs_are_defined(self) -> None:
        did = Defined(["nightly"], [], ["old"], 1)
        with broker.leading(json.dumps({"status": 200, "defined": vars(did)})) as commands, Client(broker.url) as client:
            self.assertEqual(did, client.define("billing", [self.nightly, PeriodicJob(name="poll", class_="Poll", every=90)]))
        job = {"class": "Report", "args": ["daily", 2**60], "queue": "reports", "retry": 2}
        self.assertEqual("define", commands[0]["command"])
        self.assertEqual({"source": "billing", "periodic_jobs": [
            {"name": "nightly", "job": job, "cron": "0 3 * * *", "tz": "Europe/Stockholm", "jitter": 1.5, "expires_in": 3600, "grace": 0,
             "catch_up": "all", "catch_up_max": 7, "overlap": "skip", "except": ["2026-12-24"], "paused": True},
            {"name": "poll", "every": 90, "job": {"class": "Poll", "args": [], "queue": "default"}},
        ]}, commands[0]["definitions"])  # fmt: skip

    def test_define_says_why_not(self) -> None:
        replies = [json.dumps({"status": status, "reason": f"why {status}"}) for status in (400, 409)]
        with broker.leading(*replies), Client(broker.url) as client:
            with self.assertRaisesRegex(Invalid, "why 400"):
                client.define("a", [self.nightly])
            with self.assertRaisesRegex(Refused, "why 409"):
                client.define("a", [self.nightly])
            for job in (PeriodicJob(name="a", class_=""), PeriodicJob(name="a", class_="A", options={"jid": "j"})):
                with self.assertRaises(Invalid):
                    client.define("a", [job])
        with self.assertRaises(Closed):
            client.define("a", [])

    def test_a_command_without_an_answer_is_sent_again_with_its_id(self) -> None:
        busy, before = '{"status": 503, "reason": "busy"}', '{"status": 204, "repeated": true}'

        async def define() -> Defined:
            async with AsyncClient(broker.url) as client:
                return await client.define("a", [self.nightly])

        with broker.leading("", busy, before) as commands:
            self.assertEqual(Defined(), asyncio.run(define()))
        self.assertEqual(1, len({command["id"] for command in commands}))
        self.assertEqual(3, len(commands))

    def test_without_a_leader(self) -> None:
        with Client(broker.url) as client:
            with self.assertRaisesRegex(Refused, "no sidecar leads"):
                client.define("a", [self.nightly], deadline=1)
            with broker.leading(""), self.assertRaises(Unconfirmed):
                client.define("a", [self.nightly], deadline=1)


class Producing(Case):
    def check_again(self, unconfirmed: Unconfirmed, again: Callable[[str], str]) -> None:
        """The job has arrived without its confirm. Enqueued again, it has the same jid."""
        jid = unconfirmed.jid
        assert jid
        self.assertIn(jid, str(unconfirmed))
        properties, body = broker.take("queue.default")
        self.assertEqual((jid, jid), (properties.message_id, json.loads(body)["jid"]))
        self.assertEqual(jid, again(jid))
        properties, _ = broker.take("queue.default")
        self.assertEqual(jid, properties.message_id)

    def test_unconfirmed_has_the_jid(self) -> None:
        proxy = self.proxy()
        with Client(proxy.url) as client:
            client.enqueue("A", ["first"])
            broker.take("queue.default")
            proxy.heard.clear()
            with self.assertRaises(Unconfirmed) as failed:
                client.enqueue("A", ["second"], deadline=1)
            proxy.heard.set()
            self.check_again(failed.exception, lambda jid: client.enqueue("A", ["second"], jid=jid))

    def test_unconfirmed_has_the_jid_in_async_code(self) -> None:
        proxy = self.proxy()

        async def enqueue() -> None:
            async with AsyncClient(proxy.url) as client:
                await client.enqueue("A", ["first"])
                await asyncio.to_thread(broker.take, "queue.default")
                proxy.heard.clear()
                with self.assertRaises(Unconfirmed) as failed:
                    await client.enqueue("A", ["second"], deadline=1)
                proxy.heard.set()
                loop = asyncio.get_running_loop()

                def again(jid: str) -> str:
                    return asyncio.run_coroutine_threadsafe(client.enqueue("A", ["second"], jid=jid), loop).result()

                await asyncio.to_thread(self.check_again, failed.exception, again)

        asyncio.run(enqueue())

    def test_a_job_that_was_sent_is_unconfirmed_when_the_client_is_closed(self) -> None:
        proxy = self.proxy()
        with Client(proxy.url) as client, ThreadPoolExecutor() as threads:
            client.enqueue("A", ["first"])
            broker.take("queue.default")
            proxy.heard.clear()
            enqueuing = threads.submit(client.enqueue, "A", ["second"], jid="one")
            many = threads.submit(client.enqueue_bulk, [NewJob("A", ["third"], jid="many")])
            arrived = {broker.take("queue.default")[0].message_id for _ in range(2)}
            closing = threads.submit(client.close)
            with self.assertRaisesRegex(Unconfirmed, "not confirmed: the client was closed") as failed:
                enqueuing.result()
            with self.assertRaises(BulkError) as some:
                many.result()
            proxy.heard.set()
            closing.result()
        self.assertIsInstance(some.exception.errors[0], Unconfirmed)
        self.assertEqual(("one", "many"), (failed.exception.jid, some.exception.errors[0].jid))
        self.assertEqual({"one", "many"}, arrived)

    def test_a_job_that_was_sent_is_unconfirmed_when_an_async_client_is_closed(self) -> None:
        proxy = self.proxy()

        async def enqueue() -> str | None:
            async with AsyncClient(proxy.url) as client:
                await client.enqueue("A", ["first"])
                await asyncio.to_thread(broker.take, "queue.default")
                proxy.heard.clear()
                enqueuing = asyncio.create_task(client.enqueue("A", ["second"], jid="one"))
                await asyncio.to_thread(broker.take, "queue.default")
                closing = asyncio.create_task(client.close())
                with self.assertRaisesRegex(Unconfirmed, "not confirmed: the client was closed") as failed:
                    await enqueuing
                proxy.heard.set()
                await closing
            return failed.exception.jid

        self.assertEqual("one", asyncio.run(enqueue()))

    def test_a_delayed_message_is_a_scheduled_job(self) -> None:
        with Client(broker.url) as client:
            jid = client.publish_in(60, "orders", "order.created", b"\xff", properties={"headers": {"tenant": "a"}}, tags=["web"])
        properties, body = broker.take("scheduled_jobs")
        self.assertEqual((jid, "millrace.Message"), (properties.message_id, properties.type))
        record = json.loads(body)
        self.assertEqual(("scheduled_job", jid), (record["type"], record["jid"]))
        self.assertAlmostEqual(time.time() + 60, record["scheduled_at"], delta=30)
        message = {"exchange": "orders", "routing_key": "order.created", "body_base64": "/w==", "properties": {"headers": {"tenant": "a"}}}
        job = record["job"]
        self.assertEqual(("millrace.messages", [message], ["web"]), (job["queue"], job["args"], job["tags"]))

    def bind(self, queue: str) -> None:
        self.addCleanup(self.unbind, queue)
        with broker.channel() as channel:
            channel.queue_declare(f"queue.{queue}", durable=True)
            channel.queue_bind(f"queue.{queue}", "jobs.direct", queue)

    def unbind(self, queue: str) -> None:
        with broker.channel() as channel:
            channel.queue_delete(f"queue.{queue}")

    def returned(self, proxy: Proxy, times: int) -> None:
        eventually(lambda: proxy.returns >= times, f"the broker has returned {times} times")

    def test_a_returned_job_is_published_again(self) -> None:
        proxy = self.proxy()
        with Client(proxy.url) as client, ThreadPoolExecutor() as threads:
            one = threads.submit(client.enqueue, "A", queue="later", jid="j0")
            many = threads.submit(
                client.enqueue_bulk, [NewJob("A", queue="later", jid="j1"), NewJob("A", jid="j2"), NewJob("A", queue="later", jid="j3")]
            )
            # The returned job delays none of the others.
            self.assertEqual("j2", broker.take("queue.default")[0].message_id)
            self.returned(proxy, 2)
            self.bind("later")
            self.assertEqual(("j0", ["j1", "j2", "j3"]), (one.result(), many.result()))
        self.assertEqual({"j0", "j1", "j3"}, {broker.take("queue.later")[0].message_id for _ in range(3)})
        self.assertEqual((0, 0), (broker.count("queue.later"), broker.count("queue.default")))

    def test_a_job_that_is_returned_to_the_last_is_refused(self) -> None:
        with Client(broker.url) as client:
            with self.assertRaisesRegex(Refused, "^312 NO_ROUTE: exchange 'jobs.direct', routing key 'nowhere'; tried for .* s") as one:
                client.enqueue("A", queue="nowhere", jid="j0", deadline=2)
            with self.assertRaises(BulkError) as some:
                client.enqueue_bulk([NewJob("A", queue="nowhere"), NewJob("A", jid="j1")], deadline=2)
        self.assertEqual([Refused, Refused], [type(error) for error in (one.exception, *some.exception.errors.values())])
        self.assertEqual([None, "j1"], some.exception.jids)

    def test_a_client_that_is_closed_between_tries_has_not_enqueued(self) -> None:
        for _ in range(5):  # on a busy machine the next try may have begun
            proxy = self.proxy()
            with Client(proxy.url) as client, ThreadPoolExecutor() as threads:
                enqueuing = threads.submit(client.enqueue, "A", queue="nowhere", jid="j0")
                self.returned(proxy, 4)
                client.close()
                error = enqueuing.exception()
            if not isinstance(error, Unconfirmed):
                break
        self.assertIsInstance(error, Closed)

    def test_an_enqueue_that_is_cancelled_is_tried_no_more(self) -> None:
        proxy = self.proxy()

        async def enqueue() -> None:
            async with AsyncClient(proxy.url) as client:
                enqueuing = asyncio.create_task(client.enqueue("A", queue="nowhere"))
                await asyncio.to_thread(self.returned, proxy, 2)
                enqueuing.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await enqueuing
                line = client._lines._line
                assert line
                eventually(lambda: not asyncio.all_tasks(line._loop), "nothing is left of it")

        asyncio.run(enqueue())

    def test_middleware_returns_what_it_likes(self) -> None:
        with Client(broker.url) as client:

            @client.use
            def note(job: NewJob, call_next: Callable[[NewJob], str | None]) -> None:
                call_next(job)

            self.assertEqual("j0", client.enqueue("A", jid="j0"))
            self.assertEqual(["j1", "j2"], client.enqueue_bulk([NewJob("A", jid="j1"), NewJob("A", jid="j2")]))
        self.assertEqual(["j0", "j1", "j2"], [broker.take("queue.default")[0].message_id for _ in range(3)])

    # With 0.2 s for each answer, 50 confirms one after the other take 10 s.
    def test_a_bulk_with_middleware_is_one_window(self) -> None:
        proxy = self.proxy()
        with Client(proxy.url) as client:

            @client.use
            def trace(job: NewJob, call_next: Callable[[NewJob], str | None]) -> str | None:
                return call_next(job) if job.args != [7] else None

            client.enqueue("A", ["connects"])
            proxy.delay = 0.2
            began = time.monotonic()
            jids = client.enqueue_bulk(NewJob("A", [n], jid=f"j{n}") for n in range(50))
            self.assertLess(time.monotonic() - began, 5)
        self.assertEqual([None if n == 7 else f"j{n}" for n in range(50)], jids)
        self.assertEqual(50, broker.count("queue.default"))
        broker.take("queue.default")
        self.assertEqual(["j0", "j1", "j2"], [broker.take("queue.default")[0].message_id for _ in range(3)])

    def test_an_async_bulk_with_middleware_is_one_window(self) -> None:
        proxy = self.proxy()

        async def enqueue() -> tuple[list[str | None], float]:
            async with AsyncClient(proxy.url) as client:

                @client.use
                async def trace(job: NewJob, call_next: Callable[[NewJob], Awaitable[str | None]]) -> str | None:
                    return await call_next(job)

                await client.enqueue("A", ["connects"])
                proxy.delay = 0.2
                began = time.monotonic()
                jids = await client.enqueue_bulk(NewJob("A", [n], jid=f"j{n}") for n in range(50))
                return jids, time.monotonic() - began

        jids, took = asyncio.run(enqueue())
        self.assertEqual([f"j{n}" for n in range(50)], jids)
        self.assertLess(took, 5)
        broker.take("queue.default")
        self.assertEqual([f"j{n}" for n in range(50)], [broker.take("queue.default")[0].message_id for _ in range(50)], "in order")

    def test_a_fork_connects_for_itself(self) -> None:
        proxy = self.proxy()
        with Client(proxy.url) as client:
            client.enqueue("A", jid="parent")
            child = os.fork()
            if child == 0:
                status = 1
                signal.alarm(20)  # ends a child that waits for a thread that only its parent has
                try:
                    client.enqueue("A", jid="child", deadline=10)
                    client.close()
                    status = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(status)
            self.assertEqual(0, os.waitpid(child, 0)[1], "the child enqueues")
            client.enqueue("A", jid="parent again", deadline=10)
        self.assertEqual(["parent", "child", "parent again"], [broker.take("queue.default")[0].message_id for _ in range(3)])
        self.assertEqual(2, proxy.connections, "the parent keeps its connection, and the child makes one")

    def test_many_loops_share_an_async_client(self) -> None:
        client = AsyncClient(broker.url)
        for _ in range(2):
            self.assertTrue(asyncio.run(client.enqueue("A")))
        asyncio.run(client.close())
        self.assertEqual(2, broker.count("queue.default"))


class Working(Case):
    def setUp(self) -> None:
        super().setUp()
        self.seen: list[Any] = []
        self.client = Client(broker.url)
        self.addCleanup(self.client.close)

    def test_async_handlers_run_and_fail_like_others(self) -> None:
        worker = Worker(broker.url)

        @worker.handle("Note")
        async def note(job: Job) -> None:
            await asyncio.sleep(0.01)
            self.seen.append(job.args[0])

        @worker.handle("Fail")
        async def fail(job: Job) -> None:
            await asyncio.sleep(0)
            raise LookupError("no such order")

        with self.assertLogs("millrace", "WARNING") as logs, working(worker):
            self.client.enqueue("Note", ["hello"])
            self.client.enqueue("Fail", jid="j1")
            record = json.loads(broker.take("retries")[1])
            eventually(lambda: self.seen == ["hello"], "the handler has run")
        self.assertEqual(("j1", "LookupError", "no such order"), (record["jid"], record["error_class"], record["error_message"]))
        self.assertIn("test_broker.py", record["backtrace"].split("\n")[0])
        self.assertIn("class=Fail jid=j1 queue=default attempt=1 next=retry", "".join(logs.output))
        metrics = json.loads(broker.take("job_metrics")[1])
        self.assertEqual({"Note": "success", "Fail": "failed"}, {metric["job_class"]: metric["status"] for metric in metrics})
        self.assertEqual(0, broker.count("queue.default"))

    def test_timeout_and_cancellation_of_async_handlers(self) -> None:
        worker = Worker(broker.url)

        @worker.handle("Sleep", timeout=0.3)
        async def sleep(job: Job) -> None:
            self.seen.append(job.jid)
            try:
                await asyncio.sleep(60)
            finally:
                self.seen.append(f"{job.jid} ended: {job.end}")

        began = time.monotonic()
        with self.assertLogs("millrace", "INFO") as logs, working(worker):
            self.client.enqueue("Sleep", jid="late")
            record = json.loads(broker.take("retries")[1])
            self.assertEqual(("Timeout", "ran longer than 0.3 s"), (record["error_class"], record["error_message"]))
            self.client.enqueue("Sleep", jid="cancelled", timeout=60)
            eventually(lambda: "cancelled" in self.seen, "it runs")
            with broker.channel() as channel:
                channel.basic_publish("jobs.control", "", json.dumps({"op": "cancel", "identity": "*", "jid": "cancelled"}))
            eventually(lambda: "cancelled ended: cancelled" in self.seen, "it is cancelled")
            self.assertIn("late ended: timeout", self.seen)
            eventually(lambda: any("job discarded" in line and "jid=cancelled" in line for line in logs.output), "it is discarded")
        self.assertLess(time.monotonic() - began, 50)
        self.assertEqual(0, broker.count("queue.default"), "both are acknowledged")

    def test_a_stop_hands_async_handlers_back(self) -> None:
        worker = Worker(broker.url, stop_timeout=0.5)

        @worker.handle("Sleep")
        async def sleep(job: Job) -> None:
            self.seen.append("began")
            try:
                await asyncio.sleep(60)
            finally:
                self.seen.append(job.end)

        @worker.handle("Wait")
        async def wait(job: Job) -> None:
            self.seen.append("began")
            if await job.wait_async(60):
                raise HandBack

        with working(worker):
            self.client.enqueue("Sleep")
            self.client.enqueue("Wait")
            eventually(lambda: len(self.seen) == 2, "both run")
        self.assertIn("stopping", self.seen)
        self.assertEqual(2, broker.count("queue.default"))
        self.assertEqual(0, broker.count("retries"))

    def test_a_handler_that_hangs_is_handed_back_with_a_warning(self) -> None:
        worker = Worker(broker.url, stop_timeout=0.2)
        hangs = threading.Event()
        self.addCleanup(hangs.set)

        @worker.handle("Hang")
        def hang(job: Job) -> None:
            self.seen.append("began")
            hangs.wait()

        with self.assertLogs("millrace", "WARNING") as logs, working(worker):
            self.client.enqueue("Hang", jid="j1")
            eventually(lambda: self.seen == ["began"], "it runs")
        text = "job handed back, its handler did not end within the stop timeout  class=Hang jid=j1 queue=default attempt=1"
        self.assertIn(text, "\n".join(logs.output))
        self.assertEqual(1, broker.count("queue.default"))

    def test_lanes_limit_async_handlers(self) -> None:
        worker = Worker(broker.url, queues=["default"], concurrency=2, lanes=[Lane("slow", ["slow"], 1)])
        running = {"default": 0, "slow": 0}
        most = {"default": 0, "slow": 0}
        done: list[str] = []

        @worker.handle("Count")
        async def count(job: Job) -> None:
            running[job.queue] += 1
            most[job.queue] = max(most[job.queue], running[job.queue])
            await asyncio.sleep(0.1)
            running[job.queue] -= 1
            done.append(job.jid)

        self.client.enqueue_bulk([NewJob("Count", queue=queue) for queue in ["default", "slow"] * 6])
        with working(worker):
            eventually(lambda: len(done) == 12, "all have run")
        self.assertEqual({"default": 2, "slow": 1}, most)

    def test_failure_hooks_come_before_the_retry(self) -> None:
        worker = Worker(broker.url)
        worker.handle("Fail", lambda job: 1 / 0)

        @worker.on("failure")
        def failure(job: Job, error: BaseException) -> None:
            time.sleep(0.3)
            self.seen.append((job.jid, type(error), broker.count("retries"), broker.count("dead_jobs")))

        @worker.on("death")
        async def death(job: Job, error: BaseException) -> None:
            self.seen.append(("death", job.jid, type(error)))

        with self.assertLogs("millrace", "WARNING"), working(worker):
            self.client.enqueue("Fail", jid="again")
            broker.take("retries")
            self.client.enqueue("Fail", jid="dead", retry=0)
            broker.take("dead_jobs")
            eventually(lambda: len(self.seen) == 3, "the hooks are called")
        wanted = [("again", ZeroDivisionError, 0, 0), ("dead", ZeroDivisionError, 0, 0), ("death", "dead", ZeroDivisionError)]
        self.assertEqual(wanted, self.seen)

    def test_it_says_when_it_starts_and_stops(self) -> None:
        worker = Worker(broker.url, queues=["default", "slow"], concurrency=3, tag="t", version="1.2")
        with self.assertLogs("millrace", logging.INFO) as logs, working(worker):
            eventually(lambda: worker._session is not None, "it is connected")
        lines = [line for line in logs.output if "worker st" in line]
        identity = f"identity={worker.identity}"
        self.assertEqual(
            [f"INFO:millrace:millrace: worker started  version=1.2 {identity} queues=default,slow concurrency=3",
             f"INFO:millrace:millrace: worker stopped  {identity}"], lines,
        )  # fmt: skip
