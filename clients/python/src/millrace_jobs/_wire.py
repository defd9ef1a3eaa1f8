"""Names and rules of the wire format: see docs/wire-format.md."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

DIRECT = "jobs.direct"
CONTROL = "jobs.control"
BEGINS = "jobs.begins"
LEADER = "jobs.leader"
GATED = "jobs.gated"
REPLY = "amq.rabbitmq.reply-to"
ENDS = "jobs.ends"
SCHEDULED = "scheduled_jobs"
RETRIES = "retries"
DEAD = "dead_jobs"
HEARTBEATS = "heartbeats"
METRICS = "job_metrics"

QUEUE_PREFIX = "queue."
DEFAULT_QUEUE = "default"
DEFAULT_RETRY = 25
MAX_PRIORITY = 10
MAX_RECORD = 16 << 20
MAX_QUEUE_NAME = 200
MAX_LIMIT_KEY = 200
MAX_COUNT = 1 << 31
MAX_SHORT = 255  # bytes in an AMQP short string

JOB_MEMBERS = frozenset(
    ("jid", "class", "args", "queue", "retry", "retry_count", "priority", "tags", "expires_at", "timeout", "dead", "backtrace")
    + ("enqueued_at", "created_at", "failed_at", "error_class", "error_message", "millrace", "gate")
)
"""The members of a job that the format names."""


@dataclass(slots=True)
class Message:
    """A message to publish, and where to publish it."""

    exchange: str
    key: str
    body: bytes
    message_id: str | None = None
    type: str | None = None
    priority: int = 0
    headers: dict[str, Any] = field(default_factory=dict)
    reply_to: str | None = None
    mandatory: bool = True


def check_queue(name: str) -> None:
    """Raise ValueError if this cannot be the name of a queue."""
    if not name:
        raise ValueError("queue name is empty")
    _check_text("queue name", name, MAX_QUEUE_NAME)


def check_key(what: str, key: str) -> None:
    """Raise ValueError if no limited or unique job can have this key."""
    if not isinstance(key, str):
        raise ValueError(f"{what} must be a text")
    _check_text(what, key, MAX_LIMIT_KEY)


def _check_text(what: str, text: str, most: int) -> None:
    if len(text.encode()) > most:  # UnicodeEncodeError is a ValueError
        raise ValueError(f"{what} is longer than {most} bytes")
    if any(unicodedata.category(c) == "Cc" for c in text):
        raise ValueError(f"{what} has a control character")


def short(text: str) -> str | None:
    """Return a text for a message's property, or None if the property cannot have it."""
    if not text or text == "amqp-1.0":
        return None
    try:
        return text if len(text.encode()) <= MAX_SHORT else None
    except UnicodeEncodeError:
        return None


def traceparent(value: object) -> str | None:
    """Return a trace context, or None if the value is not a valid one."""
    return value if isinstance(value, str) and re.fullmatch(r"[\x20-\x7e]{1,255}", value) else None


def trace_headers(value: object) -> dict[str, Any]:
    """Return the headers that pass a trace context on."""
    trace = traceparent(value)
    return {"traceparent": trace} if trace else {}


def clock(value: object) -> float | None:
    """Return a time of the format in seconds. A number too large for seconds is milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if abs(value) > 1e11:
        value = value / 1000 if abs(value) <= 1e15 else math.inf
    return float(value) if abs(value) <= 1e11 else None


def dump(value: object) -> bytes:
    """Write JSON. Raise ValueError if JSON cannot have the value."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, RecursionError) as e:
        raise ValueError(str(e)) from e


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def load(text: str) -> Any:
    """Read JSON. Raise ValueError if it is not JSON, or nested too deep.

    Integers with more digits than Python converts to an int become Decimals, which are exact too.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError:
        raise
    except RecursionError as e:
        raise ValueError("nested too deep") from e
    except ValueError:
        return json.loads(text, parse_constant=_no_constant, parse_int=_integer)


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) < 4300 else Decimal(digits)


_SURROGATES = re.compile("[\ud800-\udfff]")


def valid(text: str) -> str:
    """Replace what is not Unicode."""
    return _SURROGATES.sub("\ufffd", text)


def read_object(body: bytes) -> dict[str, Any]:
    """Return a JSON object, which is empty if the body is none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
