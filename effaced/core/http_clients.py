"""One HTTP client per event loop, shared by all that call out of it.

A client belongs to the loop that opened it, and a forked worker runs a loop of its own, so nobody can
come upon connections of another process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from ssl import SSLContext
from typing import Any
from weakref import WeakKeyDictionary

import httpx

from effaced.core import clock
from effaced.core.errors import ConfigurationError, Problem

RETRY_AFTER_CAP = timedelta(hours=24)


@dataclass(slots=True)
class _Shared:
    client: httpx.AsyncClient
    holders: int = 0


_open: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()


def acquire() -> httpx.AsyncClient:
    """This loop's client, opened for the first holder. Each `acquire` wants one `release`."""
    loop = asyncio.get_running_loop()
    if loop not in _open:
        _open[loop] = _Shared(_new_client())
    _open[loop].holders += 1
    return _open[loop].client


async def release() -> None:
    """Let go of this loop's client; the last one to do so closes its connections."""
    loop = asyncio.get_running_loop()
    shared = _open[loop]
    shared.holders -= 1
    if shared.holders == 0:
        del _open[loop]
        await shared.client.aclose()


@asynccontextmanager
async def http_client() -> AsyncIterator[httpx.AsyncClient]:
    """This loop's client for the length of the block."""
    client = acquire()
    try:
        yield client
    finally:
        await release()


def retry_after(value: str | None) -> timedelta | None:
    """A Retry-After header, in seconds or as a date, capped at a day; None if it says nothing."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdecimal():
        return min(timedelta(seconds=int(value[:9])), RETRY_AFTER_CAP)
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        wait = moment - clock.now()
    except (ValueError, OverflowError):
        return None
    return max(timedelta(0), min(wait, RETRY_AFTER_CAP))


def require_time(timeouts: Mapping[str, timedelta], lease: timedelta) -> None:
    """Refuse calls that, made twice, do not fit into the lease: somebody else would make them meanwhile."""
    problems = [
        Problem(name, f"timeout must be under {lease.total_seconds() / 2:g} seconds")
        for name, timeout in timeouts.items()
        if timeout * 2 >= lease
    ]
    if problems:
        raise ConfigurationError(
            "The lease (EFFACED_LEASE_SECONDS) is too short for these:", problems=problems
        )


def plain_client(**options: Any) -> httpx.AsyncClient:
    """A client that follows no redirects, keeps no cookies, and whose URLs stay out of the log."""
    _keep_urls_out_of_logs()
    return httpx.AsyncClient(
        follow_redirects=False,
        # Cookies would carry something from one person's call into the next.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        headers={"User-Agent": f"effaced/{version('effaced-platform')}", "Accept-Encoding": "identity"},
        **options,
    )


@cache
def tls_context() -> SSLContext:
    return httpx.create_ssl_context()


def _new_client() -> httpx.AsyncClient:
    return plain_client(
        verify=tls_context(),
        # How many calls are under way is already bounded, by whoever calls.
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30),
    )


def _keep_urls_out_of_logs() -> None:
    """httpx logs each URL and httpcore each header: references and tokens, that is."""
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
