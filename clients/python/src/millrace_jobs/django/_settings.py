"""The setting MILLRACE."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from .._hosts import DEFAULT_URL
from ..client import Client
from ..worker import Worker

KEYS = ("URL", "CLIENT", "WORKER")


@dataclass
class Settings:
    """The setting, checked."""

    url: str | Sequence[str] = DEFAULT_URL
    client: dict[str, Any] = field(default_factory=dict)
    worker: dict[str, Any] = field(default_factory=dict)


def read() -> Settings:
    """Return the setting. Raise ImproperlyConfigured if something in it does not exist."""
    found = getattr(settings, "MILLRACE", {})
    _check("MILLRACE", found, KEYS)
    client, worker = found.get("CLIENT", {}), found.get("WORKER", {})
    _check('MILLRACE["CLIENT"]', client, _options(Client))
    _check('MILLRACE["WORKER"]', worker, _options(Worker))
    login = {name: client[name] for name in ("credentials", "tls") if name in client}
    return Settings(found.get("URL", DEFAULT_URL), dict(client), {**login, **worker})


def _options(of: type) -> list[str]:
    return [name for name, parameter in inspect.signature(of).parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY]


def _check(what: str, found: object, keys: Sequence[str]) -> None:
    if not isinstance(found, Mapping):
        raise ImproperlyConfigured(f"{what} must be a dict, not {type(found).__name__}")
    unknown = [str(key) for key in found if key not in keys]
    if unknown:
        raise ImproperlyConfigured(f"{what} has {', '.join(unknown)}, which is not one of {', '.join(keys)}")
