"""Converting what third-party code returned or raised into types of our own."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import httpx
import pytest

from effaced.breakers.model import BreakerOpenError
from effaced.core.clock import ManualClock
from effaced.core.errors import ResolverError
from effaced.model import FailureKind, OutboxOperation, Verification
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    Answer,
    AwaitsPerson,
    CallTimeout,
    CredentialsRefused,
    Erased,
    Rectified,
    Rejected,
    Retained,
    Scheduled,
    TransientFailure,
    Unreachable,
)
from effaced.saga.answers import CallFailure, read_answer, read_error, read_presence

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def status_error(status: int, **headers: str) -> httpx.HTTPStatusError:
    request = httpx.Request("DELETE", "http://vendor.example/1")
    response = httpx.Response(status, headers=headers, request=request)
    return httpx.HTTPStatusError("no", request=request, response=response)


def having(**attributes: object) -> RuntimeError:
    error = RuntimeError("an SDK's own")
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


class Raising(Exception):
    """Every attribute that somebody might look at raises."""

    @property
    def status_code(self) -> int:
        raise ValueError

    @property
    def retry_after(self) -> timedelta:
        raise SystemExit

    @property
    def response(self) -> object:
        raise KeyboardInterrupt


class RaisingCode(ResolverError):
    @property
    def code(self) -> str:  # type: ignore[override]
        raise ValueError

    @code.setter
    def code(self, value: str) -> None:
        pass


class OddWait(timedelta):
    """A wait that is never less or more than another one, and says it is years."""

    def __lt__(self, other: object) -> bool:
        raise TypeError

    __gt__ = __lt__

    def total_seconds(self) -> float:
        return 1e300


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), FailureKind.TRANSIENT),
        (ConnectionResetError(), FailureKind.TRANSIENT),
        (httpx.ConnectError("refused"), FailureKind.TRANSIENT),
        (CallTimeout("late", code="timeout"), FailureKind.TRANSIENT),
        (Unreachable("no answer", code="ConnectError"), FailureKind.TRANSIENT),
        (TransientFailure("later"), FailureKind.TRANSIENT),
        (TransientFailure("later", status_code=429), FailureKind.RATE_LIMITED),
        (status_error(503), FailureKind.TRANSIENT),
        (status_error(429), FailureKind.RATE_LIMITED),
        (having(http_status=500), FailureKind.TRANSIENT),
        (status_error(404), FailureKind.UNKNOWN),
        (ResolverError("never"), FailureKind.PERMANENT),
        (Rejected("no", code="http_400", status_code=400), FailureKind.PERMANENT),
        (CredentialsRefused("no", status_code=401), FailureKind.CREDENTIALS),
        (RuntimeError("an SDK's own"), FailureKind.UNKNOWN),
        (KeyError("a bug"), FailureKind.UNKNOWN),
        (having(status_code="503"), FailureKind.UNKNOWN),
        (Raising(), FailureKind.UNKNOWN),
        (RaisingCode("never"), FailureKind.PERMANENT),
        (SystemExit(3), FailureKind.UNKNOWN),
        (asyncio.CancelledError(), FailureKind.UNKNOWN),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_every_exception_has_a_kind(error: BaseException, kind: FailureKind) -> None:
    assert read_error(error).kind is kind


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (status_error(503), 503),
        (having(status_code=503), 503),
        (having(status=502), 502),
        (having(status_code="503"), None),
        (having(status_code=True), None),
        (having(status_code=99_999), None),
        (having(response="not a response"), None),
    ],
)
def test_a_status_is_a_whole_number_that_http_has(error: Exception, status: int | None) -> None:
    assert read_error(error).status_code == status


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (TransientFailure("later", retry_after=timedelta(seconds=7)), timedelta(seconds=7)),
        (having(retry_after=7), timedelta(seconds=7)),
        (having(retry_after=-7), timedelta(0)),
        (having(retry_after=float("nan")), None),
        (having(retry_after=float("inf")), None),
        (having(retry_after=1e300), timedelta(days=1)),
        (having(retry_after="soon"), None),
        (having(retry_after=OddWait(seconds=7)), timedelta(seconds=7)),
        (status_error(429, **{"Retry-After": "120"}), timedelta(minutes=2)),
    ],
)
def test_how_long_to_wait_is_read_wherever_it_stands(error: Exception, wait: timedelta | None) -> None:
    assert read_error(error).retry_after == wait


@pytest.mark.parametrize(
    ("raised", "read"),
    [
        (NOON + timedelta(minutes=2), NOON + timedelta(minutes=2)),
        ((NOON + timedelta(minutes=2)).astimezone(timezone(timedelta(hours=9))), NOON + timedelta(minutes=2)),
        (NOON + timedelta(microseconds=1), NOON + timedelta(seconds=1)),
        (NOON - timedelta(hours=1), None),
        (NOON + timedelta(days=70_000), NOON + timedelta(days=1)),
        ("soon", None),
        (None, None),
    ],
)
def test_when_an_open_breaker_admits_calls_again_is_read_with_care(
    noon: ManualClock, raised: object, read: datetime | None
) -> None:
    """A resolver can raise the error itself, with anything in it."""
    error = BreakerOpenError("crm", reason="failures", retry_at=NOON, remaining=timedelta(0))
    error.retry_at = raised  # type: ignore[assignment]
    assert (read_error(error).kind, read_error(error).retry_at) == (FailureKind.BREAKER_OPEN, read)


def test_of_an_error_only_class_and_code_are_kept() -> None:
    said = read_error(Rejected("anna@example.com was not found", code="anna@example.com"))
    assert (said.error, said.code) == ("Rejected", "anna_example.com")
    assert "anna" not in repr(read_error(RuntimeError("anna@example.com")))


class Foreign(Erased):
    """A subclass whose attributes can't be read."""

    def __init__(self) -> None:
        pass

    @property
    def retained(self) -> str | None:  # type: ignore[override]
        raise ValueError


