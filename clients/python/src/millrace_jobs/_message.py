"""A delayed message: its checks and its form in a job."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict

from . import _wire
from ._newjob import MessageOptions, NewJob, check_number, seconds
from .errors import Invalid

CLASS = "millrace.Message"
QUEUE = "millrace.messages"


class MessageProperties(TypedDict, total=False):
    """The properties of a delayed message."""

    content_type: str
    content_encoding: str
    correlation_id: str
    reply_to: str
    message_id: str
    type: str
    app_id: str
    expiration: str  # milliseconds after the delivery
    delivery_mode: int  # 2, the default: persistent; 1: not
    priority: int  # 0 to 255
    timestamp: float | datetime
    headers: Mapping[str, Any]


_OTHERS = {"delivery_mode", "priority", "timestamp", "headers"}


def new_message(
    at: float | datetime, exchange: str, routing_key: str, body: str | bytes, properties: MessageProperties | None, options: MessageOptions
) -> NewJob:
    """Return the job that delivers a message. Raise Invalid if the message breaks a rule."""
    try:
        _check_short("exchange", exchange)
        _check_short("routing_key", routing_key)
        message: dict[str, Any] = {"exchange": exchange, "routing_key": routing_key, **_encoded(body)}
        if properties:
            message["properties"] = {name: _property(name, value) for name, value in properties.items()}
        if "queue" in options:
            raise ValueError(f"a message has no option queue: it waits in {QUEUE}")
        if "limited" in options or "limit_key" in options:
            raise ValueError("limits count no messages: no worker reports their end")
        if "unique" in options:
            raise ValueError("a message cannot be unique")
    except (ValueError, TypeError, RecursionError) as e:
        raise Invalid(f"message to {exchange!a:.100}: {e}") from e
    return NewJob(CLASS, [message], at, queue=QUEUE, **options)


def _encoded(body: object) -> dict[str, str]:
    if isinstance(body, str):
        body = body.encode()  # UnicodeEncodeError is a ValueError
    if not isinstance(body, bytes | bytearray | memoryview):
        raise TypeError(f"the body must be a text or bytes, not {type(body).__name__}")
    body = bytes(body)
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _property(name: str, value: Any) -> Any:
    """Return the value of a property as JSON has it."""
    if name not in MessageProperties.__annotations__:
        raise ValueError(f"there is no property {name}")
    if name not in _OTHERS:
        _check_short(name, value)
    if name == "expiration" and not (value.isascii() and value.isdigit()):
        raise ValueError("expiration must be a text of milliseconds, such as '60000'")
    if name == "delivery_mode":
        check_number(name, value, 2, least=1)
    if name == "priority":
        check_number(name, value, 255)
    if name == "timestamp":
        value = seconds(value)
        if not 0 <= value < 1 << 63:
            raise ValueError("timestamp must not be before 1970")
        value = int(value)
    if name == "headers":
        if not isinstance(value, Mapping):
            raise TypeError("headers must be a map")
        value = dict(value)
        _check_header(value)
    return value


def _check_header(value: object) -> None:
    """Raise an error if JSON does not have exactly this value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_short("the name of a header", name)
            _check_header(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_header(inner)
    elif isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError(f"a header has the integer {value:.0e}, which needs more than 64 bits")
    elif value is not None and not isinstance(value, str | float):
        raise TypeError(f"a header has a {type(value).__name__}, which JSON does not have: pass a text or a number")


def _check_short(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text")
    if len(value.encode()) > _wire.MAX_SHORT:
        raise ValueError(f"{name} is longer than {_wire.MAX_SHORT} bytes")
