"""Errors of a publish, and exceptions with which a handler decides the outcome of its job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Error(Exception):
    """The base class of a client's errors. ``jid`` is that of the job, if the job was valid."""

    jid: str | None = None

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} (jid {self.jid})" if self.jid else text


class Invalid(Error):
    """Raised when a job breaks a rule. Nothing was sent."""


class Refused(Error):
    """Raised when the broker does not take the job.

    Its queue is full or down, or does not exist and no sidecar can make it.
    """


class Unreachable(Error):
    """Raised when there was no connection before the deadline. The broker does not have the job."""


class Unconfirmed(Error):
    """Raised when the job was sent and no answer came. The job may have arrived.

    The deadline passed, or the client was closed. To enqueue the job again under the same id, pass
    its ``jid`` as an option: ``client.enqueue(..., jid=error.jid)``. It may run twice then, as any
    job may.
    """


class Undecided(Error):
    """Raised when a unique job is published, and no leader has said whether it is a duplicate.

    A leader decides about it later. Do not enqueue it again.
    """


class Closed(Error):
    """Raised when the client was closed. The broker does not have the job."""


class ApiError(Error):
    """Raised when the sidecar answers an `Inspector` with an error.

    ``status`` is the HTTP status, ``code`` is for programs (``conflict``, ``access_refused``), and
    ``reason`` is for people.
    """

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(f"{reason} ({status} {code})")
        self.status = status
        self.code = code
        self.reason = reason


class NotFound(ApiError):
    """Raised when there is no such job or queue."""


class BulkError(Error):
    """Raised when some jobs of a bulk were not enqueued.

    ``jids`` has a jid, or None, for each job. ``errors`` has the error of each job that failed, by
    its index. Each error has the ``jid`` of its job.
    """

    def __init__(self, jids: Sequence[str | None], errors: Mapping[int, Error]) -> None:
        index = min(errors)
        super().__init__(f"{len(errors)} of {len(jids)} jobs were not enqueued, the first is job {index}: {errors[index]}")
        self.jids = list(jids)
        self.errors = dict(errors)


class Discard(Exception):
    """Raised by a handler to drop its job: no retry, and no dead job."""


class Kill(Exception):
    """Raised by a handler to end its job without further attempts. It becomes a dead job.

    The dead job shows the reason. If the Kill is raised ``from`` another error, or made of one, the
    dead job shows that error.
    """

    def __init__(self, reason: str | BaseException) -> None:
        super().__init__(str(reason))
        self.error: BaseException | None = reason if isinstance(reason, BaseException) else None

    error_class = "Killed"


class RetryIn(Exception):
    """Raised by a handler to fail with a given number of seconds until the next attempt.

    Raise TypeError for what is no number, such as a timedelta.
    """

    def __init__(self, seconds: float, error: str | BaseException = "tried again later") -> None:
        if not isinstance(seconds, int | float):
            raise TypeError(f"RetryIn takes a number of seconds, not {seconds!r:.200}")
        super().__init__(str(error))
        self.seconds = seconds
        self.error: BaseException | None = error if isinstance(error, BaseException) else None


class HandBack(Exception):
    """Raised by a handler that gives up because the worker is stopping.

    The job goes back to its queue unchanged. If the worker is not stopping, this is a failure.
    """

    error_class = "HandBack"

    def __init__(self, text: str = "handed back by a worker that is not stopping") -> None:
        super().__init__(text)


class Timeout(Exception):
    """The failure of a job that ran longer than its timeout."""

    error_class = "Timeout"

    def __init__(self, seconds: float) -> None:
        shown = int(seconds) if float(seconds).is_integer() else seconds
        super().__init__(f"ran longer than {shown} s")


class UnknownClass(Exception):
    """The failure of a job whose class has no handler."""

    error_class = "UnknownClass"

    def __init__(self, class_: str) -> None:
        super().__init__(f"no handler for class {class_}")
