"""The fold of the stream ``jobs.begins``, from which workers find jobs that kill their workers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from . import _wire
from .job import Job

MEMORY = 72 * 3600.0
"""How many seconds a dead process, or a job that never ended, is remembered."""


class Key(NamedTuple):
    """The identity of a job. The jid alone is not enough: two jobs may share it."""

    jid: str
    body: str


def key_of(job: Job) -> Key:
    """Return a job's key."""
    return Key(job.jid, hashlib.sha256(job.raw).hexdigest()[:16])


@dataclass
class Process:
    """A worker process, as the stream describes it."""

    queue: str  # its exclusive queue, which vanishes with its connection
    queues: list[str]
    opened: int  # the number of its latest record ``opened``
    heard: float
    died: float | None = None
    closed: bool = False

    def dead(self, gone: set[str]) -> bool:
        """Return whether the process died, or vanished without closing."""
        return not self.closed and (self.died is not None or self.queue in gone)


@dataclass
class Suspect:
    """A job that began after an earlier delivery."""

    processes: set[str] = field(default_factory=set)  # in which it began, or may have begun
    heard: float = 0


class Begins:
    """The state that follows from the records read so far."""

    def __init__(self) -> None:
        self.processes: dict[str, Process] = {}
        self.suspects: dict[Key, Suspect] = {}
        self._records = 0

    def apply(self, body: bytes) -> dict[str, Any] | None:
        """Fold one record, and return it. Return None if the body is not a record."""
        try:
            r = json.loads(body)
        except (ValueError, RecursionError):
            return None
        if not isinstance(r, dict) or not isinstance(r.get("process"), str):
            return None
        self._records += 1
        at = _wire.clock(r.get("at")) or 0.0
        process = self.processes.get(r["process"])
        key = Key(str(r.get("jid", "")), str(r.get("body", "")))
        match r.get("type"):
            case "opened":
                queues = [q for q in r.get("queues") or [] if isinstance(q, str)]
                self.processes[r["process"]] = Process(str(r.get("queue", "")), queues, self._records, at)
            case "died" if process and process.died is None:
                process.died = process.heard = at
            case "closed" if process:
                process.closed, process.heard = True, at
            case "begun":
                self.begun(key, r["process"], r.get("blames"), at)
            case "ended":
                self.suspects.pop(key, None)
        if self._records % 1000 == 0:
            self._forget(at - MEMORY)
        return r

    def begun(self, key: Key, process: str, blames: str | None, at: float) -> None:
        """Note that a job began."""
        suspect = self.suspects.setdefault(key, Suspect())
        suspect.heard = at
        suspect.processes.update(p for p in (process, blames) if p)

    def _forget(self, before: float) -> None:
        self.suspects = {k: s for k, s in self.suspects.items() if s.heard >= before}
        self.processes = {i: p for i, p in self.processes.items() if not (p.closed or p.died is not None) or p.heard >= before}

    def maybe_dead(self, key: Key, queue: str, own: str) -> dict[str, str]:
        """Return the exclusive queues of the processes that count for a job and may be dead.

        If such a queue does not exist, its process is dead.
        """
        suspect = self.suspects.get(key)
        found = {}
        for name, p in self.processes.items():
            if name == own or p.closed or p.died is not None:
                continue
            if name in suspect.processes if suspect else queue in p.queues:
                found[name] = p.queue
        return found

    def blame(self, key: Key, queue: str, own: str, enqueued_at: float | None, gone: set[str]) -> str:
        """Return the process that is blamed for the earlier delivery of an unknown job, or "".

        It is the process that opened last, of the dead ones that consumed the job's queue and did
        not die before the job was enqueued.
        """
        if key in self.suspects:
            return ""
        latest, blamed = 0, ""
        for name, p in self.processes.items():
            if name == own or not p.dead(gone) or queue not in p.queues or p.opened < latest:
                continue
            if p.died is not None and enqueued_at is not None and p.died < enqueued_at:
                continue
            latest, blamed = p.opened, name
        return blamed

    def deaths(self, key: Key, own: str, gone: set[str]) -> int:
        """Count the dead processes in which a job began."""
        suspect = self.suspects.get(key)
        names = suspect.processes - {own} if suspect else set()
        return sum(1 for name in names if name in self.processes and self.processes[name].dead(gone))
