"""What a program defines: periodic jobs and limits."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ._limit import Limit
from ._periodic import PeriodicJob
from .errors import Invalid, Refused


@dataclass(frozen=True)
class Defined:
    """What `Client.define` did, by the names of periodic jobs and limits.

    ``forgotten`` are those that the source had defined and does not any more.
    """

    made: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    unchanged: int = 0


def defining(source: str, jobs: Iterable[PeriodicJob] | None, limits: Iterable[Limit] | None) -> dict[str, Any]:
    """Return the command that defines all periodic jobs and limits of a source.

    None leaves what the source has defined of that kind as it is. Raise Invalid if both are None.
    """
    definitions: dict[str, Any] = {"source": source}
    if jobs is None and limits is None:
        raise Invalid("it defines nothing: pass periodic jobs or limits, a list, which is empty if the source has none any more")
    if limits is not None:
        definitions["limits"] = [limit.definition() for limit in limits]
    if jobs is not None:
        definitions["periodic_jobs"] = [job.definition() for job in jobs]
    return {"id": secrets.token_hex(16), "command": "define", "definitions": definitions}


def defined(reply: dict[str, Any]) -> Defined:
    """Return what the leader did. Raise Invalid or Refused if it did nothing."""
    if reply.get("status") in (200, 204):  # 204: it was done before, and that answer was lost
        return Defined(**reply.get("defined", {}))
    raise (Invalid if reply.get("status") == 400 else Refused)(str(reply.get("reason")))
