"""Governed queues, as a program defines them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _wire
from .errors import Invalid

MOST = {"max_waiting": 1_000_000_000, "ahead": 1_000_000, "weight": 1000}
MOST_WEIGHTS = 10_000


@dataclass(frozen=True, kw_only=True)
class GovernedQueue:
    """A queue of which limits count all jobs, also plain jobs of other programs.

    - ``key`` is the path to the key of a job, such as ``"args.0.customer_id"`` or ``"class"``. Keys
      take turns.
    - While ``max_waiting`` jobs wait, more are `Refused`.
    - ``weights`` has, by key, how many turns it has in a round: 1 for other keys.
    - ``ahead`` is how many jobs of the queue are delivered and have not ended at most. By default,
      it is twice as many as its workers run at once.
    - While it is ``paused``, none of its jobs is delivered.
    """

    name: str
    key: str | None = None
    max_waiting: int | None = None
    weights: Mapping[str, int] = field(default_factory=dict)
    ahead: int | None = None
    paused: bool = False

    def definition(self) -> dict[str, Any]:
        """Return the definition, without what is not set. Raise Invalid if it breaks a rule."""
        try:
            self._check()
        except ValueError as error:
            raise Invalid(f"governed queue {self.name!a:.100}: {error}") from None
        members: dict[str, Any] = {
            "name": self.name, "key": self.key, "max_waiting": self.max_waiting, "weights": dict(self.weights), "ahead": self.ahead,
            "paused": self.paused,
        }  # fmt: skip
        return {name: value for name, value in members.items() if value}

    def _check(self) -> None:
        _wire.check_queue(self.name)
        if self.key and not (len(self.key.encode()) <= _wire.MAX_LIMIT_KEY and all(self.key.split("."))):
            raise ValueError(f"key must be a path into the job, such as args.0.customer_id, of at most {_wire.MAX_LIMIT_KEY} bytes")
        for name, value in (("max_waiting", self.max_waiting), ("ahead", self.ahead)):
            if value is not None:
                _check_number(name, value, MOST[name])
        if len(self.weights) > MOST_WEIGHTS:
            raise ValueError(f"there are {len(self.weights)} weights, at most {MOST_WEIGHTS} are allowed")
        for key, weight in self.weights.items():
            _check_number(f"the weight of key {key!a:.40}", weight, MOST["weight"])


def _check_number(what: str, value: object, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ValueError(f"{what} must be a whole number from 1 to {most}")
