"""Where messages to registered targets may go: not into the company's own network, unless it says so.

Whoever holds an API key chooses these addresses, and effaced stands where that person does not: beside
databases, consoles and a cloud's metadata. The name is resolved here, every address is checked, and the
connection is made to a checked address: a name that resolves to another one a moment later gains nothing.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from threading import Thread

import httpx

from effaced.core import http_clients as clients

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

LONGEST_URL = 2_000
_PORTS = {"https": 443, "http": 80}
_LOWEST_FREE_PORT = 1_024
_MOST_ADDRESSES_TRIED = 3
_RESOLVE_WITHIN_S = 2.0
_AUTHORITY = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)
_VISIBLE = re.compile(r"[!-~]+")

# IANA's special-purpose registry, and one address that is a cloud's although it looks like anybody's.
_NOT_PUBLIC_4 = tuple(
    IPv4Network(each)
    for each in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
        "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
        "168.63.129.16/32",
    )
)  # fmt: skip
# Of IPv6 only this is handed out to hosts of the Internet, and of it not all.
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(each)
    for each in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)
_NAT64 = IPv6Network("64:ff9b::/96")


class AddressNotAllowed(httpx.TransportError):
    """The name is not known, or leads to an address that messages may not go to. One answer for both:
    otherwise whoever registers a target could ask which names there are inside."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Which addresses messages may go to. `allowed` are private networks that the operator has opened."""

    allowed: tuple[Network, ...] = ()

    def why_not(self, url: str) -> str | None:
        """What is wrong with this address of a target, as far as it shows without resolving the name."""
        if len(url) > LONGEST_URL:
            return f"must have at most {LONGEST_URL:,} characters"
        authority = _AUTHORITY.match(url)
        schemes = "https:// or http://" if self.allowed else "https://"
        if not _VISIBLE.fullmatch(url) or "\\" in url or authority is None:
            return f"must be an address that begins with {schemes}"
        if "@" in authority[1]:
            return "must not have a user or password in it"
        if "#" in url:
            return "must not have a fragment (#)"
        try:
            parsed = httpx.URL(url)
            port = _PORTS.get(parsed.scheme, 0) if parsed.port is None else parsed.port
        except (httpx.InvalidURL, ValueError):
            return f"must be an address that begins with {schemes}"
        if parsed.scheme == "http" and not self.allowed:
            return "must begin with https://"
        if not parsed.host or "%" in authority[1]:
            return "must name a host"
        if port != _PORTS[parsed.scheme] and not _LOWEST_FREE_PORT <= port <= 65_535:
            return f"must have the port {_PORTS[parsed.scheme]}, or one from {_LOWEST_FREE_PORT:,} up"
        return None

    def require_allowed(self, addresses: Sequence[str], scheme: str) -> list[str]:
        """These addresses, if messages may go to each of them: a name that also leads inside is refused."""
        if not addresses or not all(self._allows(each, scheme) for each in addresses):
            raise AddressNotAllowed("The address is not allowed.")
        return list(addresses)

    def _allows(self, text: str, scheme: str) -> bool:
        try:
            address = _embedded(ip_address(text))
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.scope_id is not None:
            return False
        if any(address.version == each.version and address in each for each in self.allowed):
            return True
        # Unencrypted messages go no further than the company's own network.
        return scheme == "https" and is_public(address)


def is_public(address: Address) -> bool:
    """Whether this is a host of the Internet: neither private, local, reserved, multicast nor metadata."""
    address = _embedded(address)
    if isinstance(address, IPv4Address):
        return not any(address in each for each in _NOT_PUBLIC_4)
    return address in _PUBLIC_6 and not any(address in each for each in _NOT_PUBLIC_6)


def _embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, if it stands for one."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


async def resolve(host: str, port: int) -> list[str]:
    """The host's addresses, as the machine's resolver says."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return _addresses(found)


def resolve_now(host: str, port: int) -> list[str]:
    """`resolve` for those who wait, for two seconds at most."""
    found: list[str] = []

    def look_up() -> None:
        try:
            found.extend(_addresses(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except (OSError, UnicodeError):
            return

    # A thread that nothing waits for at the end: a name server may keep it for long.
    thread = Thread(target=look_up, name="effaced-resolve", daemon=True)
    thread.start()
    thread.join(_RESOLVE_WITHIN_S)
    return list(found)


def _addresses(found: Sequence[tuple[object, object, object, str, tuple[object, ...]]]) -> list[str]:
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class GuardedTransport(httpx.AsyncBaseTransport):
    """Resolves, checks, and connects to what was checked. No proxy: it would resolve the name once more.

    Connections are not kept: one of another name to the same address would be used again, and its
    certificate was checked against that other name.
    """

    def __init__(self, guard: Guard, resolve: Resolve = resolve) -> None:
        self._guard = guard
        self._resolve = resolve
        self._inner = httpx.AsyncHTTPTransport(
            verify=clients.tls_context(), trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host, scheme = request.url.host, request.url.scheme
        port = request.url.port or _PORTS[scheme]
        addresses = self._guard.require_allowed(await self._resolve(host, port), scheme)
        trouble: httpx.TransportError | None = None
        for address in addresses[:_MOST_ADDRESSES_TRIED]:
            try:
                return await self._inner.handle_async_request(_to_address(request, address))
            except httpx.ConnectError as error:
                trouble = error
        raise trouble or AddressNotAllowed("The address is not allowed.")

    async def aclose(self) -> None:
        await self._inner.aclose()


def _to_address(request: httpx.Request, address: str) -> httpx.Request:
    """The same request to this address; the Host header and the certificate's name stay the host's."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )


def guarded_client(guard: Guard, resolve: Resolve = resolve) -> httpx.AsyncClient:
    """A client for one message to a registered target."""
    return clients.plain_client(transport=GuardedTransport(guard, resolve), trust_env=False)
