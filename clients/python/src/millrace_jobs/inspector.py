"""Finds jobs and acts on them, over the REST API of a sidecar."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from ._newjob import seconds
from .errors import ApiError, NotFound, Unconfirmed, Unreachable

DEFAULT_API_URL = "http://guest:guest@127.0.0.1:15680"
_PAGE = 500
_SETS = ("scheduled-jobs", "retries", "dead-jobs", "gated-jobs")


@dataclass(frozen=True)
class Entry:
    """A job that waits outside of its queue.

    ``set`` is ``scheduled-jobs``, ``retries``, ``dead-jobs`` or ``gated-jobs``. ``at`` is when the
    job is due, or when it died. ``attempt`` counts the failed attempts. ``record`` is the published
    record, with the job as its member ``job``.
    """

    jid: str
    set: str
    at: datetime
    class_: str
    queue: str
    attempt: int
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """An attempt that a worker reported.

    ``status`` is ``success``, ``failed``, ``dead``, ``discarded`` or ``expired``.
    """

    at: datetime
    class_: str
    queue: str
    status: str
    attempt: int
    error_class: str | None


@dataclass(frozen=True)
class FoundJob:
    """A job: where it waits, and how its attempts ended, the newest first.

    A job without an entry is in its queue, runs, or has ended.
    """

    jid: str
    entries: list[Entry]
    runs: list[Run]


@dataclass(frozen=True)
class Queue:
    """How full a queue is.

    ``ready`` counts jobs that wait in it, and ``running`` jobs that workers have (None if the
    broker does not report it). ``scheduled``, ``retries`` and ``dead`` count jobs of this queue
    that wait elsewhere. ``state`` is ``running``, ``idle``, ``no_consumers``, ``paused``, or a
    state of the broker.
    """

    name: str
    state: str
    ready: int
    running: int | None
    scheduled: int
    retries: int
    dead: int


class Inspector:
    """Finds jobs and acts on them, over the REST API of a sidecar. It is thread-safe.

    ``url`` has the name and password of a user of the broker: ``https://user:password@host:15680``.
    A ``token`` replaces them, if the sidecar has tokens. ``timeout`` is how many seconds a call may
    take. In async code use ``asyncio.to_thread``.

    Every method may raise:

    - `ApiError`: the sidecar refuses the request
    - `NotFound`: there is no such job or queue
    - `Unreachable`: no sidecar was reached
    - `Unconfirmed`: there was no answer. The action may have been done, and it is safe to repeat it
    """

    def __init__(
        self, url: str = DEFAULT_API_URL, *, token: str | None = None, timeout: float = 10, tls: ssl.SSLContext | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the sidecar's URL must be http://user:password@host:port, or https://")
        self._base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        credentials = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        self._authorization = f"Bearer {token}" if token else "Basic " + base64.b64encode(credentials.encode()).decode()
        self._timeout = timeout
        self._tls = tls

    def find(self, jid: str) -> FoundJob:
        """Return a job. Raise `NotFound` if it is not known."""
        found = self._call("GET", f"jobs/{quote(jid, safe='')}")
        entries = [_entry(item, jid, item["millrace"]["set"]) for item in found["entries"]]
        return FoundJob(jid, entries, [_run(run) for run in found.get("runs", [])])

    def find_by_tag(self, tag: str) -> Iterator[Entry]:
        """Return the jobs with a tag that wait outside of their queues.

        They are scheduled, wait for a retry, are dead, or wait until their queue exists. The
        iterator asks the sidecar for some at a time. A job that moves meanwhile may come twice.
        Records over 64 KiB are not searched.
        """
        for name in _SETS:
            query = {"tag": tag, "page": 1, "page_size": _PAGE}
            while True:
                page = self._call("GET", f"{name}?{urlencode(query)}")
                for item in page["items"]:
                    yield _entry(item, item.get("jid") or item["job"].get("jid", ""), name)
                if page["next"] is None:
                    break
                query["next"] = page["next"]

    def delete(self, jid: str) -> None:
        """Delete a job that is scheduled, waits for a retry, or is dead.

        Raise `NotFound` if it is none of these.
        """
        self._call("DELETE", f"jobs/{quote(jid, safe='')}")

    def cancel(self, jid: str) -> None:
        """Ask the worker that runs a job to cancel it.

        `Job.cancelled` of that job then returns True. Raise `NotFound` if no worker reports that it
        runs the job.
        """
        self._call("POST", f"jobs/{quote(jid, safe='')}/cancel")

    def retry(self, jid: str) -> None:
        """Put a job that waits for a retry, or is dead, into its queue now.

        Raise `NotFound` if it is neither.
        """
        self._call("POST", f"{self._set(jid, 'retries', 'dead-jobs')}/{quote(jid, safe='')}/retry")

    def reschedule(self, jid: str, at: float | datetime) -> None:
        """Set when a scheduled job, or a retry, is due. Raise `NotFound` if it is neither."""
        self._call("PATCH", f"{self._set(jid, 'scheduled-jobs', 'retries')}/{quote(jid, safe='')}", {"at": seconds(at)})

    def queue(self, name: str) -> Queue:
        """Return how full a queue is. Raise `NotFound` if there is no such queue."""
        return _queue(self._call("GET", f"job-queues/{quote(name, safe='')}"))

    def queues(self) -> list[Queue]:
        """Return all queues, by name."""
        found: list[Queue] = []
        while True:
            page = self._call("GET", f"job-queues?limit={_PAGE}&offset={len(found)}")
            found.extend(_queue(one) for one in page)
            if len(page) < _PAGE:
                return found

    def _set(self, jid: str, *sets: str) -> str:
        """Return which of the sets the job waits in."""
        for entry in self.find(jid).entries:
            if entry.set in sets:
                return entry.set
        raise NotFound(404, "not_found", f"job {jid} is not in {' or '.join(sets)}")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        request = urllib.request.Request(f"{self._base}/api/{path}", method=method)
        request.add_unredirected_header("Authorization", self._authorization)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=self._timeout, context=self._tls) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as e:
            raise _error(e) from e
        except urllib.error.URLError as e:
            raise Unreachable(f"no sidecar at {self._base}: {e.reason}") from e
        except (OSError, http.client.HTTPException) as e:
            raise Unconfirmed(f"no answer from the sidecar at {self._base}: {e}") from e


def _error(e: urllib.error.HTTPError) -> ApiError | Unconfirmed:
    try:
        said = json.loads(e.read())
        code, reason = str(said["error"]), str(said["reason"])
    except (ValueError, LookupError, TypeError, OSError, http.client.HTTPException):
        code, reason = "unknown", f"this is no answer of a sidecar: {e.reason}"
    if e.code == 504:
        return Unconfirmed(reason)
    return (NotFound if e.code == 404 else ApiError)(e.code, code, reason)


def _entry(item: Mapping[str, Any], jid: str, name: str) -> Entry:
    about = item["millrace"]
    record = {name: value for name, value in item.items() if name != "millrace"}
    return Entry(jid, name, _time(about["at"]), about["class"], about["queue"], about["attempt"], record)


def _run(run: Mapping[str, Any]) -> Run:
    return Run(_time(run["at"]), run["class"], run["queue"], run["status"], run["attempt"], run.get("error_class"))


def _queue(one: Mapping[str, Any]) -> Queue:
    return Queue(one["name"], one["state"], one["ready"], one["unacked"], one["scheduled"], one["retries"], one["dead"])


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
