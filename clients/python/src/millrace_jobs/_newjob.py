"""A job to enqueue: its checks and its encoding."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack, cast

from . import _wire
from ._unique import Unique, members_of
from ._wire import Message
from .errors import Invalid


class MessageOptions(TypedDict, total=False):
    """The options of a delayed message: those of the job that delivers it."""

    retry: int | bool
    priority: int
    tags: Sequence[str]
    jid: str | None  # None: a new one
    expires_at: float | datetime
    dead: bool
    backtrace: int | bool
    fields: Mapping[str, Any]
    traceparent: str


class TaskOptions(MessageOptions, total=False):
    """The options of a job that a task may set for all its jobs."""

    queue: str
    limited: bool  # whether limits count the job; one with a limit_key is limited anyway
    limit_key: str | None  # what limits per key count the job under, such as a customer; "" is none
    unique: Unique | bool  # other jobs with the same key are duplicates, which do not run


class Options(TaskOptions, total=False):
    """The options of a job."""

    timeout: float


class NewJob:
    """A job for client middleware and ``enqueue_bulk``: ``NewJob("Greet", ["Ann"], queue="low")``.

    ``at`` is when it is due: seconds since the epoch, a datetime, or None for now.
    """

    def __init__(self, class_: str, args: Sequence[Any] = (), at: float | datetime | None = None, **options: Unpack[Options]) -> None:
        self.class_ = class_
        self.args = args
        self.at = at
        self.options = options

    def __repr__(self) -> str:
        return f"NewJob({self.class_!r}, {self.args!r}, {self.at!r}, **{self.options!r})"

    def prepare(self, now: float) -> tuple[str, Message]:
        """Return the jid and the message. Raise Invalid if the job breaks a rule."""
        try:
            return self._prepare(now)
        except (ValueError, TypeError) as e:
            raise Invalid(f"{self.class_!a:.100}: {e}") from e

    def _prepare(self, now: float) -> tuple[str, Message]:
        o = self.options
        jid = o.get("jid") or secrets.token_hex(16)
        queue = o.get("queue", _wire.DEFAULT_QUEUE)
        self._check(queue)
        members: dict[str, Any] = {"jid": jid, "class": self.class_, "args": list(self.args), "queue": queue, "retry_count": 0}
        members["enqueued_at" if self.at is None else "created_at"] = now
        members.update({name: o[name] for name in ("retry", "priority", "dead", "backtrace", "timeout") if name in o})
        if "tags" in o:
            members["tags"] = list(o["tags"])
        if "expires_at" in o:
            members["expires_at"] = seconds(o["expires_at"])
        gate = self._gate()
        if gate is not None:
            members["gate"] = gate
        members.update(o.get("fields") or {})
        exchange, routing_key = (_wire.DIRECT, queue) if gate is None else ("", _wire.GATED)
        message = Message(exchange, routing_key, _wire.dump(members), _wire.short(jid), _wire.short(self.class_))
        if self.at is not None and not (gate and "unique" in gate):
            head = _wire.dump({"type": "scheduled_job", "jid": jid, "scheduled_at": seconds(self.at)})
            message.exchange, message.key, message.body = "", _wire.SCHEDULED, splice(head, message.body)
        if len(message.body) > _wire.MAX_RECORD:
            raise ValueError(f"it has {len(message.body)} bytes, at most {_wire.MAX_RECORD} are allowed")
        message.priority = o.get("priority", 0)
        message.headers = _wire.trace_headers(o.get("traceparent"))
        return jid, message

    def _gate(self) -> dict[str, Any] | None:
        """Return the member ``gate`` of a limited or unique job, or None."""
        key, unique = self.options.get("limit_key"), members_of(self.options.get("unique"))
        if not key and not self.options.get("limited", False) and unique is None:
            return None
        gate: dict[str, Any] = {"key": key} if key else {}
        if unique is not None:
            gate["unique"] = unique
            if self.at is not None:  # a unique job waits in jobs.gated until it is due
                gate["at"] = seconds(self.at)
        return gate

    def as_unique(self) -> NewJob:
        """Return the job, unique by the defaults if it was not unique."""
        if self.options.get("unique"):
            return self
        return NewJob(self.class_, self.args, self.at, **cast(Options, {**self.options, "unique": True}))

    def _check(self, queue: str) -> None:
        o = self.options
        unknown = o.keys() - Options.__annotations__.keys()
        if unknown:
            raise TypeError(f"there is no option {', '.join(sorted(unknown))}; members of your own go into fields")
        if not isinstance(self.class_, str) or not self.class_:
            raise ValueError("class must be a text, and not empty")
        if not isinstance(self.args, list | tuple):
            raise ValueError("args must be a list")
        _wire.check_queue(queue)
        check_number("priority", o.get("priority", 0), _wire.MAX_PRIORITY)
        retry = o.get("retry", 0)
        if not isinstance(retry, bool):
            check_number("retry", retry, _wire.MAX_COUNT)
        if not o.get("timeout", 1) > 0:
            raise ValueError("timeout must be above 0")
        if not all(isinstance(tag, str) for tag in o.get("tags", ())) or isinstance(o.get("tags"), str):
            raise ValueError("tags must be a list of texts")
        if not isinstance(o.get("limited", False), bool):
            raise ValueError("limited must be True or False")
        key = o.get("limit_key")
        if key is not None:
            _wire.check_key("limit_key", key)
        reserved = _wire.JOB_MEMBERS & (o.get("fields") or {}).keys()
        if reserved:
            raise ValueError(f"field {min(reserved)} is named by the format: there is an option for it, or it is not yours")


def check_number(name: str, value: object, most: int, least: int = 0) -> None:
    """Raise ValueError unless the value is a whole number in this range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}")


def seconds(at: float | datetime) -> float:
    """Return a time in seconds since the epoch.

    A datetime without a zone is local time, as everywhere in Python.
    """
    return at.timestamp() if isinstance(at, datetime) else float(at)


def splice(head: bytes, job: bytes) -> bytes:
    """Splice a job, byte for byte, into the head of a record."""
    return b"".join((head[:-1], b',"job":', job, b"}"))
