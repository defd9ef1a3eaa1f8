import asyncio
import contextvars
import logging
import threading
import time
import traceback
import unittest
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, wraps
from typing import Any

from millrace_jobs import Job, Worker
from millrace_jobs._async import Loop
from millrace_jobs._handler import chain
from millrace_jobs.testing import Fake, Inline

URL = "amqp://guest:guest@127.0.0.1:1/"
user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="")


def job(body: bytes = b'{"class":"A","args":[7]}') -> Job:
    return Job(body, "default")


class AsyncCase(unittest.TestCase):
    def setUp(self) -> None:
        self.loop = Loop(logging.getLogger("millrace"))
        self.addCleanup(self.loop.close)
        self.seen: list[Any] = []

    async def note(self, given: Job) -> str:
        """Show that the body runs to its end."""
        await asyncio.sleep(0.001)
        self.seen.append(given.args[0])
        return "done"


class Handlers(AsyncCase):
    def perform(self, call: Callable[[Job], object], *middleware: Any) -> object:
        return chain(call, list(middleware), self.loop)(job())

    def test_async_handlers_are_awaited(self) -> None:
        class Callable_:
            async def __call__(_, given: Job) -> str:
                return await self.note(given)

        def decorated(given: Job) -> Any:  # a plain function that returns a coroutine
            return self.note(given)

        for call in (self.note, partial(self.note), Callable_(), decorated, lambda given: self.note(given)):
            with self.subTest(call):
                self.seen.clear()
                self.assertEqual("done", self.perform(call))
                self.assertEqual([7], self.seen)

    def test_errors_arrive_with_their_place(self) -> None:
        async def broken(_: Job) -> None:
            await asyncio.sleep(0)
            raise KeyError("inner")

        names: list[str] = []
        try:
            self.perform(broken)
        except KeyError as e:
            names = [frame.name for frame in traceback.extract_tb(e.__traceback__)]
        self.assertEqual("broken", names[-1])

    def test_what_ends_a_loop_elsewhere_is_a_failure_here(self) -> None:
        async def leaves(_: Job) -> None:
            raise SystemExit("the end")

        for _ in range(2):
            with self.assertRaises(SystemExit):
                self.perform(leaves)
        self.assertEqual("done", self.perform(self.note), "the loop lives")

    def test_the_loop_survives_a_task_that_exits(self) -> None:
        async def spawns(_: Job) -> None:
            async def leave() -> None:
                raise SystemExit

            self.seen.append(asyncio.create_task(leave()))
            await asyncio.sleep(0.01)

        with self.assertLogs("millrace", "ERROR"):
            self.perform(spawns)
        self.assertIsInstance(self.seen[0].exception(), SystemExit)
        self.assertEqual("done", self.perform(self.note))

    def test_the_loop_survives_a_handler_that_stops_it(self) -> None:
        async def stops(_: Job) -> str:
            asyncio.get_running_loop().stop()
            await asyncio.sleep(0.01)
            return "done"

        self.assertEqual("done", self.perform(stops))

    def test_one_loop_for_all(self) -> None:
        async def which(_: Job) -> None:
            self.seen.append((asyncio.get_running_loop(), threading.current_thread()))

        threads = [threading.Thread(target=self.perform, args=(which,)) for _ in range(3)]
        for thread in threads:
            thread.start()
            thread.join()
        self.assertEqual(3, len(self.seen))
        self.assertEqual(1, len(set(self.seen)))
        self.assertNotEqual(threading.current_thread(), self.seen[0][1])

    def test_handlers_wait_beside_each_other(self) -> None:
        async def slow(_: Job) -> None:
            await asyncio.sleep(0.3)

        threads = [threading.Thread(target=self.perform, args=(slow,)) for _ in range(10)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertLess(time.monotonic() - began, 1.5)

    def test_context_of_middleware_is_seen(self) -> None:
        def middleware(_: Job, next_: Callable[[], object]) -> object:
            user.set("Ann")
            return next_()

        async def handler(_: Job) -> None:
            self.seen.append(user.get())

        thread = threading.Thread(target=self.perform, args=(handler, middleware))
        thread.start()
        thread.join()
        self.assertEqual(["Ann"], self.seen)

    def test_a_generator_that_comes_back_is_a_failure(self) -> None:
        def generator(_: Job) -> Iterator[int]:
            yield 1

        async def async_generator(_: Job) -> AsyncIterator[int]:
            yield 1

        for inner in (generator, async_generator):
            with self.subTest(inner.__name__), self.assertRaisesRegex(TypeError, "generator"):
                self.perform(lambda given, inner=inner: inner(given))  # type: ignore[misc]

    def test_middleware_that_makes_a_coroutine_is_a_failure(self) -> None:
        async def middleware(_: Job, next_: Callable[[], object]) -> object:
            return next_()

        with self.assertRaisesRegex(TypeError, "coroutine"):
            self.perform(self.note, lambda given, next_: middleware(given, next_))


class Cancelling(AsyncCase):
    def test_the_cancel_signal_cancels(self) -> None:
        async def handler(_: Job) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.seen.append("cleaned up")
                raise

        given = job()
        threading.Timer(0.05, lambda: given._signal(end="cancelled")).start()
        with self.assertRaises(asyncio.CancelledError):
            chain(handler, [], self.loop)(given)
        self.assertEqual(["cleaned up"], self.seen)
        given = job()
        given._signal(end="timeout")
        with self.assertRaises(asyncio.CancelledError):  # before it began
            chain(handler, [], self.loop)(given)

    def test_a_cancelled_handler_may_end_well(self) -> None:
        async def handler(given: Job) -> str:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                given._signal(end="stopping")  # a second signal does not cancel again
                await asyncio.sleep(0.01)
            return "done"

        given = job()
        threading.Timer(0.05, lambda: given._signal(end="cancelled")).start()
        self.assertEqual("done", chain(handler, [], self.loop)(given))

    def test_wait_async(self) -> None:
        async def handler(given: Job) -> None:
            self.seen.append(await given.wait_async(0.001))
            self.seen.append(await given.wait_async(60))

        given = job()
        threading.Timer(0.1, lambda: given._signal(stopping=True)).start()
        chain(handler, [], self.loop)(given)
        self.assertEqual([False, True], self.seen)

    def test_wait_does_not_block_the_loop(self) -> None:
        async def handler(given: Job) -> None:
            given.wait(60)

        with self.assertRaisesRegex(RuntimeError, "wait_async"):
            chain(handler, [], self.loop)(job())

    def test_closing_cancels_what_runs(self) -> None:
        began = threading.Event()

        async def handler(_: Job) -> None:
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                self.seen.append("ended")

        def perform() -> None:
            try:
                chain(handler, [], self.loop)(job())
            except asyncio.CancelledError:
                self.seen.append("cancelled")

        thread = threading.Thread(target=perform)
        thread.start()
        began.wait(10)
        self.loop.close()
        thread.join(10)
        self.assertEqual(["ended", "cancelled"], self.seen)
        with self.assertRaises(RuntimeError):
            chain(self.note, [], self.loop)(job())


class Registering(unittest.TestCase):
    def test_what_cannot_be_run_is_refused(self) -> None:
        def generator(_: Job) -> Iterator[int]:
            yield 1

        async def async_generator(_: Job) -> AsyncIterator[int]:
            yield 1

        class Yields:
            def __call__(self, _: Job) -> Iterator[int]:
                yield 1

        def nothing() -> None: ...

        def two(_: Job, __: int) -> None: ...

        for name, bad, why in (
            ("a generator", generator, "generator"),
            ("an async generator", async_generator, "generator"),
            ("a partial of one", partial(generator), "generator"),
            ("an object that yields", Yields(), "generator"),
            ("no arguments", nothing, "1 argument"),
            ("two arguments", two, "1 argument"),
            ("no function", "greet", "not a function"),
        ):
            worker: Any = Worker(URL)
            with self.subTest(name):
                with self.assertRaisesRegex(TypeError, why):
                    worker.handle("A", bad)
                with self.assertRaisesRegex(TypeError, why):
                    worker.handle("A")(bad)
                self.assertEqual({}, worker._handlers)
        # @worker.handle without a class.
        with self.assertRaisesRegex(TypeError, "class of jobs must be a text"):
            worker.handle(print)

    def test_decorators_that_add_arguments_are_taken(self) -> None:
        def with_session(function: Callable[[Job, str], None]) -> Callable[[Job], None]:
            @wraps(function)
            def call(given: Job) -> None:
                function(given, "session")

            return call

        worker = Worker(URL)

        @worker.handle("A")
        @with_session
        def handler(_: Job, session: str) -> None: ...

        self.assertIn("A", worker._handlers)

    def test_middleware_hooks_and_backoff(self) -> None:
        async def middleware(_: Job, next_: Callable[[], object]) -> object:
            return next_()

        async def backoff(*_: object) -> float:
            return 1

        def yields() -> Iterator[int]:
            yield 1

        worker: Any = Worker(URL)
        with self.assertRaisesRegex(TypeError, "async"):
            worker.use(middleware)
        with self.assertRaisesRegex(TypeError, "async"):
            worker.handle("A", print, retry_in=backoff)
        with self.assertRaisesRegex(TypeError, "generator"):
            worker.on("startup", yields)
        with self.assertRaisesRegex(TypeError, "2 arguments"):
            worker.on("death", lambda given: None)

    def test_a_handler_stays_what_it_was(self) -> None:
        worker = Worker(URL)

        @worker.handle("A")
        async def handler(given: Job) -> int:
            return int(given.args[0])

        self.assertEqual(7, asyncio.run(handler(job())))

    def test_async_hooks_are_awaited(self) -> None:
        said: list[str] = []
        worker = Worker(URL)

        @worker.on("shutdown")
        async def shutdown() -> None:
            await asyncio.sleep(0.01)
            said.append("shutdown")

        thread = threading.Thread(target=worker.run)
        thread.start()
        worker.stop()
        thread.join(30)
        self.assertEqual(["shutdown"], said)


class Helpers(unittest.TestCase):
    def test_async_handlers_run(self) -> None:
        seen: list[object] = []
        worker = Worker(URL)

        @worker.handle("Note")
        async def note(given: Job) -> None:
            await asyncio.sleep(0.001)
            seen.append(given.args[0])

        @worker.handle("Broken")
        async def broken(_: Job) -> None:
            raise KeyError("broken")

        Inline(worker).enqueue("Note", [1])
        self.assertEqual([1], seen)
        client = Fake(worker)
        client.enqueue("Note", [2])
        self.assertEqual([1], seen)
        client.drain()
        self.assertEqual([1, 2], seen)
        with self.assertLogs("millrace", "WARNING"), self.assertRaises(KeyError):
            Inline(worker).enqueue("Broken")

    def test_inside_of_a_running_loop(self) -> None:
        seen: list[object] = []
        worker = Worker(URL)

        @worker.handle("Note")
        async def note(given: Job) -> None:
            await asyncio.sleep(0.001)
            seen.append(given.args[0])

        async def test() -> None:
            Inline(worker).enqueue("Note", [1])

        asyncio.run(test())
        self.assertEqual([1], seen)
