"""What can go wrong with a publish, and what a handler raises to say what is to become of its job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Error(Exception):
    """What every error of a client is. ``jid`` is that of the job, where it is about one that could be written down."""

    jid: str | None = None

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} (jid {self.jid})" if self.jid else text


class Invalid(Error):
    """The job breaks a rule. Nothing was sent."""


class Refused(Error):
    """The broker said no: the queue is full or down, or there is none and no sidecar to make it."""


class Unreachable(Error):
    """There was no connection until the deadline. The broker does not have the job."""


class Unconfirmed(Error):
    """It was sent, and the deadline passed, or the client was closed, without an answer: it may have arrived.

    ``jid`` is the job's. To enqueue it again under the same one, give it as an option: ``client.enqueue(..., jid=error.jid)``. It may run
    twice then, as any job may.
    """


class Closed(Error):
    """The client was closed. The broker does not have the job."""


class ApiError(Error):
    """The sidecar answered an `Inspector` with an error.

    ``status`` is that of HTTP, ``code`` what a program branches on (``conflict``, ``access_refused``), ``reason`` a text for people.
    """

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(f"{reason} ({status} {code})")
        self.status = status
        self.code = code
        self.reason = reason


class NotFound(ApiError):
    """There is no such job or queue."""


class BulkError(Error):
    """Some jobs of many were not enqueued.

    ``jids`` has a jid, or None, for each job; ``errors`` has the error of each that failed, by its index, with the ``jid`` of its job.
    """

    def __init__(self, jids: Sequence[str | None], errors: Mapping[int, Error]) -> None:
        index = min(errors)
        super().__init__(f"{len(errors)} of {len(jids)} jobs were not enqueued, the first is job {index}: {errors[index]}")
        self.jids = list(jids)
        self.errors = dict(errors)


class Discard(Exception):
    """Raised by a handler that drops its job: no retry, no dead job."""


class Kill(Exception):
    """Raised by a handler that gives its job up at once: it becomes a dead job.

    The dead job shows the reason; raised ``from`` another error, or made of one, it shows that error.
    """

    def __init__(self, reason: str | BaseException) -> None:
        super().__init__(str(reason))
        self.error: BaseException | None = reason if isinstance(reason, BaseException) else None

    error_class = "Killed"


class RetryIn(Exception):
    """Raised by a handler that fails and says after how many seconds it is to be tried again."""

    def __init__(self, seconds: float, error: str | BaseException = "tried again later") -> None:
        super().__init__(str(error))
        self.seconds = seconds
        self.error: BaseException | None = error if isinstance(error, BaseException) else None


class HandBack(Exception):
    """Raised by a handler that gives up because the worker is stopping: the job goes back to its queue as it came.

    From a worker that is not stopping it is a failure.
    """

    error_class = "HandBack"

    def __init__(self, text: str = "handed back by a worker that is not stopping") -> None:
        super().__init__(text)


class Timeout(Exception):
    """The failure of a job that ran longer than it may."""

    error_class = "Timeout"

    def __init__(self, seconds: float) -> None:
        shown = int(seconds) if float(seconds).is_integer() else seconds
        super().__init__(f"ran longer than {shown} s")


class UnknownClass(Exception):
    """The failure of a job that no handler is for."""

    error_class = "UnknownClass"

    def __init__(self, class_: str) -> None:
        super().__init__(f"no handler for class {class_}")
