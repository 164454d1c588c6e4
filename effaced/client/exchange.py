"""One call from its first attempt to its answer, without any input or output of its own.

`exchange` yields what to do next, a request to send or a number of seconds to wait, and is sent what came of
it. `runners.py` does it, blocking or not, so that the rules are here once.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
from pydantic import ValidationError

from effaced.client.answers import Answer
from effaced.client.errors import NetworkError, UnexpectedAnswer, api_error

T = TypeVar("T", bound=Answer | bytes | None)
I = TypeVar("I")  # noqa: E741 - an item

VERSION = "2026-11-20"
"""The version of the API that this client was written for; sent with every call."""

_WORTH_RETRYING = frozenset((429, 502, 503, 504))
# These are about the request, or about this client: the next attempt would end alike.
_POINTLESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
_random = secrets.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a call is attempted, and how long to wait in between. `attempts=1` never repeats."""

    attempts: int = 5
    first_wait: float = 0.5
    """Seconds; doubled at each attempt, of which a random half is waited less."""
    longest_wait: float = 60.0
    """Seconds. If the server asks for a longer wait, the error is raised at once."""

    def wait(self, attempt: int, asked: float | None) -> float | None:
        """Seconds to wait after this attempt (from 1), or None: no more attempts."""
        if attempt >= self.attempts or (asked or 0) > self.longest_wait:
            return None
        backoff = min(self.longest_wait, self.first_wait * 2.0 ** min(attempt - 1, 30))
        return max(asked or 0, backoff * _random.uniform(0.5, 1))


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """What to call, and what it answers."""

    operation: str
    method: str
    path: str
    answer: type[T]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    idempotency_key: str | None = None


class Listing(Call[T], Generic[T, I]):
    """The call for the first page of a list of these items."""


Step = httpx.Request | float
Result = httpx.Response | httpx.RequestError | None


def exchange(call: Call[T], build: Callable[..., httpx.Request], retry: Retry) -> Generator[Step, Result, T]:
    """Attempt the call until there is an answer, or no attempt is left."""
    arguments = _arguments(call)
    attempt = 0
    while True:
        attempt += 1
        result = yield build(call.method, call.path, **arguments)
        asked = None
        if isinstance(result, httpx.Response):
            if result.is_success:
                return _read(call, result)
            asked = _retry_after(result)
            repeat = result.status_code in _WORTH_RETRYING
        else:
            repeat = not isinstance(result, _POINTLESS)
        wait = retry.wait(attempt, asked) if repeat else None
        if wait is None:
            break
        yield wait
    if isinstance(result, httpx.Response):
        raise api_error(result.status_code, _json(result), asked)
    # Not chained: what httpx raises holds the request, and with it the body and the key.
    raise NetworkError(f"{call.operation}: no answer ({type(result).__name__}) in {attempt} attempts.")


def part(value: object) -> str:
    """A part of a path; refuses what would make it another path."""
    text = str(value)
    if text in ("", ".", ".."):
        raise ValueError("an id or name in a path must not be empty, '.' or '..'")
    return quote(text, safe="")


class NotGiven(Enum):
    """The type of what is not given, where None is sent as null."""

    NOT_GIVEN = "not given"


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


def stated(**fields: Any) -> dict[str, Any]:
    """The fields that are given, None among them: there null says something else than leaving it out."""
    return {name: value for name, value in fields.items() if value is not NOT_GIVEN}


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None: an argument that is not given is not sent."""
    return {name: value for name, value in fields.items() if value is not None}


def _arguments(call: Call[T]) -> dict[str, Any]:
    headers = {"Effaced-Version": VERSION, "Accept": "application/json, application/problem+json, */*"}
    arguments: dict[str, Any] = {"headers": headers, "params": _texts(call.query)}
    if call.method == "POST":
        # One for all attempts: whichever arrives, the call has one effect.
        headers["Idempotency-Key"] = call.idempotency_key or str(uuid4())
    if call.body is not None:
        headers["Content-Type"] = "application/json"
        arguments["content"] = json.dumps(call.body, default=_plain, allow_nan=False).encode()
    return arguments


def _texts(query: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: [_plain(each) for each in value] if isinstance(value, list | tuple) else _plain(value)
        for name, value in query.items()
        if value is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"a {type(value).__name__} can't be sent")


def _read(call: Call[T], response: httpx.Response) -> T:
    if call.answer is bytes:
        return response.content  # type: ignore[return-value]
    if not issubclass(call.answer, Answer):
        return None  # type: ignore[return-value]
    try:
        return call.answer.model_validate_json(response.content)
    except ValidationError as error:
        wrong = ", ".join(".".join(map(str, each["loc"])) for each in error.errors()[:5])
    where = f" ({wrong})" if wrong else ""
    raise UnexpectedAnswer(f"{call.operation}: the answer is not the API's{where}.")


def _json(response: httpx.Response) -> object:
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds; proxies may name a moment instead."""
    given = response.headers.get("Retry-After", "").strip()
    try:
        seconds = float(given)
    except ValueError:
        try:
            moment = parsedate_to_datetime(given)
            now = datetime.now(UTC if moment.tzinfo else None)
            seconds = (moment - now).total_seconds()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
