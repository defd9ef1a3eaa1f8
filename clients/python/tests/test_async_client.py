import asyncio
import threading
import time
import unittest
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from millrace_jobs import App, AsyncClient, BulkError, Client, Closed, Invalid, Job, NewJob, Unreachable, Worker
from millrace_jobs.testing import AsyncFake, AsyncInline

URL = "amqp://guest:guest@127.0.0.1:1/"
Next = Callable[[NewJob], Awaitable[str | None]]


class Unreached(unittest.IsolatedAsyncioTestCase):
    async def test_waiting_for_the_broker_does_not_block_the_loop(self) -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        async with AsyncClient(URL, timeout=0.5) as client:
            with self.assertRaisesRegex(Unreachable, "refused"):
                await client.enqueue("A")
            self.assertGreater(ticks, 2)
            with self.assertRaises(BulkError) as failed:
                await client.enqueue_bulk([NewJob("A"), NewJob("")])
        ticking.cancel()
        self.assertEqual([None, None], failed.exception.jids)
        self.assertIsInstance(failed.exception.errors[0], Unreachable)
        self.assertIsInstance(failed.exception.errors[1], Invalid)
        with self.assertRaises(Closed):
            await client.enqueue("A")

    async def test_fail_fast_does_not_wait_for_a_broker(self) -> None:
        began = time.monotonic()
        async with AsyncClient(URL, timeout=60, fail_fast=True) as client, App(URL, timeout=60, fail_fast=True).async_client as other:
            for one in (client, other):
                with self.assertRaisesRegex(Unreachable, "refused"):
                    await one.enqueue("A")
        self.assertLess(time.monotonic() - began, 30)

    async def test_closing_ends_what_waits(self) -> None:
        client = AsyncClient(URL)
        enqueuing = asyncio.create_task(client.enqueue("A", jid="j1"))
        await asyncio.sleep(0.1)
        await client.close()
        with self.assertRaises(Closed) as closed:
            await enqueuing
        self.assertEqual("j1", closed.exception.jid)

    async def test_cancelling(self) -> None:
        async with AsyncClient(URL) as client:
            for call in (client.enqueue("A"), client.enqueue_bulk([NewJob("A")] * 3)):
                enqueuing = asyncio.ensure_future(call)
                await asyncio.sleep(0.1)
                enqueuing.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await enqueuing
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.enqueue("A")

    async def test_a_large_bulk_leaves_turns_to_others(self) -> None:
        turns = 0
        turns_when_written = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        def jobs() -> Iterator[NewJob]:
            nonlocal turns_when_written
            for _ in range(1000):
                turns_when_written = turns
                yield NewJob("A")

        counting = asyncio.create_task(count())
        async with AsyncClient(URL, timeout=0) as client:
            with self.assertRaises(BulkError) as failed:
                await client.enqueue_bulk(jobs())
        counting.cancel()
        self.assertEqual(1000, len(failed.exception.errors))
        self.assertGreater(turns_when_written, 15)


class Middleware(unittest.IsolatedAsyncioTestCase):
    async def test_order_and_swallowing(self) -> None:
        client = AsyncFake()

        @client.use
        async def outer(job: NewJob, call_next: Next) -> str | None:
            if job.class_ == "Swallowed":
                return None
            job.args = [*job.args, "outer"]
            return await call_next(job)

        @client.use
        async def inner(job: NewJob, call_next: Next) -> str | None:
            await asyncio.sleep(0)
            job.args = [*job.args, "inner"]
            return await call_next(job)

        self.assertEqual("", await client.enqueue("Swallowed"))
        self.assertEqual(32, len(await client.enqueue("A")))
        self.assertEqual([32, None], [jid and len(jid) for jid in await client.enqueue_bulk([NewJob("A"), NewJob("Swallowed")])])
        self.assertEqual([["outer", "inner"]] * 2, [job.args for job in client.jobs()])

    async def test_what_it_returns_does_not_change_the_jid(self) -> None:
        client = AsyncFake()

        @client.use
        async def note(job: NewJob, call_next: Next) -> None:
            await call_next(job)

        self.assertEqual("j0", await client.enqueue("A", jid="j0"))
        self.assertEqual(["j1", "j2"], await client.enqueue_bulk([NewJob("A", jid="j1"), NewJob("A", jid="j2")]))

    async def test_the_wrong_kind_is_refused(self) -> None:
        async def middleware(job: NewJob, call_next: Next) -> str | None:
            return await call_next(job)

        plain: Any = lambda job, call_next: call_next(job)  # noqa: E731
        wrong: Any = middleware
        with self.assertRaisesRegex(TypeError, "not async"):
            AsyncClient(URL).use(plain)
        with self.assertRaisesRegex(TypeError, "async"):
            Client(URL).use(wrong)


class Helpers(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.seen: list[Any] = []
        self.worker = Worker(URL)

        @self.worker.handle("Async")
        async def handler(job: Job) -> None:
            self.seen.append((job.args[0], asyncio.get_running_loop()))

        @self.worker.handle("Plain")
        def plain(job: Job) -> None:
            self.seen.append((job.args[0], threading.current_thread()))

        @self.worker.handle("FailOnce")
        async def fail_once(job: Job) -> None:
            if job.attempt == 1:
                raise ValueError("once")

    async def test_fake(self) -> None:
        client = AsyncFake(self.worker)
        await client.enqueue_at(12.5, "Async", [1])
        await client.enqueue("Plain", [2])
        self.assertEqual([12.5, None], [job.at for job in client.jobs()])
        self.assertEqual([], self.seen)
        self.assertEqual(2, await client.drain())
        self.assertEqual((1, asyncio.get_running_loop()), self.seen[0])
        self.assertNotEqual((2, threading.current_thread()), self.seen[1])
        await client.enqueue("FailOnce")
        with self.assertLogs("millrace", "WARNING"):
            self.assertEqual(2, await client.drain(retry=True))
        self.assertEqual(["success", "success", "failed", "success"], [result.outcome for result in client.results])
        await client.enqueue("FailOnce")
        client.clear()
        self.assertEqual(0, await client.drain())

    async def test_inline(self) -> None:
        client = AsyncInline(self.worker)
        await client.enqueue("Async", [1])
        self.assertEqual([(1, asyncio.get_running_loop())], self.seen)
        with self.assertLogs("millrace", "WARNING"), self.assertRaises(ValueError):
            await client.enqueue("FailOnce")
        self.assertEqual(["success", "failed"], [result.outcome for result in client.results])
