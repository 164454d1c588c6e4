"""Reading a system's answer: its status, when to come back, when the data will be gone.

Response bodies may hold personal data. One is read only where a horizon is expected in it, and no part
of it ever gets into a message.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Container
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

import httpx

from effaced.core.errors import ResolverError
from effaced.core.http_clients import retry_after
from effaced.resolvers.protocols import (
    CallTimeout,
    CredentialsRefused,
    Rejected,
    TransientFailure,
    Unreachable,
)

BODY_LIMIT = 64 * 1024
_DRAIN_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Reply:
    """A status, and the body if it was asked for."""

    status: int
    retry_after: timedelta | None = None
    body: bytes = field(default=b"", repr=False)


async def exchange(
    client: httpx.AsyncClient, request: httpx.Request, *, within: timedelta, body_at: Container[int] = ()
) -> Reply:
    """Send one request and wait for its status, and for its body where `body_at` names the status."""
    response: httpx.Response | None = None
    trouble: TransientFailure
    try:
        async with asyncio.timeout(within.total_seconds()):
            response = await client.send(request, stream=True)
            body = await _read(response) if response.status_code in body_at else b""
        return Reply(response.status_code, retry_after(response.headers.get("Retry-After")), body)
    except (TimeoutError, httpx.TimeoutException):
        trouble = CallTimeout("No answer in time.", code="timeout")
    except (httpx.HTTPError, httpx.StreamError) as error:
        trouble = Unreachable(f"No answer: {type(error).__name__}.", code=type(error).__name__)
    finally:
        if response is not None:
            await _let_go(response)
    # Raised out here: httpx's exceptions hold the request, which must not hang on to ours.
    raise trouble


def failure(reply: Reply) -> TransientFailure | ResolverError:
    """What a status means that nobody declared and that is no success."""
    status, code = reply.status, f"http_{reply.status}"
    if status in (401, 403):
        return CredentialsRefused(
            f"The system refused our credentials ({code}).",
            code=code,
            status_code=status,
            retry_after=reply.retry_after,
        )
    if status in (408, 429) or status >= 500:
        return TransientFailure(
            f"The system can't answer now ({code}).",
            code=code,
            status_code=status,
            retry_after=reply.retry_after,
        )
    return Rejected(f"The system rejected the call ({code}).", code=code, status_code=status)


def horizon(body: bytes, name: str) -> datetime:
    """The moment at that JSON field. A date alone means its end; no zone means UTC."""
    try:
        value = json.loads(body)
        for part in name.split("."):
            value = value[part]
        if day := _day(value):
            return datetime.combine(day + timedelta(days=1), time(), UTC)
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        pass
    raise ResolverError(f"The answer has no date or time in its field '{name}'.", code="no_horizon")


def _day(text: str) -> date | None:
    """The date, in any form of ISO 8601 (2026-01-31, 20260131, 2026-W05-6), or None if it has a time too."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


async def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > BODY_LIMIT:
            break
    return bytes(body[:BODY_LIMIT])


async def _let_go(response: httpx.Response) -> None:
    """Close the response. A short rest is read away first: that lets the connection be used again."""
    try:
        if not response.is_stream_consumed:
            async with asyncio.timeout(_DRAIN_SECONDS):
                await _read(response)
    except (TimeoutError, httpx.HTTPError, httpx.StreamError):
        pass  # the status has said all there is to know
    finally:
        await response.aclose()
