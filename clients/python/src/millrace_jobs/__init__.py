"""Background jobs through RabbitMQ or LavinMQ with a Millrace sidecar beside it.

A producer is a `Client`, or in async code an `AsyncClient`. A `Worker` runs functions, plain or async, by the class of a job.
An `Inspector` finds jobs, deletes, retries and reschedules them.
``millrace_jobs.testing`` has all of them without a broker.
``docs/clients.md`` of the project has the rules that this library and those of other languages follow.
"""

from ._handler import Middleware
from ._lane import Lane
from ._login import AsyncCredentials, Credentials
from ._newjob import NewJob, Options
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
    "BulkError",
    "Client",
    "ClientMiddleware",
    "Closed",
    "Credentials",
    "Discard",
    "Enqueue",
    "Entry",
    "Error",
    "FoundJob",
    "HandBack",
    "Inspector",
    "Invalid",
    "Job",
    "Kill",
    "Lane",
    "Middleware",
    "NewJob",
    "NotFound",
    "Options",
    "Queue",
    "Refused",
    "RetryIn",
    "Run",
    "Task",
    "Timeout",
    "Unconfirmed",
    "UnknownClass",
    "Unreachable",
    "Worker",
    "__version__",
    "current_job",
]  # fmt: skip
