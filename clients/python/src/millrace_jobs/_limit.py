"""Limits, as a program defines them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict


class Rate(TypedDict):
    """How many jobs may begin in a time: ``{"jobs": 100, "seconds": 60}``.

    They begin evenly spread over it. After a pause, ``burst`` of them may begin together.
    """

    jobs: int
    seconds: float
    burst: NotRequired[int]  # 1


class Bound(TypedDict, total=False):
    """What a limit sets for a single key."""

    concurrency: int
    rate: Rate


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How many limited jobs may run at the same time, and how many may begin in a time.

    It counts the limited jobs of its queues and classes; an empty list means all of them. With
    ``per``, each queue, class or key has the limit for itself. ``overrides`` are for single keys.
    They need ``"key"`` in ``per``. At least one of ``concurrency`` and ``rate`` must be set.
    """

    name: str
    queues: Sequence[str] = ()
    classes: Sequence[str] = ()
    per: Sequence[Literal["queue", "class", "key"]] = ()
    concurrency: int | None = None
    rate: Rate | None = None
    overrides: Mapping[str, Bound] = field(default_factory=dict)
    paused: bool = False

    def definition(self) -> dict[str, Any]:
        """Return the definition, without what is not set. The leader checks it."""
        members: dict[str, Any] = {
            "name": self.name, "queues": list(self.queues), "classes": list(self.classes), "per": list(self.per),
            "concurrency": self.concurrency, "rate": self.rate, "overrides": dict(self.overrides), "paused": self.paused,
        }  # fmt: skip
        return {name: value for name, value in members.items() if value}
