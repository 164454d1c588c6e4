"""The one place that reads what third-party code returned or raised.

Resolvers are written by other people. Their answers may be of any type, their exceptions may carry
attributes of any type, and reading one may itself raise. Everything is converted here, inside the call,
into types of our own; nothing after it reads a foreign object.
"""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx

from effaced.breakers.model import BreakerOpenError
from effaced.core import clock
from effaced.core.errors import ResolverError
from effaced.core.http_clients import RETRY_AFTER_CAP, retry_after
from effaced.model import FailureKind, OutboxOperation, Verification
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    Answer,
    AwaitsPerson,
    CredentialsRefused,
    Erased,
    Rectified,
    Retained,
    Scheduled,
    TransientFailure,
)
from effaced.retries.policy import RETRYABLE

UNKNOWN_ANSWER, BAD_ANSWER = "unknown_answer", "bad_answer"
_NETWORK = (OSError, TimeoutError, httpx.TransportError)
_ERASURE_ANSWERS = (Erased, AlreadyAbsent, Scheduled, Retained, AwaitsPerson)
_EXPIRY_ANSWERS = (Scheduled, AlreadyAbsent, AwaitsPerson)
_RECTIFICATION_ANSWERS = (Rectified, AlreadyAbsent, AwaitsPerson)
# The least that a resolver can have us wait by raising that a breaker is open.
_SOONEST = timedelta(seconds=1)
# Where client libraries keep the status of the answer that they raise an exception for.
_STATUSES = (("status_code",), ("response", "status_code"), ("status",), ("http_status",))


@dataclass(frozen=True, slots=True)
class CallFailure:
    """Why a call failed. `error` is a class name, `code` a machine word; neither quotes anything.

    `retry_after` is how long the system asked us to wait, `retry_at` when our own breaker admits
    calls again.
    """

    kind: FailureKind
    error: str
    code: str = ""
    status_code: int | None = None
    retry_after: timedelta | None = None
    retry_at: datetime | None = None
    timed_out: bool = False


def read_error(error: BaseException) -> CallFailure:
    """What an exception means, whatever type it has and however its attributes behave."""
    try:
        return _read_error(error)
    except BaseException:
        return CallFailure(FailureKind.UNKNOWN, "UnreadableError", code="unreadable_error")


def _read_error(error: BaseException) -> CallFailure:
    status, wait = _status_of(error), _retry_after_of(error)
    return CallFailure(
        _kind_of(type(error), status, wait),
        class_name(error),
        code=_code_of(error),
        status_code=status,
        retry_after=wait,
        retry_at=_retry_at_of(error),
        timed_out=issubclass(type(error), TimeoutError),
    )


def _kind_of(raised: type[BaseException], status: int | None, wait: timedelta | None) -> FailureKind:
    if issubclass(raised, ResolverError):
        return FailureKind.PERMANENT
    if issubclass(raised, CredentialsRefused):
        return FailureKind.CREDENTIALS
    if raised is BreakerOpenError:
        return FailureKind.BREAKER_OPEN
    if status == 429:
        return FailureKind.RATE_LIMITED
    if status in RETRYABLE or issubclass(raised, (TransientFailure, *_NETWORK)) or wait is not None:
        return FailureKind.TRANSIENT
    return FailureKind.UNKNOWN


def _code_of(error: BaseException) -> str:
    if not issubclass(type(error), ResolverError):
        return ""
    code = _attribute(error, "code")
    return as_code(code) if isinstance(code, str) else "permanent"


def read_answer(
    answer: object, operation: OutboxOperation, *, retention_only: bool = False
) -> Answer | Rectified | CallFailure:
    """A resolver's answer as one of our own types; an answer of any other type is a permanent failure.

    A retention-only resolver can't have erased anything on demand, so that is no answer of it.
    """
    allowed: tuple[type[Answer | Rectified], ...] = _ERASURE_ANSWERS
    if operation is OutboxOperation.RECTIFY:
        allowed = _RECTIFICATION_ANSWERS
    elif retention_only:
        allowed = _EXPIRY_ANSWERS
    for known in allowed:
        if issubclass(type(answer), known):
            try:
                return _rebuilt(answer, known)
            except BaseException:
                return CallFailure(FailureKind.PERMANENT, known.__name__, code=BAD_ANSWER)
    return CallFailure(FailureKind.PERMANENT, ResolverError.__name__, code=UNKNOWN_ANSWER)


