"""Unique jobs: which jobs count as the same, and which of them stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import _wire
from .errors import Refused

PARTS = ("class", "queue", "args", "jid")
MOST_PARTS = 16
MOST_SECONDS = 366 * 24 * 3600


@dataclass(frozen=True, kw_only=True)
class Unique:
    """Which jobs count as the same, and what becomes of a job when there is one of them already.

    - ``key`` names the job. Without it, ``by`` does: a list of ``class``, ``queue``, ``args``,
      ``jid``, or paths such as ``args.0`` and ``args.0.customer``. Without both, the job is named by
      its class, queue and args.
    - ``while_`` says how long the key is taken: ``"unfinished"``, the default, until the job has
      ended, also while it waits for a retry; or ``"waiting"``, until a worker can take it.
    - ``for_`` is how many seconds the key is taken in any case, from when the job was enqueued.
    - ``on`` says which job stays: ``"keep"``, the default, the first one; or ``"replace"``, the later
      one, if the first still waits.
    - ``wait`` is by how many seconds the job is put off, again with each duplicate, and ``max`` by
      how many in all.
    """

    key: str | None = None
    by: Sequence[str] | None = None
    while_: Literal["unfinished", "waiting"] | None = None
    for_: float | None = None
    on: Literal["keep", "replace"] | None = None
    wait: float | None = None
    max: float | None = None

    def members(self) -> dict[str, Any]:
        """Return the members of the format. Raise ValueError if one breaks a rule."""
        if self.key is not None:
            self._check_key(self.key)
        if self.by is not None:
            _check_parts(self.by)
        _check_choice("while_", self.while_, ("unfinished", "waiting"))
        _check_choice("on", self.on, ("keep", "replace"))
        for name, value in (("for_", self.for_), ("wait", self.wait), ("max", self.max)):
            _check_seconds(name, value)
        if self.max is not None and self.wait is None:
            raise ValueError("unique: max needs wait")
        members: dict[str, Any] = {
            "key": self.key, "by": None if self.by is None else list(self.by), "while": self.while_, "for": self.for_, "on": self.on,
            "wait": self.wait, "max": self.max,
        }  # fmt: skip
        return {name: value for name, value in members.items() if value is not None}

    def _check_key(self, key: str) -> None:
        if self.by is not None:
            raise ValueError("unique has a key and parts: choose one")
        _wire.check_key("key of unique", key)
        if not key:
            raise ValueError("key of unique is empty")


def _check_parts(by: Sequence[str]) -> None:
    if not isinstance(by, list | tuple) or not 1 <= len(by) <= MOST_PARTS:
        raise ValueError(f"unique: by must be a list of 1 to {MOST_PARTS} parts of a job")
    for part in by:
        if not isinstance(part, str) or not (part in PARTS or _is_path(part)):
            raise ValueError(f"unique: {part!a:.50} is no part of a job: use class, queue, args, jid, or a path such as args.0.customer")


def _is_path(part: str) -> bool:
    return part.startswith("args.") and all(part.split(".")) and len(part.encode()) <= _wire.MAX_LIMIT_KEY


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value is not None and value not in choices:
        raise ValueError(f"unique: {name} must be {' or '.join(choices)}")


def _check_seconds(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_SECONDS:
        raise ValueError(f"unique: {name} must be a number of seconds above 0, at most {MOST_SECONDS}")


def members_of(unique: Unique | bool | None) -> dict[str, Any] | None:
    """Return the member ``unique`` of a job, or None if it is not unique."""
    if unique is None or isinstance(unique, bool):
        return {} if unique else None
    if not isinstance(unique, Unique):
        raise TypeError("unique must be True, False or a Unique")
    return unique.members()


@dataclass(frozen=True)
class Decision:
    """Which job stays of several with the same key.

    ``jid`` is that of the job that stays. If it is a ``duplicate``, it is another one than the job
    that was enqueued, which does not run.
    """

    jid: str
    duplicate: bool = False


def decided(reply: dict[str, Any], jid: str) -> Decision:
    """Return the leader's decision about a job. Raise Refused if it has made none."""
    stays = str(reply.get("jid") or jid)
    match reply.get("status"):
        case 201:
            return Decision(stays)
        case 200:
            return Decision(str(reply.get("duplicate_of") or stays), duplicate=True)
    raise Refused(str(reply.get("reason")))
