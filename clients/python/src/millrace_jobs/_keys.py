"""Keys of unique jobs, for tests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._unique import Decision
from .job import Job


@dataclass
class _Taken:
    jid: str
    until: float  # of the clock that is not set
    over: bool = False


class Keys:
    """Which unique job has which key. Nothing is put off in a test: ``wait`` and ``max`` do nothing."""

    def __init__(self) -> None:
        self._taken: dict[str, _Taken] = {}

    def decide(self, job: Job, replace: Callable[[str], bool]) -> Decision:
        """Give a job its key, or return which job has it.

        ``replace`` removes a job that waits, and returns whether it did.
        """
        unique, now = _unique(job), time.monotonic()
        if unique is None:
            return Decision(job.jid)
        key = _key(job, unique)
        holder = self._taken.get(key)
        if holder and (not holder.over or now < holder.until) and not (unique.get("on") == "replace" and replace(holder.jid)):
            return Decision(holder.jid, duplicate=True)
        self._taken[key] = _Taken(job.jid, now + unique.get("for", 0))
        return Decision(job.jid)

    def begins(self, job: Job) -> None:
        """Free the key of a job that has it only while it waits."""
        unique = _unique(job)
        if unique and unique.get("while") == "waiting":
            self.ends(job)

    def ends(self, job: Job) -> None:
        """Free the key of a job, if it does not have it for a longer time."""
        unique = _unique(job)
        holder = None if unique is None else self._taken.get(_key(job, unique))
        if holder and holder.jid == job.jid:
            holder.over = True

    def clear(self) -> None:
        """Free all keys."""
        self._taken.clear()


def _unique(job: Job) -> dict[str, Any] | None:
    unique: dict[str, Any] | None = (job._members.get("gate") or {}).get("unique")
    return unique


def _key(job: Job, unique: dict[str, Any]) -> str:
    if "key" in unique:
        return f"key:{unique['key']}"
    parts = sorted(set(unique.get("by", ("class", "queue", "args"))))
    return f"by:{json.dumps([(part, _part(job._members, part)) for part in parts], sort_keys=True, default=str)}"


def _part(value: Any, path: str) -> Any:
    """Return the value at a path, in a list of its own, or an empty list if there is none."""
    for step in path.split("."):
        try:
            value = value[step] if isinstance(value, dict) else value[int(step)]
        except (KeyError, IndexError, ValueError, TypeError):
            return []
    return [value]
