"""Background jobs through RabbitMQ or LavinMQ, with a Millrace sidecar beside the broker.

- A `Client` enqueues jobs, and defines periodic jobs, limits and governed queues. In async code it is
  an `AsyncClient`.
- A `Worker` runs jobs with plain or async functions, one for each class of jobs.
- An `Inspector` finds, deletes, retries and reschedules jobs.
- ``millrace_jobs.testing`` has producers and workers that need no broker.

The rules for this library and those of other languages are in the project's ``docs/clients.md``.
"""

from ._define import Defined
from ._governed import GovernedQueue
from ._handler import Middleware
from ._lane import Lane
from ._limit import Bound, Limit, Rate
from ._login import AsyncCredentials, Credentials
from ._message import MessageProperties
from ._newjob import MessageOptions, NewJob, Options
from ._periodic import PeriodicJob
from ._unique import Decision, Unique
from ._version import __version__
from .app import App, Task, current_job
from .async_client import AsyncClient, AsyncClientMiddleware, AsyncEnqueue
from .client import Client, ClientMiddleware, Enqueue
from .errors import (
    ApiError,
    BulkError,
    Closed,
    Discard,
    Error,
    HandBack,
    Invalid,
    Kill,
    NotFound,
    Refused,
    RetryIn,
    Timeout,
    Unconfirmed,
    Undecided,
    UnknownClass,
    Unreachable,
)
from .inspector import Entry, FoundJob, Inspector, Queue, Run
from .job import Job
from .worker import Worker

__all__ = [
    "ApiError",
    "App",
    "AsyncClient",
    "AsyncClientMiddleware",
    "AsyncCredentials",
    "AsyncEnqueue",
    "Bound",
    "BulkError",
    "Client",
    "ClientMiddleware",
    "Closed",
    "Credentials",
    "Decision",
    "Defined",
    "Discard",
    "Enqueue",
    "Entry",
    "Error",
    "FoundJob",
    "GovernedQueue",
    "HandBack",
    "Inspector",
    "Invalid",
    "Job",
    "Kill",
    "Lane",
    "Limit",
    "MessageOptions",
    "MessageProperties",
    "Middleware",
    "NewJob",
    "NotFound",
    "Options",
    "PeriodicJob",
    "Queue",
    "Rate",
    "Refused",
    "RetryIn",
    "Run",
    "Task",
    "Timeout",
    "Unconfirmed",
    "Undecided",
    "Unique",
    "UnknownClass",
    "Unreachable",
    "Worker",
    "__version__",
    "current_job",
]  # fmt: skip
