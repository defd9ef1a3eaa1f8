import asyncio
import dataclasses
import unittest
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Optional
from uuid import UUID

from millrace_jobs import App, Invalid, Worker, current_job
from millrace_jobs.testing import AsyncFake, Fake, perform

URL = "amqp://guest:guest@127.0.0.1:1/"


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclasses.dataclass
class Line:
    product: UUID
    price: Decimal
    size: Size = Size.SMALL


@dataclasses.dataclass
class Order:
    number: int
    lines: list[Line]
    due: datetime | None = None
    day: date = date(2026, 1, 2)
    notes: dict[str, tuple[int, str]] = dataclasses.field(default_factory=dict)
    total: int = dataclasses.field(init=False, default=0)


ORDER = Order(
    7, [Line(UUID(int=1), Decimal("9.90")), Line(UUID(int=2), Decimal("1"), Size.LARGE)], datetime(2026, 1, 2, 3, tzinfo=UTC),
    notes={"a": (1, "x")},
)  # fmt: skip


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.app = App(URL)
        self.seen: list[Any] = []
        self.worker = Worker(URL)
        self.app.client = self.client = Fake(self.worker)


class Tasks(Case):
    def test_a_call_runs_with_its_types(self) -> None:
        @self.app.task
        def ship(order: Order, copies: "int" = 1, *labels: Size) -> str:
            self.seen.append((order, copies, labels))
            return "shipped"

        self.app.register(self.worker)
        self.assertEqual("shipped", ship(ORDER), "called, it runs")
        self.assertEqual("ship", getattr(ship, "__name__"))  # noqa: B009
        self.assertEqual(32, len(ship.enqueue(ORDER)))
        ship.enqueue(ORDER, 2, Size.SMALL, Size.LARGE)
        ship.enqueue(copies=3, order=ORDER)
        self.client.drain()
        self.assertEqual([(ORDER, 1, ()), (ORDER, 1, ()), (ORDER, 2, (Size.SMALL, Size.LARGE)), (ORDER, 3, ())], self.seen)

    def test_others_understand_the_args(self) -> None:
        @self.app.task("Ship")
        def ship(order: Order, copies: int = 1) -> None: ...

        ship.enqueue(ORDER)
        line = {"product": "00000000-0000-0000-0000-000000000001", "price": "9.90", "size": "s"}
        args = self.client.jobs()[0].args
        self.assertEqual((line, "2026-01-02T03:00:00+00:00", 1), (args[0]["lines"][0], args[0]["due"], args[1]))
        self.assertEqual("Ship", self.client.jobs()[0].class_)

    def test_options_and_times(self) -> None:
        @self.app.task(queue="mail", retry=3, timeout=30, retry_in=lambda count, error, job: 60)
        def greet(name: str) -> None:
            raise LookupError(name)

        self.app.register(self.worker)
        greet.enqueue("Ann")
        greet.options(priority=5, queue="low").enqueue("Bob")
        greet.enqueue_in(60, "Cleo")
        greet.enqueue_at(datetime.now() + timedelta(hours=1), "Dan")
        self.client.enqueue_bulk([greet.job("Eve")])
        jobs = self.client.jobs()
        self.assertEqual(["mail", "low", "mail", "mail", "mail"], [job.job.queue for job in jobs])
        self.assertEqual([3] * 5, [job.job.retry for job in jobs])
        self.assertEqual([0, 5, 0, 0, 0], [job.job.priority for job in jobs])
        self.assertEqual([False, False, True, True, False], [job.at is not None for job in jobs])
        with self.assertLogs("millrace"):
            self.assertEqual(60, perform(self.worker, "greet", ["Ann"]).retry_in)
        self.assertEqual(30, self.worker._handlers["greet"].timeout)

    def test_async_tasks(self) -> None:
        @self.app.task
        async def note(text: str) -> str:
            await asyncio.sleep(0.001)
            self.seen.append((text, current_job().attempt))
            return text

        @self.app.task
        def plain(text: str) -> None:
            self.seen.append((text, current_job().class_))

        self.app.register(self.worker)
        note.enqueue("a")
        plain.enqueue("b")
        self.client.drain()
        self.assertEqual([("a", 1), ("b", "plain")], self.seen)
        with self.assertRaises(LookupError):
            current_job()

        async def enqueue() -> None:
            self.app.async_client = client = AsyncFake(self.worker)
            await note.enqueue_async("c")
            await note.enqueue_in_async(60, "d")
            await note.enqueue_at_async(12.5, "e")
            self.assertEqual(3, await client.drain())

        asyncio.run(enqueue())
        self.assertEqual([("c", 1), ("d", 1), ("e", 1)], self.seen[2:])


