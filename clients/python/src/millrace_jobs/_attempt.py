"""One attempt of a job, from its handler to its outcome."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from ._handler import Call, Handler
from ._outcome import SUCCEEDED, Outcome, judge
from ._report import report
from .errors import Discard, Kill, Timeout, UnknownClass
from .job import Job

Failed = Callable[[Job, BaseException], object]


def limit_of(job: Job, handler: Handler) -> float | None:
    """Return how many seconds an attempt may take. The job's own timeout wins."""
    return job.timeout or handler.timeout


def attempt(
    job: Job, handler: Handler | None, perform: Call | None, *, stopping: Callable[[], bool], failed: Failed, log: logging.Logger
) -> Outcome:
    """Run a handler and return the outcome of its job.

    A failure is logged and passed to ``failed`` before the outcome is published.
    """
    error: BaseException
    if handler is None or perform is None:
        error = UnknownClass(job.class_)
    else:
        try:
            perform(job)
        except BaseException as e:  # also a BaseException: one job must not end the process
            error = e
        else:
            return SUCCEEDED
        limit = limit_of(job, handler)
        if job._end == "timeout" and limit and not isinstance(error, Discard | Kill):
            late = Timeout(limit)
            late.__cause__ = error
            error = late
    retry_in = handler.retry_in if handler else None
    outcome = judge(job, error, time.time(), stopping=stopping(), end=job._end, retry_in=retry_in, log=log)
    report(log, job, outcome)
    if outcome.failure:
        failed(job, error)
    return outcome
