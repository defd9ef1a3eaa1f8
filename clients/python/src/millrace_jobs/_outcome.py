"""The outcome of a delivery."""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from . import _wire
from ._pairs import pairs
from ._record import Unwritable, dead_record, error_class, retry_record
from .errors import Discard, HandBack, Kill, RetryIn
from .job import End, Job

SUCCESS, FAILED, DEAD, DISCARDED, EXPIRED = "success", "failed", "dead", "discarded", "expired"

LIMIT = 1e10
"""A backoff must be below this number of seconds. NaN is not below it either."""

RetryDelay = Callable[[int, BaseException, Job], "float | None"]


@dataclass(slots=True)
class Outcome:
    """The record to publish, and the answer to the broker: by default an acknowledgement."""

    stream: str = ""  # that gets the record before the broker gets the answer
    record: bytes | None = None
    requeue: bool = False
    reject: bool = False  # for a message that no worker can run
    status: str = ""  # of its metric, if it has one
    error_class: str = ""
    died: BaseException | None = None  # the error of a job that was given up, for the death hooks
    error: BaseException | None = None
    failure: bool = False  # the attempt failed, so the failure hooks are called
    retry_at: float | None = None
    retry_in: float | None = None  # seconds
    reason: str = ""  # of a dead job

    @property
    def ends(self) -> bool:
        """Whether the job has ended with this delivery.

        It has not if it is handed back, or if it is dropped.
        """
        return not self.requeue and (self.reject or bool(self.status))


_log = logging.getLogger("millrace")

SUCCEEDED = Outcome(status=SUCCESS)


class Said(Exception):
    """An error that the library itself makes."""

    def __init__(self, error_class: str, text: str) -> None:
        super().__init__(text)
        self.error_class = error_class


def judge(
    job: Job, error: BaseException, now: float, *, stopping: bool = False, end: End | None = None, retry_in: RetryDelay | None = None,
    log: logging.Logger | None = None,
) -> Outcome:  # fmt: skip
    """Return the outcome of a job whose handler failed.

    ``end`` is the reason of its cancel signal, if that was set.
    """
    if isinstance(error, Discard):
        return Outcome(status=DISCARDED, error=error)
    if isinstance(error, Kill):
        return _failed(bury(job, error, "killed", now))
    if stopping and (isinstance(error, HandBack) or end == "stopping"):
        return Outcome(requeue=True, error=error)
    if end == "cancelled":
        return Outcome(status=DISCARDED, error=error)
    if job.retry_count >= job.retry:
        if not job.dead:
            return _failed(Outcome(status=DISCARDED, error_class=error_class(error), error=error, died=error, reason="exhausted"))
        return _failed(bury(job, error, "exhausted", now))
    delay = error.seconds if isinstance(error, RetryIn) and abs(error.seconds) < LIMIT else _delay(job, error, retry_in, log)
    outcome = _write(job, error, _wire.RETRIES, FAILED, lambda: retry_record(job, error, now, now + delay))
    if not outcome.reject:
        outcome.retry_at, outcome.retry_in = now + delay, delay
    return _failed(outcome)


def _failed(outcome: Outcome) -> Outcome:
    outcome.failure = True
    return outcome


def _delay(job: Job, error: BaseException, own: RetryDelay | None, log: logging.Logger | None) -> float:
    """Return the handler's own backoff if it is valid, else the default one."""
    if own is not None:
        try:
            after = own(job.retry_count, error, job)
            if after is not None:
                if not (isinstance(after, int | float) and after < LIMIT):
                    raise TypeError(f"it returned {after!r:.200}, not a number of seconds")
                if after > 0:
                    return after
        except BaseException:  # also a BaseException: the job must still get its retry
            with contextlib.suppress(Exception):
                (log or _log).warning("millrace: retry_in failed, the usual backoff is used  %s", pairs(job), exc_info=True)
    return backoff(job.retry_count, random.randint)


def backoff(retry_count: int, draw: Callable[[int, int], int]) -> int:
    """Return the default backoff in seconds. ``draw(least, most)`` returns a random number."""
    return min(retry_count**4 + 15 + draw(0, 30 * (retry_count + 1)), 100 * 365 * 24 * 3600)


def bury(job: Job, error: BaseException, reason: str, now: float) -> Outcome:
    """Return the outcome of a job that becomes a dead job."""
    outcome = _write(job, error, _wire.DEAD, DEAD, lambda: dead_record(job, error, reason, now))
    outcome.died = error
    outcome.reason = outcome.reason or reason
    return outcome


def _write(job: Job, error: BaseException, stream: str, status: str, record: Callable[[], bytes]) -> Outcome:
    """Return an outcome with a record.

    If the sidecar could not read the record, the outcome is a rejection: the sidecar makes a dead
    job of it, shortened.
    """
    name = error_class(error)
    try:
        body = record()
    except Unwritable:
        body = b""
    if not 0 < len(body) <= _wire.MAX_RECORD:
        return Outcome(reject=True, status=DEAD, error_class=name, error=error, died=error, reason="unwritable")
    return Outcome(stream=stream, record=body, status=status, error_class=name, error=error)


def expire(job: Job, now: float) -> Outcome:
    """Return the outcome of a job that expired before it began. No hook is called."""
    if not job.dead:
        return Outcome(status=EXPIRED, error_class="expired")
    outcome = bury(job, Said("expired", "expired before it began"), "expired", now)
    outcome.status, outcome.died = EXPIRED, None
    return outcome


def poisoned(job: Job, deaths: int, now: float) -> Outcome:
    """Return the outcome of a job that killed too many workers."""
    return bury(job, Said("poison", f"its worker died {deaths} times while it ran"), "poison", now)