class Mistakes(Case):
    def test_wrong_calls_are_invalid(self) -> None:
        @self.app.task
        def greet(name: str) -> None: ...

        call: Any = greet.enqueue
        for args in ((), ("a", "b")):
            with self.assertRaisesRegex(Invalid, "greet"):
                call(*args)
        with self.assertRaises(Invalid):
            call({1, 2})
        self.assertEqual([], self.client.jobs())

    def test_wrong_args_are_failures_that_say_where(self) -> None:
        @self.app.task
        def ship(order: Order, copies: int = 1, weight: float = 1.5, urgent: Optional[bool] = None) -> None:  # noqa: UP045
            self.seen.append((order.number, copies, weight, urgent))

        self.app.register(self.worker)
        good = {"number": 7, "lines": []}
        for args, error in (
            ([], "missing a required argument"),
            ([good, 1, 2, None, 5], "too many positional arguments"),
            ([good, "2"], r"args\[1\] of ship is '2', not int"),
            ([7], r"args\[0\] of ship is 7, not dict"),
            ([{**good, "lines": [{"product": 5, "price": "1"}]}], r"args\[0\] of ship.lines\[0\].product is 5, not str"),
            ([{**good, "lines": [{"product": "0" * 32, "price": "1", "size": "xl"}]}], "'xl' is not a valid Size"),
            ([{**good, "due": "tomorrow"}], "tomorrow"),
            ([{"lines": []}], "number"),
        ):
            with self.subTest(args=args), self.assertLogs("millrace"):
                result = perform(self.worker, "ship", args)
                self.assertEqual("failed", result.outcome)
                self.assertRegex(str(result.error), error)
        self.assertEqual([], self.seen)
        self.assertEqual("success", perform(self.worker, "ship", [{**good, "newer": 1}, 2, 3]).outcome)
        self.assertEqual([(7, 2, 3, None)], self.seen)

    def test_definitions(self) -> None:
        with self.assertRaisesRegex(TypeError, "keyword-only"):

            @self.app.task
            def keyword(*, name: str) -> None: ...

        with self.assertRaisesRegex(TypeError, "generator"):

            @self.app.task
            def generator(name: str) -> Any:
                yield name

        def unknown(order: "Ordre") -> None: ...  # type: ignore[name-defined]  # noqa: F821

        self.app.task(unknown)
        with self.assertRaisesRegex(NameError, "Ordre"):
            self.app.register(self.worker)
        self.app.task("A")(lambda: None)
        with self.assertRaisesRegex(ValueError, "there is a task A already"):
            self.app.task("A")(lambda: None)

    def test_other_types_are_left_as_they_are(self) -> None:
        @self.app.task
        def take(a, b: Annotated[int, "positive"], c: Sequence[Any], d: tuple[int, ...]) -> None:  # type: ignore[no-untyped-def]
            self.seen.append((a, b, c, d))

        self.app.register(self.worker)
        take.enqueue({"x": 1}, 2, [None, "y"], (3, 4))
        self.client.drain()
        self.assertEqual([({"x": 1}, 2, [None, "y"], (3, 4))], self.seen)


def types() -> None:
    """Contains calls that a type checker must refuse. An unused ignore is an error."""
    app = App(URL)

    @app.task
    def greet(name: str, times: int = 1) -> None: ...

    @app.task(queue="orders")
    async def ship(order: int) -> str:
        return str(order)

    greet.enqueue("Ann", times=2)
    greet.enqueue(1)  # type: ignore[arg-type]
    greet.enqueue_in(60, "Ann", "twice")  # type: ignore[arg-type]
    greet.enqueue_at("soon", "Ann")  # type: ignore[arg-type]
    ship.options(queu="low")  # type: ignore[call-arg]
    ship.enqueue()  # type: ignore[call-arg]
