"""Tasks: functions whose calls are enqueued, with the types of their parameters."""

from __future__ import annotations

import functools
import inspect
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, cast, overload

from . import _convert
from ._handler import check_callable
from ._hosts import DEFAULT_URL
from ._login import Credentials
from ._newjob import NewJob, Options, TaskOptions
from ._outcome import RetryDelay
from ._unique import Decision
from .async_client import AsyncClient
from .client import Client
from .errors import Invalid
from .job import Job
from .worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
_KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
_current: ContextVar[Job] = ContextVar("millrace job")


def current_job() -> Job:
    """Return the job that the task runs for, with its jid, attempt, `Job.wait` and so on.

    Raise LookupError outside of a task.
    """
    return _current.get()


class App:
    """The tasks of a program, and the client that enqueues them::

        app = App("amqp://localhost")

        @app.task(queue="mail", retry=5)
        def greet(name: str) -> None: ...

        greet.enqueue("Ann")

    A worker runs them after ``app.register(worker)``. The options are those of a `Client`.
    ``client`` and ``async_client`` may be set, for instance to a ``Fake`` in tests.
    """

    def __init__(
        self,
        url: str | Sequence[str] = DEFAULT_URL,
        *,
        timeout: float = 30,
        fail_fast: bool = False,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.client = Client(url, timeout=timeout, fail_fast=fail_fast, credentials=credentials, tls=tls)
        self.async_client = AsyncClient(url, timeout=timeout, fail_fast=fail_fast, credentials=credentials, tls=tls)
        self.tasks: dict[str, Task[Any, Any]] = {}

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self, class_: str = "", /, *, retry_in: RetryDelay | None = None, timeout: float | None = None, **options: Unpack[TaskOptions]
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...
    def task(
        self, function: Callable[P, R] | str = "", /, *, retry_in: RetryDelay | None = None, timeout: float | None = None, **options: Any
    ) -> Task[P, R] | Callable[[Callable[P, R]], Task[P, R]]:
        """Make a task of a function, which may be async.

        The class of its jobs is ``class_``, or else the function's name. ``retry_in`` and
        ``timeout`` are those of `Worker.handle`. The options apply to each job.

        Parameters may be dataclasses, datetimes, UUIDs, decimals and enums, and lists, tuples, maps
        and unions of them. Keyword-only parameters are refused, because the args of a job are a
        list, also for programs in other languages.
        """

        def make(function: Callable[P, R]) -> Task[P, R]:
            task = Task(self, name or function.__name__, function, retry_in, timeout, cast(Options, options))
            if task.class_ in self.tasks:
                raise ValueError(f"there is a task {task.class_} already: {self.tasks[task.class_].function!r:.200}")
            self.tasks[task.class_] = task
            return task

        name = function if isinstance(function, str) else ""
        return make if isinstance(function, str) else make(function)

    def register(self, worker: Worker) -> Worker:
        """Register the tasks with a worker."""
        for task in self.tasks.values():
            # Raises NameError for a type that cannot be found, which would fail each job.
            _convert.hints_of(task.function)
            worker.handle(task.class_, task._run, retry_in=task._retry_in, timeout=task._timeout)
        return worker


class Task(Generic[P, R]):
    """A function whose calls are enqueued by `enqueue`. A direct call runs it immediately."""

    def __init__(
        self, app: App, class_: str, function: Callable[P, R], retry_in: RetryDelay | None, timeout: float | None, options: Options
    ) -> None:
        check_callable(f"the task {class_}", function)
        self._app = app
        self.class_ = class_
        self.function = function
        self._retry_in = retry_in
        self._timeout = timeout
        self._options = options
        self._signature = inspect.signature(function)
        for parameter in self._signature.parameters.values():
            if parameter.kind not in _KINDS:
                raise TypeError(f"the task {class_}: its parameter {parameter.name} is keyword-only, and the args of a job are a list")
        functools.update_wrapper(cast(Any, self), function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    def options(self, **options: Unpack[Options]) -> Task[P, R]:
        """Return the task with other options: ``greet.options(queue="low").enqueue("Ann")``."""
        merged = cast(Options, {**self._options, **options})
        return Task(self._app, self.class_, self.function, self._retry_in, self._timeout, merged)

    def job(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """Return the job of a call, for ``enqueue_bulk``."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as e:
            raise Invalid(f"{self.class_}: {e}") from e
        bound.apply_defaults()
        return NewJob(self.class_, [_convert.encode(arg) for arg in bound.args], None, **self._options)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue a call. See `Client.enqueue`."""
        return self._app.client.push(self.job(*args, **kwargs)) or ""

    def enqueue_unique(self, *args: P.args, **kwargs: P.kwargs) -> Decision:
        """Enqueue a call, and return which job stays. See `Client.enqueue_unique`."""
        return self._app.client.push_unique(self.job(*args, **kwargs))

    def enqueue_in(self, delay: float, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue a call that is due after a number of seconds."""
        return self._app.client.push(self._due(time.time() + delay, self.job(*args, **kwargs))) or ""

    def enqueue_at(self, at: float | datetime, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue a call that is due at a given time."""
        return self._app.client.push(self._due(at, self.job(*args, **kwargs))) or ""

    async def enqueue_async(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue a call from async code."""
        return await self._app.async_client.push(self.job(*args, **kwargs)) or ""

    async def enqueue_unique_async(self, *args: P.args, **kwargs: P.kwargs) -> Decision:
        """Enqueue a call from async code, and return which job stays."""
        return await self._app.async_client.push_unique(self.job(*args, **kwargs))

    async def enqueue_in_async(self, delay: float, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue a call that is due after a number of seconds, from async code."""
        return await self._app.async_client.push(self._due(time.time() + delay, self.job(*args, **kwargs))) or ""

    async def enqueue_at_async(self, at: float | datetime, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue a call that is due at a given time, from async code."""
        return await self._app.async_client.push(self._due(at, self.job(*args, **kwargs))) or ""

    def _due(self, at: float | datetime, job: NewJob) -> NewJob:
        job.at = at
        return job

    def _run(self, job: Job) -> object:
        token = _current.set(job)
        try:
            result = cast(Callable[..., object], self.function)(*self._decoded(job.args))
        finally:
            _current.reset(token)
        return _within(job, result) if inspect.isawaitable(result) else result

    def _decoded(self, args: Any) -> list[Any]:
        if not isinstance(args, list):
            raise TypeError(f"the args of {self.class_} are no list")
        self._signature.bind(*args)
        hints = self._hints(len(args))
        return [_convert.decode(hint, arg, f"args[{i}] of {self.class_}") for i, (hint, arg) in enumerate(zip(hints, args, strict=True))]

    def _hints(self, count: int) -> list[Any]:
        """Return the type of each of ``count`` args."""
        types = _convert.hints_of(self.function)
        found: list[Any] = []
        for parameter in self._signature.parameters.values():
            hint = types.get(parameter.name, Any)
            missing = count - len(found)
            found += [hint] * (missing if parameter.kind is inspect.Parameter.VAR_POSITIONAL else min(missing, 1))
        return found


async def _within(job: Job, result: Awaitable[object]) -> object:
    _current.set(job)  # in the context of the coroutine that runs this
    return await result
