"""How long to wait between attempts."""

from __future__ import annotations

import asyncio
import random
from typing import Any

LONGEST = 5.0


async def first_of(*futures: asyncio.Future[Any], timeout: float | None = None) -> bool:
    """Wait for one of some, at most for some seconds, and tell whether one is done."""
    done, _ = await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


class Pauses:
    """Doubled each time, and not the same for everybody."""

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = longest
        self._next = 0.05

    def next(self) -> float:
        """Give the next one, in seconds."""
        self._next = min(2 * self._next, self._longest)
        return self._next * random.uniform(0.5, 1)

    async def wait(self) -> None:
        """Wait, longer each time."""
        await asyncio.sleep(self.next())
