"""The handlers, middleware and hooks that a program registers. Unusable ones are refused."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._async import Loop
from ._outcome import RetryDelay
from .job import Job

Call = Callable[[Job], object]
Middleware = Callable[[Job, Callable[[], object]], object]


@dataclass
class Handler:
    """A function with its options."""

    call: Call
    retry_in: RetryDelay | None = None
    timeout: float | None = None
    perform: Call | None = None  # with all middleware around it, once the worker runs


def is_async(call: object) -> bool:
    """Return whether a call makes a coroutine."""
    return any(inspect.iscoroutinefunction(function) for function in _functions(call))


def check_callable(what: str, call: object, arguments: int | None = None) -> None:
    """Raise TypeError unless it is callable, takes so many arguments, and is no generator."""
    if not callable(call):
        raise TypeError(f"{what} is not a function: {call!r:.200}")
    for function in _functions(call):
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{what} is a generator function (it has a yield): calling it would not run it")
    if arguments is None:
        return
    try:
        signature = inspect.signature(call, follow_wrapped=False)
    except (ValueError, TypeError):  # some builtins have no signature
        return
    try:
        signature.bind(*[None] * arguments)
    except TypeError as e:
        raise TypeError(f"{what} must take {arguments} argument{'' if arguments == 1 else 's'}: {e}") from None


def check_sync(what: str, call: object, instead: str) -> None:
    """Raise TypeError for a coroutine function, which nothing would await."""
    if is_async(call):
        raise TypeError(f"{what} is async: {instead}")


def _functions(call: object) -> list[Any]:
    """List the functions to inspect: that of a partial, or the ``__call__`` of an object."""
    while isinstance(call, functools.partial):
        call = call.func
    return [call] if isinstance(call, type) else [call, getattr(call, "__call__", None)]  # noqa: B004


def chain(call: Call, middleware: list[Middleware], loop: Loop) -> Call:
    """Put middleware around a handler, the first one outermost."""

    def innermost(job: Job) -> object:
        return settled(call(job), loop, job)

    chained: Call = innermost
    for outer in reversed(middleware):
        chained = _around(outer, chained)
    return chained


def _around(middleware: Middleware, call: Call) -> Call:
    def around(job: Job) -> object:
        result = middleware(job, lambda: call(job))
        if inspect.iscoroutine(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
            if inspect.iscoroutine(result):
                result.close()
            raise TypeError(f"the middleware {middleware!r:.200} returned a {type(result).__name__}, whose body has not run")
        return result

    return around


def settled(result: Any, loop: Loop, job: Job | None = None) -> Any:
    """Return the result of a handler or hook, after awaiting it if necessary.

    Raise TypeError if it is a generator, which has not run.
    """
    if result is None:
        return None
    if inspect.isawaitable(result):
        return loop.run(result, job)
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError("it returned a generator, whose body has not run")
    return result
