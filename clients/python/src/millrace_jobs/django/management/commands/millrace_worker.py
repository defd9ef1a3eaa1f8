"""The command ``manage.py millrace_worker``."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from millrace_jobs import Unreachable
from millrace_jobs._command import log_to_stderr
from millrace_jobs.django import make_worker


class Command(BaseCommand):
    """Runs a worker."""

    help = "Run the jobs of this project until SIGTERM or SIGINT. SIGTSTP: take no more jobs."
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the worker."""
        parser.add_argument(
            "--queue",
            metavar="NAME[,WEIGHT]",
            action="append",
            type=_queue,
            help="a queue; the first given is served first, or each by its weight",
        )
        parser.add_argument("--concurrency", metavar="N", type=int, help="how many jobs run at once")
        parser.add_argument("--stop-timeout", metavar="SECONDS", type=float, help="how long running jobs may continue after a stop (25)")
        parser.add_argument("--tag", help="a part of the identity that monitoring shows")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the worker."""
        given = {name: options[name] for name in ("concurrency", "stop_timeout", "tag") if options[name] is not None}
        if options["queue"]:
            given |= {"queues": _queues(options["queue"]), "lanes": ()}
        log_to_stderr()
        try:
            make_worker(**given).run(signals=True)
        except (ImproperlyConfigured, Unreachable) as e:
            raise CommandError(str(e)) from e


def _queue(text: str) -> tuple[str, int | None]:
    name, comma, weight = text.rpartition(",")
    if not comma:
        return text, None
    if not weight.isascii() or not weight.isdigit():
        raise ArgumentTypeError(f"the weight of {name} must be a number: {weight!r}")
    return name, int(weight)


def _queues(given: list[tuple[str, int | None]]) -> list[str] | dict[str, int]:
    """Return the queues: either all have a weight, or none has one."""
    if all(weight is None for _, weight in given):
        return [name for name, _ in given]
    return {name: 1 if weight is None else weight for name, weight in given}
