"""The hosts of a broker: the list, and the connection to the first host that accepts."""

from __future__ import annotations

import asyncio
import random
import re
import socket
from collections.abc import Sequence

from ._amqp import Connection, Lost, Unreached, host_of
from ._async import Loop
from ._login import Asker, Login, NoCredentials

OPEN_TIMEOUT = 3.0
"""How many seconds it may take to connect to one address and log in."""

_NEXT_URL = re.compile(r",\s*(?=amqps?://)")
_URL = re.compile(r"(amqps?://)([^/?#]*)(.*)", re.DOTALL)
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(.*))?", re.DOTALL)
_EMPTY_HOST = "the broker's URL has an empty host: write amqp://user:password@a,b/vhost"
_PORTS = {"amqp://": 5672, "amqps://": 5671}


class Hosts:
    """The hosts of a broker, and the one to which this client connected last."""

    def __init__(self, urls: Sequence[str], login: Login, loop: Loop) -> None:
        self._urls = urls
        self._tls = login.tls
        self._asker = Asker(login.credentials, loop)
        self._url = self._address = ""  # of the last connection
        self._lost = False  # that connection worked: when a new one is wanted, it was lost

    async def open(self, name: str) -> Connection:
        """Connect to the first host that accepts. Try each address of each host once.

        All of them get the same credentials. Raise Lost if no host accepts. Raise Lost without an
        attempt if the program gives no credentials.
        """
        try:
            user = await self._asker.ask()
        except NoCredentials as e:
            raise Lost(e) from e
        failures: list[tuple[str, BaseException]] = []
        for url in try_order(self._urls, self._url, self._lost):
            host, port = host_of(url)
            try:
                addresses = await _look_up(host, port)
            except (OSError, TimeoutError) as e:
                failures.append((f"{host}:{port}", e))
                continue
            for address in try_order(addresses, self._address, self._lost):
                try:
                    connection = await Connection.open(url, address, name, OPEN_TIMEOUT, user, self._tls)
                except (Lost, OSError, TimeoutError) as e:
                    failures.append((f"{address}:{port}", e))
                    continue
                self._url, self._address, self._lost = url, address, True
                return connection
        self._lost = False
        raise Lost(Unreached(failures))


async def _look_up(host: str, port: int) -> list[str]:
    async with asyncio.timeout(OPEN_TIMEOUT):
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def try_order(every: Sequence[str], good: str, lost: bool) -> list[str]:
    """Return the order in which to try hosts or addresses.

    The last good one is first, or last if its connection was just lost. The others are in random
    order.
    """
    order = [one for one in every if one != good]
    random.shuffle(order)
    if good in every:
        order.insert(len(order) if lost else 0, good)
    return order


DEFAULT_URL = "amqp://guest:guest@127.0.0.1:5672/"


def split_hosts(urls: str | Sequence[str]) -> list[str]:
    """Return a URL for each host of a URL or a list of URLs.

    Each text may contain several URLs, separated by commas. Raise ValueError with the reason, and
    never with the password.
    """
    found: dict[str, str] = {}  # by host and port
    rest = ""  # the part without host and port, which all URLs must share
    texts = [urls] if isinstance(urls, str) else urls
    for url in [url.strip() for text in texts for url in _NEXT_URL.split(text)]:
        parts = _URL.fullmatch(url)
        if not parts:
            raise ValueError("the broker's URL must begin with amqp:// or amqps://")
        scheme, authority, tail = parts.groups()
        user, at, hosts = authority.rpartition("@")
        if url.endswith(","):  # the comma would become part of the virtual host
            raise ValueError(_EMPTY_HOST)
        if not at and "@" in tail:
            raise ValueError("the broker's URL has an @ behind a /, ? or #: write these characters as %40, %2F, %3F and %23")
        one = scheme + user + at + ("" if tail == "/" else tail)
        if found and rest != one:
            raise ValueError("the broker's URLs may differ in host and port only")
        rest = one
        for text in (hosts or "localhost").split(","):
            host = _with_port(text.strip(), scheme)
            found[host] = f"{scheme}{user}{at}{host}{tail}"
    if not found:
        raise ValueError("no URL of a broker is given")
    for url in found.values():
        host_of(url)
    return list(found.values())


def _with_port(text: str, scheme: str) -> str:
    colons = text.count(":")
    if not text or (text.startswith(":") and colons == 1):
        raise ValueError(_EMPTY_HOST)
    if colons > 1 and not text.startswith("["):
        raise ValueError(f'the broker\'s URL has an invalid host: "{text}" (an IPv6 address needs brackets)')
    parts = _HOST.fullmatch(text)
    if not parts:
        raise ValueError(f'the broker\'s URL has an invalid host: "{text}"')
    host, port = parts.groups()
    if port is None:
        return f"{host}:{_PORTS[scheme]}"
    if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise ValueError(f'the port of host "{host}" must be a number from 1 to 65535, not "{port}"')
    return text