class NoZone(tzinfo):
    def utcoffset(self, _at: datetime | None) -> timedelta:
        raise ValueError


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Erased(204), Erased(204)),
        (Erased(status_code="204"), Erased()),  # type: ignore[arg-type]
        (Erased(retained="tax law"), Erased(retained="tax_law")),
        (AlreadyAbsent(404), AlreadyAbsent(404)),
        (Retained("tax_law_10y"), Retained("tax_law_10y")),
        (Scheduled(NOON), Scheduled(NOON)),
        (Scheduled(NOON.replace(tzinfo=None)), Scheduled(NOON)),
        (Scheduled(NOON.astimezone(timezone(timedelta(hours=5)))), Scheduled(NOON)),
        (AwaitsPerson(NOON), AwaitsPerson(NOON)),
    ],
    ids=repr,
)
def test_an_answer_becomes_one_of_our_own(answer: object, said: object) -> None:
    assert read_answer(answer, OutboxOperation.ERASE) == said


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (None, "unknown_answer"),
        (True, "unknown_answer"),
        ("erased", "unknown_answer"),
        (Erased, "unknown_answer"),
        (Rectified(), "unknown_answer"),
        (Foreign(), "bad_answer"),
        (Erased(retained=7), "bad_answer"),  # type: ignore[arg-type]
        (Retained(None), "bad_answer"),  # type: ignore[arg-type]
        (Scheduled("tomorrow"), "bad_answer"),  # type: ignore[arg-type]
        (Scheduled(datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))), "bad_answer"),
        (Scheduled(NOON.replace(tzinfo=NoZone())), "bad_answer"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_any_other_answer_is_a_permanent_failure(answer: Any, code: str) -> None:
    said = read_answer(answer, OutboxOperation.ERASE)
    assert isinstance(said, CallFailure)
    assert (said.kind, said.code) == (FailureKind.PERMANENT, code)


def test_erased_is_no_answer_to_a_correction() -> None:
    said = read_answer(Erased(), OutboxOperation.RECTIFY)
    assert isinstance(said, CallFailure)


@pytest.mark.parametrize("answer", [Erased(), Retained("tax_law_10y")], ids=repr)
def test_a_retention_only_resolver_can_not_answer_that_it_erased_or_keeps(answer: Answer) -> None:
    said = read_answer(answer, OutboxOperation.ERASE, retention_only=True)
    assert isinstance(said, CallFailure)
    assert (said.kind, said.code) == (FailureKind.PERMANENT, "unknown_answer")


class Falsy:
    def __bool__(self) -> bool:
        raise ValueError


@pytest.mark.parametrize("absent", ["still there", {"absent": False}, 1, 0, None, "", Falsy(), [], object()])
def test_only_true_means_absent_and_only_false_means_present(absent: object) -> None:
    said = read_presence(absent)
    assert isinstance(said, CallFailure)
    assert said.kind is FailureKind.PERMANENT
    assert read_presence(True) is Verification.CONFIRMED
    assert read_presence(False) is Verification.STILL_PRESENT
