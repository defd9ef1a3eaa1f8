"""What a program defines: periodic jobs, limits and governed queues."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ._governed import GovernedQueue
from ._limit import Limit
from ._periodic import PeriodicJob
from .errors import Invalid, Refused


@dataclass(frozen=True)
class Defined:
    """What `Client.define` did, by the names of periodic jobs, limits and governed queues.

    ``forgotten`` are those that the source had defined and does not any more.
    """

    made: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    unchanged: int = 0


def defining(
    source: str, jobs: Iterable[PeriodicJob] | None, limits: Iterable[Limit] | None, queues: Iterable[GovernedQueue] | None
) -> dict[str, Any]:
    """Return the command that defines all periodic jobs, limits and governed queues of a source.

    None leaves what the source has defined of that kind as it is. Raise Invalid if all are None.
    """
    lists: dict[str, Iterable[PeriodicJob | Limit | GovernedQueue] | None] = {"queues": queues, "limits": limits, "periodic_jobs": jobs}
    given = {kind: [one.definition() for one in many] for kind, many in lists.items() if many is not None}
    if not given:
        raise Invalid("it defines nothing: pass periodic jobs, limits or queues, a list, which is empty if the source has none any more")
    definitions = {"source": source, **given}
    return {"id": secrets.token_hex(16), "command": "define", "definitions": definitions}


def defined(reply: dict[str, Any]) -> Defined:
    """Return what the leader did. Raise Invalid or Refused if it did nothing."""
    if reply.get("status") in (200, 204):  # 204: it was done before, and that answer was lost
        return Defined(**reply.get("defined", {}))
    raise (Invalid if reply.get("status") == 400 else Refused)(str(reply.get("reason")))
