"""What becomes of a delivery."""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from . import _wire
from ._record import Unwritable, dead_record, error_class, retry_record
from .errors import Discard, HandBack, Kill, RetryIn
from .job import End, Job

SUCCESS, FAILED, DEAD, DISCARDED, EXPIRED = "success", "failed", "dead", "discarded", "expired"

LIMIT = 1e10
"""No number of seconds as large as this is a backoff. NaN is not below it either."""

RetryDelay = Callable[[int, BaseException, Job], "float | None"]


@dataclass(slots=True)
class Outcome:
    """What is to be written, and how the delivery is answered: acknowledged, if nothing else is said."""

    stream: str = ""  # that gets the record first
    record: bytes | None = None
    requeue: bool = False
    reject: bool = False  # no worker can do anything with it
    status: str = ""  # of its metric, if it has one
    error_class: str = ""
    died: BaseException | None = None  # it was given up: the death hooks are called
    error: BaseException | None = None
    failure: bool = False  # the attempt failed: the failure hooks are called
    retry_at: float | None = None
    retry_in: float | None = None  # seconds
    reason: str = ""  # of a dead job


_log = logging.getLogger("millrace")

SUCCEEDED = Outcome(status=SUCCESS)


class Said(Exception):
    """An error that the library itself speaks of."""

    def __init__(self, error_class: str, text: str) -> None:
        super().__init__(text)
        self.error_class = error_class


def judge(
    job: Job, error: BaseException, now: float, *, stopping: bool = False, end: End | None = None, retry_in: RetryDelay | None = None,
    log: logging.Logger | None = None,
) -> Outcome:  # fmt: skip
    """Say what becomes of a job whose handler failed. ``end`` is why its cancel signal was set, if it was."""
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
    """Give the handler's own backoff where it makes sense, else the usual one."""
    if own is not None:
        try:
            after = own(job.retry_count, error, job)
            if after is not None:
                if not (isinstance(after, int | float) and after < LIMIT):
                    raise TypeError(f"it returned {after!r:.200}, not a number of seconds")
                if after > 0:
                    return after
        except BaseException:  # also what is no Exception: it must not keep the job from its retry
            with contextlib.suppress(Exception):
                (log or _log).warning(
                    "millrace: retry_in failed, the usual backoff is used  class=%s jid=%s", job.class_, job.jid, exc_info=True
                )
    return backoff(job.retry_count, random.randint)


def backoff(retry_count: int, draw: Callable[[int, int], int]) -> int:
    """Give the usual backoff in seconds; ``draw(least, most)`` is random."""
    return min(retry_count**4 + 15 + draw(0, 30 * (retry_count + 1)), 100 * 365 * 24 * 3600)


def bury(job: Job, error: BaseException, reason: str, now: float) -> Outcome:
    """Give a job up."""
    outcome = _write(job, error, _wire.DEAD, DEAD, lambda: dead_record(job, error, reason, now))
    outcome.died = error
    outcome.reason = outcome.reason or reason
    return outcome


def _write(job: Job, error: BaseException, stream: str, status: str, record: Callable[[], bytes]) -> Outcome:
    """Write a record. What the sidecar could not read is rejected: it buries that, shortened."""
    name = error_class(error)
    try:
        body = record()
    except Unwritable:
        body = b""
    if not 0 < len(body) <= _wire.MAX_RECORD:
        return Outcome(reject=True, status=DEAD, error_class=name, error=error, died=error, reason="unwritable")
    return Outcome(stream=stream, record=body, status=status, error_class=name, error=error)


def expire(job: Job, now: float) -> Outcome:
    """Give up a job that is past its time before it begins. No hook is called."""
    if not job.dead:
        return Outcome(status=EXPIRED, error_class="expired")
    outcome = bury(job, Said("expired", "expired before it began"), "expired", now)
    outcome.status, outcome.died = EXPIRED, None
    return outcome


def poisoned(job: Job, deaths: int, now: float) -> Outcome:
    """Give up a job that killed too many workers."""
    return bury(job, Said("poison", f"its worker died {deaths} times while it ran"), "poison", now)
