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

import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections, transaction
from django.utils.module_loading import autodiscover_modules

from .._newjob import NewJob
from ..app import App, Task, current_job
from ..job import Job
from ..worker import Worker
from ._settings import read

__all__ = ["app", "configure_worker", "current_job", "enqueue_on_commit", "make_worker", "push_on_commit", "task"]

P = ParamSpec("P")
Configure = TypeVar("Configure", bound=Callable[[Worker], Any])

_settings = read()
_configure: list[Callable[[Worker], Any]] = []

app = App(_settings.url, **_settings.client)
"""The tasks of the project, and the client that enqueues them."""

task = app.task
"""Makes a task of a function: see `App.task`."""


def enqueue_on_commit(task: Task[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> str:
    """Enqueue a call of a task when the current transaction is committed, and return its jid.

    Outside a transaction, enqueue it now. If the transaction is rolled back, nothing is enqueued.
    Raise Invalid now if the job breaks a rule. An error of the publish is raised after the commit,
    to the code that commits.
    """
    return push_on_commit(task.job(*args, **kwargs))


def push_on_commit(job: NewJob, *, using: str | None = None) -> str:
    """Do the same with a job, for instance one that is due later. ``using`` names the database."""
    jid = job.options.get("jid") or secrets.token_hex(16)
    job.options["jid"] = jid
    job.prepare(time.time())  # checks it
    transaction.on_commit(partial(app.client.push, job), using=using)
    return jid


def configure_worker(function: Configure) -> Configure:
    """Call a function with each worker before it runs, to add hooks, middleware and handlers."""
    _configure.append(function)
    return function


def make_worker(**options: Any) -> Worker:
    """Return a worker that runs the tasks of all installed apps.

    The options are those of a `Worker`, and win over ``MILLRACE["WORKER"]``.
    """
    autodiscover_modules("jobs")
    worker = Worker(_settings.url, **{**_settings.worker, **options})
    worker.use(_database)
    app.register(worker)
    for function in _configure:
        function(worker)
    return worker


def _database(job: Job, call_next: Callable[[], object]) -> None:
    """Close old and broken connections, as Django does at each web request."""
    close_old_connections()
    try:
        call_next()
    finally:
        close_old_connections()
