"""The settings of a connection beside its URL: a function for credentials, and TLS."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Awaitable, Callable, Sequence

from ._async import Loop
from ._handler import check_callable, check_sync, settled

ASK_TIMEOUT = 30.0
"""How many seconds the function for credentials may take."""

Credentials = Callable[[], "tuple[str, str]"]
AsyncCredentials = Callable[[], "Awaitable[tuple[str, str]]"]


class NoCredentials(Exception):
    """Raised when the program gave no credentials. It is not a refusal by the broker.

    The client asks the program again for the next connection.
    """


class Login:
    """The options ``credentials`` and ``tls``, checked.

    Invalid options raise TypeError or ValueError.
    """

    def __init__(
        self, urls: Sequence[str], credentials: Credentials | AsyncCredentials | None, tls: ssl.SSLContext | None, *, sync: bool = False
    ) -> None:
        if credentials is not None:
            # The message does not show the value, which may be the password.
            if not callable(credentials):
                raise TypeError("credentials is not a function that returns (username, password)")
            check_callable("credentials", credentials, 0)
            if sync:
                check_sync("credentials", credentials, "an AsyncClient takes such a function, a Client a plain one")
        if tls is not None:
            if not isinstance(tls, ssl.SSLContext):
                raise TypeError(f"tls is no ssl.SSLContext, but a {type(tls).__name__}")
            if not all(url.startswith("amqps://") for url in urls):
                raise ValueError("tls needs an amqps:// URL")
        self.credentials = credentials
        self.tls = tls


class Asker:
    """Asks a program for the credentials of each connection.

    The function runs in a thread of its own. A coroutine runs on ``loop``.
    """

    def __init__(self, credentials: Credentials | AsyncCredentials | None, loop: Loop) -> None:
        self._credentials = credentials
        self._loop = loop
        self._asked: asyncio.Future[tuple[str, str]] | None = None

    async def ask(self) -> tuple[str, str] | None:
        """Return the user and the password of the next connection. None means those of the URL.

        Raise NoCredentials if the program gave none.

        If the caller is cancelled or its time is over, the call continues, and the next caller
        waits for its answer. A new call each time would have two problems. If the function takes
        longer than the deadline of a publish, no publish would see its answer. If it hangs, each
        call would leave a thread.
        """
        if self._credentials is None:
            return None
        if self._asked is None or self._asked.done():
            self._asked = self._start(self._credentials)
        try:
            async with asyncio.timeout(ASK_TIMEOUT):
                return await asyncio.shield(self._asked)
        except TimeoutError as e:
            raise NoCredentials(f"credentials: no answer in {ASK_TIMEOUT:g} s") from e

    def _start(self, credentials: Credentials | AsyncCredentials) -> asyncio.Future[tuple[str, str]]:
        loop = asyncio.get_running_loop()
        asked: asyncio.Future[tuple[str, str]] = loop.create_future()
        # Reads the error, because there may be no caller left.
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())

        def settle(given: tuple[str, str] | NoCredentials) -> None:
            if asked.cancelled():
                return
            if isinstance(given, NoCredentials):
                asked.set_exception(given)
            else:
                asked.set_result(given)

        def run() -> None:
            given: tuple[str, str] | NoCredentials
            try:
                given = _checked(settled(credentials(), self._loop))
            except BaseException as e:
                given = NoCredentials(f"credentials: {str(e) or repr(e)}")
                given.__cause__ = e
            with contextlib.suppress(RuntimeError):  # the loop is closed, and no caller waits
                loop.call_soon_threadsafe(settle, given)

        threading.Thread(target=run, name="millrace credentials", daemon=True).start()
        return asked


def _checked(given: object) -> tuple[str, str]:
    match given:
        case (str() as username, str() as password):
            return username, password
    raise TypeError("the function must return (username, password), both str")
