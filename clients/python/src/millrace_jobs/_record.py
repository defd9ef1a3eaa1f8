"""The record of a job that failed: a small head, and the job's own bytes."""

from __future__ import annotations

import json
import json.decoder
import os
import re
import traceback
from collections.abc import Iterator
from types import CodeType
from typing import Any

from . import _wire
from ._newjob import splice
from .errors import Kill, RetryIn
from .job import Job

MAX_CLASS = 1024
MAX_MESSAGE = 10_000
_HERE = os.path.join(os.path.dirname(__file__), "")
_decoder = json.JSONDecoder(parse_int=str)  # only the positions of values matter
_scanstring: Any = json.decoder.scanstring  # type: ignore[attr-defined]
_space = re.compile(r"[ \t\n\r]*")


class Unwritable(Exception):
    """Raised for a job that has a member of the format twice, or with escapes in its name.

    The sidecar could not read a record with such a job.
    """


def retry_record(job: Job, error: BaseException, failed: float, due: float) -> bytes:
    """Return the record of a retry."""
    head = {"type": "retry", "jid": _wire.valid(job.jid), "retry_at": due, "retry_count": job.retry_count + 1, "failed_at": failed}
    return splice(_wire.dump({**head, **_failure(job, error)}), comes_back_to(job.raw, job.queue))


def dead_record(job: Job, error: BaseException, reason: str, died: float) -> bytes:
    """Return the record of a dead job."""
    head = {"type": "dead_job", "jid": _wire.valid(job.jid), "died_at": died, "retry_count": job.retry_count}
    return splice(_wire.dump({**head, **_failure(job, error), "reason": reason}), comes_back_to(job.raw, job.queue))


def _failure(job: Job, error: BaseException) -> dict[str, str]:
    said = {"error_class": error_class(error), "error_message": message(error)}
    if job.backtrace:
        lines = "\n".join(backtrace(error)[: job.backtrace])
        if lines:
            said["backtrace"] = _wire.valid(lines)
    return said


def _shown(error: BaseException) -> BaseException:
    """Return the error to show: a handler's Kill or RetryIn may wrap another one."""
    if isinstance(error, Kill | RetryIn):
        return error.error or error.__cause__ or error
    return error


def error_class(error: BaseException) -> str:
    """Return the name of an error: its attribute ``error_class``, or else its type."""
    error = _shown(error)
    kind = type(error)
    name = getattr(error, "error_class", None)
    if not isinstance(name, str):
        name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    return _wire.valid(name).encode()[:MAX_CLASS].decode(errors="ignore")


def message(error: BaseException) -> str:
    """Return the message of an error."""
    try:
        text = str(error if isinstance(error, RetryIn | Kill) else _shown(error))
    except Exception as e:  # its __str__ fails
        text = f"({type(e).__name__} while its text was asked for)"
    return _wire.valid(text[:MAX_MESSAGE])


def backtrace(error: BaseException) -> list[str]:
    """Return the stack of an error, innermost line first."""
    own = getattr(error, "backtrace", None)
    return own if isinstance(own, list) else list(_places(_shown(error)))


def is_ours(code: CodeType) -> bool:
    """Return whether code is this library's."""
    return code.co_filename.startswith(_HERE)


def _places(error: BaseException) -> Iterator[str]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        if seen:
            yield f"caused by {error_class(current)}: {message(current)}"
        seen.add(id(current))
        for frame, line in reversed(list(traceback.walk_tb(current.__traceback__))):
            if not is_ours(frame.f_code):
                yield f"{frame.f_code.co_filename}:{line} in {frame.f_code.co_name}"
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def comes_back_to(raw: bytes, queue: str) -> bytes:
    """Return a job with the queue that it came from, if it names none.

    Otherwise it would be retried in the default queue.
    """
    text = raw.decode()
    found: tuple[int, int] | None = None
    seen: set[str] = set()
    for name, spelled, begin, end in _top_level(text):
        if name in _wire.JOB_MEMBERS and (name in seen or name != spelled):
            raise Unwritable(name)
        seen.add(name)
        if name == "queue":
            found = begin, end
    name = json.dumps(queue, ensure_ascii=False)
    if found is None:
        close = text.rindex("}")
        return f'{text[:close]}{"," if seen else ""}"queue":{name}{text[close:]}'.encode()
    begin, end = found
    return raw if text[begin:end] != "null" else f"{text[:begin]}{name}{text[end:]}".encode()


def _top_level(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield the members of a valid object: name, its spelling, begin and end of the value."""
    at = text.index("{") + 1
    while True:
        at = _skip(text, at)
        if text[at] == "}":
            return
        if text[at] == ",":
            at = _skip(text, at + 1)
        name, end = _scanstring(text, at + 1, False)
        spelled = text[at + 1 : end - 1]
        begin = _skip(text, _skip(text, end) + 1)
        _, at = _decoder.raw_decode(text, begin)
        yield name, spelled, begin, at


def _skip(text: str, at: int) -> int:
    found = _space.match(text, at)
    return found.end() if found else at
