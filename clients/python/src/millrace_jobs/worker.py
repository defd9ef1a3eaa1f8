"""The worker."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from ._amqp import Lost, unwelcome
from ._core import Core
from ._handler import Call, Handler, Middleware, chain, check_callable, check_sync
from ._hooks import Hook
from ._hosts import DEFAULT_URL, split_hosts
from ._lane import CONCURRENCY, Lane, Queues
from ._login import AsyncCredentials, Credentials, Login
from ._outcome import RetryDelay
from ._pairs import quoted
from ._pauses import Pauses, first_of
from ._serve import serve
from ._session import Session
from ._settle import Settler
from ._version import __version__
from ._wire import DEFAULT_QUEUE
from .errors import Unreachable

F = TypeVar("F", bound=Call)
G = TypeVar("G", bound=Middleware)
H = TypeVar("H", bound=Hook)


class Worker(Core):
    """Runs the jobs of its queues. Register handlers, then call `run`.

    - ``url``, ``credentials`` and ``tls`` are those of a `Client`. ``credentials`` may also be
      async; it is then awaited on the event loop of async handlers.
    - ``queues`` is a list or a map. With a list, the first queue that has a job is served. With a
      map, each queue is served in proportion to its weight. With ``concurrency`` they are the lane
      ``default``.
    - ``lanes`` are further lanes. Without queues and lanes, the worker serves the queue
      ``default``.
    - ``tag`` is part of the identity, ``labels`` are shown beside the worker, and ``version`` is
      your program's.
    - ``stop_timeout`` is how many seconds running jobs may continue after a stop.
    - ``max_deaths`` is after how many deaths of workers a job is poison (0: never).
    - ``declare`` is whether the worker declares missing queues. Otherwise it waits for them.
    - ``heartbeat`` is the number of seconds between heartbeats.
    """

    def __init__(
        self, url: str | Sequence[str] = DEFAULT_URL, *, queues: Queues | None = None, concurrency: int = CONCURRENCY,
        lanes: Sequence[Lane] = (), tag: str = "", labels: Mapping[str, str] | None = None, stop_timeout: float = 25, max_deaths: int = 3,
        version: str = __version__, declare: bool = True, heartbeat: float = 10, log: logging.Logger | None = None,
        credentials: Credentials | AsyncCredentials | None = None, tls: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        urls = split_hosts(url)
        login = Login(urls, credentials, tls)
        if ":" in tag:
            raise ValueError(f"the tag {tag!r} has a colon")
        super().__init__(
            urls, login, _lanes(queues, concurrency, lanes), tag=tag, labels=labels or {}, stop_timeout=stop_timeout, max_deaths=max_deaths,
            version=version, declare=declare, heartbeat=heartbeat, log=log or logging.getLogger("millrace"),
        )  # fmt: skip
        self._middleware: list[Middleware] = []
        self._settler = Settler(self)
        self._session: Session | None = None  # the latest
        # Calls that were requested before the loop existed.
        self._early: list[Callable[[], None]] = []
        self._lock = threading.RLock()  # a signal may come while it is held
        self._running = False

    @overload
    def handle(self, class_: str, handler: F, *, retry_in: RetryDelay | None = None, timeout: float | None = None) -> F: ...
    @overload
    def handle(self, class_: str, *, retry_in: RetryDelay | None = None, timeout: float | None = None) -> Callable[[F], F]: ...
    def handle(
        self, class_: str, handler: F | None = None, *, retry_in: RetryDelay | None = None, timeout: float | None = None
    ) -> F | Callable[[F], F]:
        """Register the function that runs jobs of a class. Call this before `run`.

        Without a function it is a decorator. The function may be async. It is then awaited on an
        event loop that all async handlers of the worker share, and that is not the loop of the
        worker's input and output. When its job should end (see `Job.cancelled`), it is cancelled as
        asyncio cancels a task.

        ``retry_in(retry_count, error, job)`` returns the seconds until the next attempt, or None
        for the default backoff. ``timeout`` is how many seconds a job may run that has no timeout
        of its own.

        Raise TypeError if the function is not usable, ValueError if the class has a handler
        already, and RuntimeError if the worker runs.
        """

        if not isinstance(class_, str) or not class_:
            raise TypeError(f"the class of jobs must be a text, and not empty: {class_!r:.200}")

        def register(call: F) -> F:
            what = f"the handler of {class_}"
            check_callable(what, call, 1)
            if retry_in is not None:
                check_callable(f"retry_in of {class_}", retry_in, 3)
                check_sync(f"retry_in of {class_}", retry_in, "it must be a plain function")
            with self._lock:
                self._refuse_if_running(f"{what} is registered")
                if class_ in self._handlers:
                    raise ValueError(f"{what} is registered already: {self._handlers[class_].call!r:.200}")
                self._handlers[class_] = Handler(call, retry_in, timeout)
            return call

        return register if handler is None else register(handler)

    def use(self, middleware: G) -> G:
        """Add middleware around all handlers: ``middleware(job, next)``. Call this before `run`.

        The first added is the outermost. An error that it raises is the job's failure. It is a
        plain function, also around async handlers: ``next()`` returns when the handler has ended,
        and the handler sees the context variables that the middleware has set.
        """
        check_callable("the middleware", middleware, 2)
        check_sync("the middleware", middleware, "it must be a plain function, also around async handlers, whose end next() waits for")
        with self._lock:
            self._refuse_if_running("the middleware is added")
            self._middleware.append(middleware)
        return middleware

    @overload
    def on(self, event: str, hook: H) -> H: ...
    @overload
    def on(self, event: str) -> Callable[[H], H]: ...
    def on(self, event: str, hook: H | None = None) -> H | Callable[[H], H]:
        """Add a hook: a function, which may be async. Call this before `run`.

        Without a function it is a decorator. ``startup``, ``quiet`` and ``shutdown`` have no
        arguments. ``failure(job, error)`` is called after each failed attempt, in the thread of the
        job, before its retry or death is published. ``death(job, error)`` is called once a job is
        dead. A hook that raises is logged.

        Raise RuntimeError if the worker runs.
        """

        def add(function: H) -> H:
            with self._lock:
                self._refuse_if_running(f"the hook {event} is added")
                self._hooks.add(event, function)
            return function

        return add if hook is None else add(hook)

    def _refuse_if_running(self, what: str) -> None:
        if self._running:
            raise RuntimeError(f"{what} too late: the worker runs already")

    def quiet(self) -> None:
        """Take no more jobs. Running jobs continue. Usable from any thread."""
        self._soon(self._quiet)

    def stop(self) -> None:
        """Make `run` return once all jobs have ended, or were handed back after the stop timeout.

        A second call ends the wait. Usable from any thread.
        """
        self._soon(self._stop)

    def run(self, *, signals: bool = False) -> None:
        """Run jobs until `stop` is called. Reconnect when a connection is lost.

        The calling thread does the input and output. Handlers run in other threads. With
        ``signals`` (in the main thread only), SIGTSTP makes the worker quiet, SIGTERM and SIGINT
        stop it, and a second one stops it immediately. Raise Unreachable if the broker refuses the
        worker at its first attempt.
        """
        with self._lock:
            if self._running:
                raise RuntimeError("a worker runs once")
            self._running = True
        for handler in self._handlers.values():
            handler.perform = chain(handler.call, self._middleware, self._async_loop)
        before = self._install() if signals else {}
        try:
            with asyncio.Runner() as runner:
                runner.run(self._main())
        finally:
            for number, action in before.items():
                signal.signal(number, action)
            for pool in self._pools:
                pool.close()
            self._async_loop.close()

    def _install(self) -> dict[int, Any]:
        actions: dict[int, Callable[[], None]] = {signal.SIGTSTP: self.quiet, signal.SIGTERM: self.stop, signal.SIGINT: self.stop}
        return {number: signal.signal(number, _calling(action)) for number, action in actions.items()}

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            self._loop = loop
            early, self._early = self._early, []
        for call in early:
            call()
        try:
            await self._sessions()
        finally:
            await self._hooks.close()
            self.log.info("millrace: worker stopped  identity=%s", quoted(self.identity))

    def _log_start(self) -> None:
        queues = ",".join(dict.fromkeys(queue for pool in self._pools for queue in pool.queues))
        concurrency = sum(pool.concurrency for pool in self._pools)
        said = (self.version, self.identity, queues, concurrency)
        self.log.info("millrace: worker started  version=%s identity=%s queues=%s concurrency=%s", *[quoted(str(one)) for one in said])

    async def _sessions(self) -> None:
        pauses, first = Pauses(), True
        while not self._stopping:
            why: object
            try:
                session = await self._until_stopped(Session.open(self, self._settler))
                if session is None:
                    break
                self._session = session
                self._settler.ledger = session.ledger
                if first:
                    self._log_start()
                    self._hooks.call("startup")
                first, pauses = False, Pauses()
                why = await serve(session)
                if why is None:
                    return
            except (Lost, OSError, TimeoutError) as e:
                if first and unwelcome(e):
                    raise Unreachable(f"the broker turns us away: {e}") from e
                why = e
            self.log.warning("millrace: no connection to the broker, trying again: %s", why)
            await self._until_stopped(pauses.wait())
        await self._settler.wait(self.stop_timeout, self._hurried)
        await self._settler.hand_back()
        await self._hooks.call_and_wait("shutdown")

    async def _until_stopped(self, what: Any) -> Any:
        """Wait for something, or until the worker is stopped. Return None in that case."""
        doing, stopped = asyncio.ensure_future(what), asyncio.ensure_future(self._stopped.wait())
        await first_of(doing, stopped)
        stopped.cancel()
        if doing.done():
            return doing.result()
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
        return None

    def _soon(self, call: Callable[[], None]) -> None:
        with self._lock:
            if not hasattr(self, "_loop"):
                self._early.append(call)
                return
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)


def _lanes(queues: Queues | None, concurrency: int, lanes: Sequence[Lane]) -> list[Lane]:
    """Return all lanes, the lane ``default`` first."""
    found = list(lanes)
    if queues or not lanes:
        found.insert(0, Lane("default", queues or [DEFAULT_QUEUE], concurrency))
    for lane in found:
        lane.check()
    if len({lane.name for lane in found}) != len(found):
        raise ValueError("two lanes have one name")
    return found


def _calling(action: Callable[[], None]) -> Callable[[int, object], None]:
    return lambda _number, _frame: action()
