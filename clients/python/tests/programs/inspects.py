"""Finds, reschedules, retries and deletes jobs.

The arguments are a sidecar's URL, the password for it, a jid, and the tag of 503 jobs.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from millrace_jobs import ApiError, Inspector, NotFound, Unreachable

url, password, odd, tag = sys.argv[1:]
inspector = Inspector(url)
DUE = datetime(2096, 10, 2, 7, 6, 40, tzinfo=UTC)
LATER = DUE + timedelta(seconds=100_000_000)


def raises(kind: type[Exception], call: Callable[[], object]) -> Exception:
    try:
        call()
    except kind as e:
        return e
    raise AssertionError(f"no {kind.__name__}")


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def due(jid: str) -> datetime | None:
    try:
        entries = inspector.find(jid).entries
    except NotFound:
        return None
    return entries[0].at if entries else None


(entry,) = inspector.find("later").entries
assert (entry.jid, entry.set, entry.at) == ("later", "scheduled-jobs", DUE), entry
assert (entry.class_, entry.queue, entry.attempt) == ("SendEmail", "mails", 0), entry
assert entry.record["job"]["args"] == ["ann@example.com"], entry
tagged = list(inspector.find_by_tag(tag))
assert Counter(one.set for one in tagged) == {"scheduled-jobs": 501, "retries": 1, "dead-jobs": 1}, tagged
assert len({one.jid for one in tagged}) == 503
assert all(tag in one.record["job"]["tags"] for one in tagged)
assert next(inspector.find_by_tag("x")).queue == "tagged"
assert not list(inspector.find_by_tag("no such tag"))
for jid, at in (("later", LATER), ("failed", LATER.timestamp())):
    inspector.reschedule(jid, at)
    eventually(lambda jid=jid: due(jid) == LATER)  # type: ignore[misc]
raises(NotFound, lambda: inspector.reschedule("dead", LATER))

for jid in ("failed", "dead"):
    inspector.retry(jid)


def moved() -> bool:
    mails = inspector.queue("mails")
    return (mails.ready, mails.scheduled, mails.retries, mails.dead) == (2, 2, 0, 0)


eventually(moved)
assert [queue.name for queue in inspector.queues()] == ["mails"]
raises(NotFound, lambda: inspector.retry("later"))

for jid in ("later", odd):
    inspector.delete(jid)
    eventually(lambda jid=jid: due(jid) is None)  # type: ignore[misc]
    raises(NotFound, lambda jid=jid: inspector.delete(jid))  # type: ignore[misc]
inspector.cancel("runs")
raises(NotFound, lambda: inspector.cancel("failed"))
raises(NotFound, lambda: inspector.find("unknown's"))
raises(NotFound, lambda: inspector.queue("no/such queue"))

refused = raises(ApiError, lambda: Inspector(url.replace(password, "wrong")).delete("later"))
assert isinstance(refused, ApiError)
assert (refused.status, refused.code) == (401, "not_authorised"), refused
raises(Unreachable, lambda: Inspector("http://127.0.0.1:1").delete("later"))
wrong = raises(ValueError, lambda: Inspector("127.0.0.1:15680"))
assert "http://user:password@host:port" in str(wrong), wrong
print("inspected")
