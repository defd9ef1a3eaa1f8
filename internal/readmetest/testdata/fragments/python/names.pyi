# The names that the fragments in the Python client's README use.
import ssl as ssl
from collections.abc import Callable
from dataclasses import dataclass as dataclass
from datetime import datetime as datetime
from typing import Any, TypeVar

from millrace_jobs import App as App
from millrace_jobs import Client as Client
from millrace_jobs import Inspector as Inspector
from millrace_jobs import Job as Job
from millrace_jobs import Lane as Lane
from millrace_jobs import GovernedQueue as GovernedQueue
from millrace_jobs import Limit as Limit
from millrace_jobs import PeriodicJob as PeriodicJob
from millrace_jobs import Unconfirmed as Unconfirmed
from millrace_jobs import Worker as Worker
from millrace_jobs import Unique as Unique
from millrace_jobs._hooks import Event

H = TypeVar("H", bound=Callable[..., Any])

# In the library, an event may be any string, and only the call checks it.
class StrictWorker(Worker):
    def on(self, event: Event) -> Callable[[H], H]: ...  # type: ignore[override]

class Vault:
    def current_password(self) -> str: ...

class Row:
    id: int

client: Client
worker: StrictWorker
url: str
order: Row
vault: Vault

# Of other libraries.
session: Any
URL: str
sentry_sdk: Any
transaction: Any
