"""What each answer of an HTTP system comes to."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from effaced.core import clock
from effaced.core.errors import ResolverError
from effaced.model import SubjectRef
from effaced.resolvers.http import from_config
from effaced.resolvers.http.answers import BODY_LIMIT
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    CallTimeout,
    CredentialsRefused,
    Erased,
    Limits,
    Rejected,
    Scheduled,
    TransientFailure,
    Unreachable,
    VerifyingResolver,
)

ANNA = SubjectRef("person", "anna@people.example")
KEY = UUID("01900000-0000-7000-8000-000000000001")
VERIFY = {"path": "/people/{ref}", "absent": [404], "present": [200]}
SCHEDULED = {"status": [202], "until": "expires_at"}


def erase(resolver: Any, ref: SubjectRef = ANNA) -> Any:
    return asyncio.run(resolver.erase_subject(ref, key=KEY))


def verify(resolver: Any) -> bool:
    return asyncio.run(resolver.verify_absent(ANNA, key=KEY))


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_2xx_is_erased_and_says_its_status(vendor, make, status):
    vendor.answers(status)
    answer = erase(make())
    assert (Erased(), status) == (answer, answer.status_code)


@pytest.mark.parametrize("status", [404, 410])
def test_a_declared_gone_status_is_already_absent(vendor, make, status):
    vendor.answers(status)
    assert AlreadyAbsent() == erase(make(gone=[404, 410]))


def test_404_is_no_success_unless_declared(vendor, make):
    vendor.answers(404)
    with pytest.raises(Rejected) as raised:
        erase(make())
    assert (raised.value.code, raised.value.status_code) == ("http_404", 404)


@pytest.mark.parametrize("status", [300, 304, 400, 402, 405, 409, 410, 413, 414, 418, 422, 451])
def test_3xx_and_other_4xx_are_permanent(vendor, make, status):
    vendor.answers(status)
    with pytest.raises(ResolverError) as raised:
        erase(make(gone=[404]))
    assert f"http_{status}" == raised.value.code


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 599])
def test_408_429_and_5xx_are_passing_trouble(vendor, make, status):
    vendor.answers(status)
    with pytest.raises(TransientFailure) as raised:
        erase(make())
    assert (f"http_{status}", status) == (raised.value.code, raised.value.status_code)


@pytest.mark.parametrize("status", [401, 403])
def test_401_and_403_say_that_our_credentials_are_refused(vendor, make, status):
    vendor.answers(status)
    with pytest.raises(CredentialsRefused) as raised:
        erase(make())
    assert status == raised.value.status_code


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(vendor, make, status):
    vendor.answers(status, headers={"Location": f"{vendor.url}/elsewhere"})
    with pytest.raises(Rejected):
        erase(make())
    assert [each.target for each in vendor.received] == ["/people/anna%40people.example"]


# --- Retry-After -------------------------------------------------------------------------------------

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("120", timedelta(seconds=120)),
        ("0", timedelta(0)),
        ("Sun, 01 Mar 2026 12:05:00 GMT", timedelta(minutes=5)),
        ("Sun, 01 Mar 2026 11:00:00 GMT", timedelta(0)),
        ("999999", timedelta(hours=24)),
        ("9" * 5000, timedelta(hours=24)),
        ("Mon, 01 Mar 2027 12:00:00 GMT", timedelta(hours=24)),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("Sun, 99 Mar 2026 12:05:00 GMT", None),
    ],
)
def test_retry_after_is_read_in_both_forms_and_capped_at_a_day(vendor, make, header, expected):
    vendor.answers(429, headers={"Retry-After": header})
    with clock.pretend(NOW), pytest.raises(TransientFailure) as raised:
        erase(make())
    assert expected == raised.value.retry_after


def test_without_retry_after_there_is_none(vendor, make):
    vendor.answers(503)
    with pytest.raises(TransientFailure) as raised:
        erase(make())
    assert raised.value.retry_after is None


# --- scheduled ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "body", "expected"),
    [
        ("expires_at", b'{"expires_at": "2026-04-01T10:00:00+02:00"}', datetime(2026, 4, 1, 8, tzinfo=UTC)),
        ("expires_at", b'{"expires_at": "2026-04-01T10:00:00Z"}', datetime(2026, 4, 1, 10, tzinfo=UTC)),
        ("expires_at", b'{"expires_at": "2026-04-01T10:00:00"}', datetime(2026, 4, 1, 10, tzinfo=UTC)),
        ("expires_at", b'{"expires_at": "2026-04-01"}', datetime(2026, 4, 2, tzinfo=UTC)),
        ("expires_at", b'{"expires_at": "20260401"}', datetime(2026, 4, 2, tzinfo=UTC)),
        ("expires_at", b'{"expires_at": "2026-W14-3"}', datetime(2026, 4, 2, tzinfo=UTC)),
        ("data.until", b'{"data": {"until": "2026-04-01T10:00:00Z"}}', datetime(2026, 4, 1, 10, tzinfo=UTC)),
    ],
    ids=["offset", "zulu", "no zone is UTC", "a date means its end", "without hyphens", "by week", "nested"],
)
def test_a_declared_status_is_scheduled_until_the_moment_in_the_body(vendor, make, field, body, expected):
    vendor.answers(202, body=body)
    assert Scheduled(expected) == erase(make(scheduled={"status": [202], "until": field}))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b'{"expires_at": null}',
        b'{"expires_at": 1775037600}',
        b'{"expires_at": "soon"}',
        b'{"expires_at": "9999-12-31"}',
        b'{"expires_at": "0001-01-01T00:00:00+14:00"}',
        b'{"other": "2026-04-01"}',
        b"\xff\xfe",
        b"[" * 20_000,
    ],
)
def test_a_scheduled_answer_without_a_readable_moment_is_permanent(vendor, make, body):
    vendor.answers(202, body=body)
    with pytest.raises(ResolverError) as raised:
        erase(make(scheduled=SCHEDULED))
    assert raised.value.code == "no_horizon"


def test_no_more_of_a_body_is_read_than_64_kib(vendor, make):
    padding = b'{"expires_at": "2026-04-01", "padding": "' + b"x" * BODY_LIMIT + b'"}'
    vendor.answers(202, body=padding)
    with pytest.raises(ResolverError) as raised:
        erase(make(scheduled=SCHEDULED))
    assert raised.value.code == "no_horizon"


def test_a_body_without_end_is_not_read_to_its_end(vendor, make):
    vendor.answers(202, stall="end")
    with pytest.raises(ResolverError) as raised:
        erase(make(timeout=30, scheduled=SCHEDULED))
    assert raised.value.code == "no_horizon"


def test_what_is_declared_comes_before_what_a_status_usually_means(vendor, make):
    vendor.answers(200)
    assert AlreadyAbsent() == erase(make(gone=[200]))


# --- no answer ---------------------------------------------------------------------------------------


def test_no_status_in_time_is_a_timeout(vendor, make):
    vendor.answers(204, stall="status")
    with pytest.raises(CallTimeout) as raised:
        erase(make(timeout=0.2))
    assert isinstance(raised.value, TimeoutError)


def test_a_body_that_is_needed_and_never_comes_is_a_timeout(vendor, make):
    vendor.answers(202, stall="body")
    with pytest.raises(CallTimeout):
        erase(make(timeout=0.2, scheduled=SCHEDULED))


def test_a_body_that_is_not_needed_is_not_waited_for(vendor, make):
    vendor.answers(200, stall="body")
    assert Erased() == erase(make(timeout=30))


def test_a_refused_connection_is_passing_trouble():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        block = {"base_url": url, "erase": {"method": "DELETE", "path": "/people/{ref}"}}
        with pytest.raises(Unreachable) as raised:
            erase(from_config("vendor", block, Limits()))
    assert raised.value.code == "ConnectError"


# --- verify ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "absent"), [(404, True), (200, False)])
def test_the_read_back_answers_by_declared_statuses(vendor, make, status, absent):
    vendor.answers(status)
    assert absent is verify(make(verify=VERIFY))


@pytest.mark.parametrize(
    ("status", "family"),
    [
        (204, Rejected),
        (302, Rejected),
        (410, Rejected),
        (401, CredentialsRefused),
        (429, TransientFailure),
        (500, TransientFailure),
    ],
)
def test_the_read_back_does_not_guess_at_undeclared_statuses(vendor, make, status, family):
    vendor.answers(status)
    with pytest.raises(family) as raised:
        verify(make(verify=VERIFY))
    assert f"http_{status}" == raised.value.code


def test_only_a_configured_read_back_makes_a_verifying_resolver(make):
    assert [
        isinstance(make(), VerifyingResolver),
        isinstance(make(verify=VERIFY), VerifyingResolver),
    ] == [False, True]


# --- what exceptions hold ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        {"status": 400, "body": b"anna@people.example is not ours"},
        {"status": 500, "body": b"anna@people.example broke us"},
        {"status": 202, "body": b'{"for": "anna@people.example"}'},
        {"status": 204, "stall": "status"},
    ],
    ids=["rejected", "transient", "no horizon", "timeout"],
)
def test_exceptions_hold_nothing_about_the_person(vendor, make, script):
    vendor.answers(**script)
    with pytest.raises((ResolverError, TransientFailure)) as raised:
        erase(make(timeout=0.3, scheduled=SCHEDULED))
    error = raised.value
    told = f"{error!r} {error} {error.args} {vars(error)}"
    assert "anna" not in told
    assert (error.__cause__, error.__context__) == (None, None)
