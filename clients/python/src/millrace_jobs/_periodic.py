"""Periodic jobs, as a program defines them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ._newjob import NewJob, Options
from .errors import Invalid

OF_TICKS = ("jid", "expires_at", "traceparent")
"""Options that a periodic job cannot have, because each tick sets them."""


@dataclass(frozen=True, kw_only=True)
class PeriodicJob:
    """A job that the leader enqueues again and again.

    ``cron`` or ``every`` says when it is due. ``cron`` has five fields (``"0 3 * * *"``), or is
    ``@hourly``, ``@daily``, ``@weekly``, ``@monthly`` or ``@yearly``, in the time zone ``tz``.
    ``every`` is a whole number of seconds. ``options`` are those of the job. What is None has the
    default of a definition.
    """

    name: str
    class_: str
    args: Sequence[Any] = ()
    options: Options = field(default_factory=Options)
    cron: str | None = None
    every: int | None = None
    tz: str | None = None
    jitter: float | None = None
    expires_in: float | None = None
    grace: float | None = None
    catch_up: Literal["skip", "last", "all"] | None = None
    catch_up_max: int | None = None
    overlap: Literal["allow", "skip"] | None = None
    except_: Sequence[str] = ()
    paused: bool = False

    def definition(self) -> dict[str, Any]:
        """Return the definition. Raise Invalid if the job breaks a rule."""
        ours = [name for name in OF_TICKS if name in self.options]
        if ours:
            raise Invalid(f"periodic job {self.name!a:.100}: each tick sets {ours[0]}")
        if self.options.get("unique"):
            raise Invalid(f"periodic job {self.name!a:.100} cannot be unique: set overlap")
        _, message = NewJob(self.class_, self.args, None, **self.options).prepare(time.time())
        job = json.loads(message.body)
        for name in ("jid", "retry_count", "enqueued_at"):
            del job[name]
        members: dict[str, Any] = {"name": self.name, "job": job}
        for name in ("cron", "every", "tz", "jitter", "expires_in", "grace", "catch_up", "catch_up_max", "overlap"):
            value = getattr(self, name)
            if value is not None:
                members[name] = value
        if self.except_:
            members["except"] = list(self.except_)
        if self.paused:
            members["paused"] = True
        return members
