"""A worker's log of jobs that did not end well."""

from __future__ import annotations

import contextlib
import logging
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from ._outcome import DEAD, DISCARDED, EXPIRED, FAILED, Outcome
from ._pairs import pairs
from ._record import error_class, is_ours, message
from .job import Job

SHOWN = 500
"""How many characters of an error's message are in the log line. The stack below it has all."""


def report(log: logging.Logger, job: Job, outcome: Outcome) -> None:
    """Log an outcome.

    Failures and deaths are warnings. Discarded and handed back jobs are information.
    """
    with contextlib.suppress(Exception):  # an error of the logger does not change the outcome
        if outcome.requeue:
            log.info("millrace: job handed back  %s", pairs(job))
        elif outcome.status == EXPIRED:
            dead = outcome.record is not None or outcome.reject
            level = logging.WARNING if dead else logging.INFO
            log.log(level, "millrace: job expired  %s", pairs(job, next=DEAD if dead else DISCARDED))
        elif outcome.error_class and outcome.error:
            _failed(log, job, outcome, outcome.error)
        elif outcome.status == DISCARDED:
            log.info("millrace: job discarded  %s", pairs(job, reason=message(outcome.error) if outcome.error else ""))


def _failed(log: logging.Logger, job: Job, outcome: Outcome, error: BaseException) -> None:
    next_: dict[str, Any] = {"next": "retry" if outcome.status == FAILED else outcome.status}
    if outcome.retry_at is not None and outcome.retry_in is not None:
        next_["retry_in"] = f"{outcome.retry_in:.4g}s" if outcome.retry_in < 1000 else f"{outcome.retry_in:.0f}s"
        with contextlib.suppress(ValueError, OverflowError, OSError):  # after the year 9999
            next_["retry_at"] = datetime.fromtimestamp(outcome.retry_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    elif outcome.reason:
        next_["reason"] = outcome.reason
    name, text = error_class(error), message(error)
    log.warning(
        "millrace: job failed  %s",
        pairs(job, **next_, error_class=name, error=text[:SHOWN]),
        exc_info=(type(error), error, _from_the_handler(error.__traceback__)),
        extra={"job_class": job.class_, "jid": job.jid, "attempt": job.attempt, "queue": job.queue, "error_class": name, **next_},
    )


def _from_the_handler(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this library before the program's own code."""
    at = trace
    while at and is_ours(at.tb_frame.f_code):
        at = at.tb_next
    return at or trace