def _rebuilt(answer: object, known: type[Answer | Rectified]) -> Answer | Rectified:
    """The same answer as an object of our own type. Raises if it has values that can't be stored."""
    status = _as_status(_attribute(answer, "status_code"))
    if known is Erased:
        basis = answer.retained  # type: ignore[attr-defined]
        return Erased(status, None if basis is None else _basis(basis))
    if known is Retained:
        return Retained(_basis(answer.basis), status)  # type: ignore[attr-defined]
    if known is Scheduled:
        return Scheduled(_moment(answer.until), status)  # type: ignore[attr-defined]
    if known is AwaitsPerson:
        return AwaitsPerson(_moment(answer.by), status)  # type: ignore[attr-defined]
    return Rectified(status) if known is Rectified else AlreadyAbsent(status)


def read_presence(absent: object) -> Verification | CallFailure:
    """What a read-back found. Only True means absent and only False means present; nothing else counts."""
    if absent is True:
        return Verification.CONFIRMED
    if absent is False:
        return Verification.STILL_PRESENT
    return CallFailure(FailureKind.PERMANENT, ResolverError.__name__, code=BAD_ANSWER)


def is_from_cache(answer: object) -> bool:
    """Whether the resolver says that it answered from a cache and called nobody."""
    return _attribute(answer, "cached") is True


def cancelled_call() -> CallFailure:
    """We cancelled the call ourselves: whether it was made is unknown."""
    return CallFailure(FailureKind.CANCELLED, asyncio.CancelledError.__name__, code="cancelled")


def overdue_call() -> CallFailure:
    """The call went on beyond its timeout although it was cancelled."""
    return CallFailure(FailureKind.TRANSIENT, TimeoutError.__name__, timed_out=True)


def class_name(error: BaseException) -> str:
    """All that is kept of an error: messages quote what people typed."""
    return as_code(type(error).__name__, 255)


def as_code(text: str, longest: int = 64) -> str:
    """The text as a code that the trail accepts; third parties may have put anything there."""
    return re.sub(r"[^A-Za-z0-9_.:\-]", "_", str(text)[:longest]) or "unnamed"


def _attribute(owner: object, name: str) -> object:
    try:
        return getattr(owner, name, None)
    except BaseException:
        return None


def _as_status(value: object) -> int | None:
    return value if type(value) is int and 100 <= value <= 599 else None


def _status_of(error: BaseException) -> int | None:
    for path in _STATUSES:
        value: object = error
        for name in path:
            value = _attribute(value, name)
        if (status := _as_status(value)) is not None:
            return status
    return None


def _retry_after_of(error: BaseException) -> timedelta | None:
    """How long the system asked us to wait: an attribute, else the header of the answer."""
    wait = _attribute(error, "retry_after")
    if isinstance(wait, int | float) and math.isfinite(wait):
        wait = timedelta(seconds=min(float(wait), RETRY_AFTER_CAP.total_seconds()))
    if isinstance(wait, timedelta):
        # Read by timedelta's own method: a subclass may compare and subtract as it likes.
        seconds = timedelta.total_seconds(wait)
        return timedelta(seconds=max(0.0, min(seconds, RETRY_AFTER_CAP.total_seconds())))
    response = _attribute(error, "response")
    return _header(response) if type(response) is httpx.Response else None


def _retry_at_of(error: BaseException) -> datetime | None:
    """When our own breaker admits calls again. A resolver can raise this error itself, with any moment."""
    if type(error) is not BreakerOpenError:
        return None
    try:
        at, now = _moment(_attribute(error, "retry_at")), clock.now()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(at, now + _SOONEST), now + RETRY_AFTER_CAP) if at > now else None


def _header(response: httpx.Response) -> timedelta | None:
    return retry_after(response.headers.get("Retry-After"))


def _basis(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return as_code(value)


def _moment(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError
    utc = value.astimezone(UTC) if value.tzinfo else value
    return datetime(
        utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, tzinfo=UTC
    )
