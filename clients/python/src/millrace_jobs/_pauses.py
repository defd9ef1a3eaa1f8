"""Pauses between attempts."""

from __future__ import annotations

import asyncio
import random
from typing import Any

LONGEST = 5.0


async def first_of(*futures: asyncio.Future[Any], timeout: float | None = None) -> bool:
    """Wait for one of several futures, at most for some seconds. Return whether one is done."""
    done, _ = await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


class Pauses:
    """Pauses that double, with a random factor, so that clients do not try at the same time."""

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = longest
        self._next = 0.05

    def next(self) -> float:
        """Return the next pause, in seconds."""
        self._next = min(2 * self._next, self._longest)
        return self._next * random.uniform(0.5, 1)

    async def wait(self) -> None:
        """Wait for the next pause."""
        await asyncio.sleep(self.next())
