"""The parts of a log line about a job."""

from __future__ import annotations

import json
import re
from typing import Any

from .job import Job

_PLAIN = re.compile(r"[\w.:,+/@#-]{1,200}")


def pairs(job: Job, **more: Any) -> str:
    """Return which job a line is about, and more facts, each as ``name=value``."""
    facts = {"class": job.class_, "jid": job.jid, "queue": job.queue, "attempt": job.attempt, **more}
    return " ".join(f"{name}={quoted(str(value))}" for name, value in facts.items())


def quoted(text: str) -> str:
    """Return a value for a log line, in quotes unless it is a plain word.

    So no value can look like another line of the log.
    """
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=not text.isprintable())
