"""Millrace in a Django project.

Put ``"millrace_jobs.django"`` into ``INSTALLED_APPS``. The setting ``MILLRACE`` has the broker's
URL, and options of the client and of the worker::

    MILLRACE = {
        "URL": "amqp://shop:password@broker.example/jobs",
        "CLIENT": {"timeout": 2, "fail_fast": True},
        "WORKER": {"queues": ["default"], "concurrency": 10},
    }

Tasks are in the modules ``jobs`` of the installed apps::

    from millrace_jobs.django import task

    @task(queue="mail", retry=5)
    def welcome(user_id: int) -> None: ...

``manage.py millrace_worker`` runs them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.utils.module_loading import autodiscover_modules

from .._newjob import NewJob
from ..app import App, Task, current_job
from ..errors import Error
from ..job import Job
from ..worker import Worker
from ._settings import read

__all__ = ["app", "configure_worker", "current_job", "enqueue_on_commit", "make_worker", "push_on_commit", "task"]

P = ParamSpec("P")
Configure = TypeVar("Configure", bound=Callable[[Worker], Any])

_log = logging.getLogger("millrace")
_settings = read()
_configure: list[Callable[[Worker], Any]] = []

app = App(_settings.url, **_settings.client)
"""The tasks of the project, and the client that enqueues them."""

task = app.task
"""Makes a task of a function: see `App.task`."""


def enqueue_on_commit(task: Task[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> str:
    """Enqueue a call of a task when the current transaction is committed, and return its jid.

    Outside a transaction, enqueue it now. If the transaction is rolled back, nothing is enqueued.
    Raise Invalid now if the job breaks a rule. If the broker cannot be reached at the commit, that
    is logged for each job, the other jobs are tried, and the code that commits gets the error.
    """
    return push_on_commit(task.job(*args, **kwargs))


def push_on_commit(job: NewJob, *, using: str | None = None) -> str:
    """Do the same with a job, for instance one that is due later. ``using`` names the database."""
    jid, _ = job.prepare(time.time())  # checks it
    job.options["jid"] = jid
    connection = transaction.get_connection(using)
    batch = getattr(connection, "_millrace_batch", None)
    if batch is None or not connection.run_on_commit:
        batch = connection._millrace_batch = _Batch()
    batch.last = _Push(batch, job)
    transaction.on_commit(batch.last, using=using)
    return jid


class _Batch:
    """The jobs of one transaction. An error of one does not stop the others."""

    def __init__(self) -> None:
        self.last: _Push | None = None
        self.errors: list[Error] = []


class _Push:
    def __init__(self, batch: _Batch, job: NewJob) -> None:
        self._batch = batch
        self._job = job

    def __call__(self) -> None:
        try:
            app.client.push(self._job)
        except Error as e:
            _log.error(
                "millrace: job was not enqueued after the commit  class=%s jid=%s: %s", self._job.class_, self._job.options.get("jid"), e
            )
            self._batch.errors.append(e)
        if self._batch.last is self and self._batch.errors:
            raise self._batch.errors[0]


def configure_worker(function: Configure) -> Configure:
    """Call a function with each worker before it runs, to add hooks, middleware and handlers."""
    _configure.append(function)
    return function


def make_worker(**options: Any) -> Worker:
    """Return a worker that runs the tasks of all installed apps.

    The options are those of a `Worker`, and win over ``MILLRACE["WORKER"]``.
    """
    autodiscover_modules("jobs")
    try:
        worker = Worker(_settings.url, **{**_settings.worker, **options})
    except ValueError as e:
        raise ImproperlyConfigured(f"the worker: {e}") from e
    worker.use(_database)
    app.register(worker)
    for function in _configure:
        function(worker)
    return worker


def _database(job: Job, call_next: Callable[[], object]) -> None:
    """Close old and broken connections, as Django does at each web request."""
    _close_old_connections()
    try:
        call_next()
    finally:
        _close_old_connections()


def _close_old_connections() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:  # a test, or a request that runs jobs inline
            connection.close_if_unusable_or_obsolete()
