"""Corrected values: kept as long as a call needs them, gone at every end, and in no other place (O8)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from correction_cast import Bureau, tables_holding
from saga_cast import NOON

from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import ResolverError
from effaced.model import OutboxStatus, RequestStatus
from effaced.resolvers.protocols import AwaitsPerson
from effaced.triage.attest import attest

NAME, EMAIL = "Annegret Xylander", "annegret.xylander@people.example"


@pytest.fixture
def bureau(db: Database, tmp_path: Path) -> Bureau:
    return Bureau(db, tmp_path)


def no_trace(bureau: Bureau, logs: pytest.LogCaptureFixture) -> None:
    """Neither value is in a table of effaced, in any form that can be read, nor in a line of the log."""
    assert tables_holding(bureau.db, NAME, EMAIL) == set()
    assert logs.records
    said = str([vars(record) for record in logs.records])
    assert NAME not in said
    assert EMAIL not in said


def fails(bureau: Bureau) -> None:
    bureau.crm.reply = lambda _: ConnectionError(f"no route for {EMAIL}")
    bureau.drain()
    bureau.crm.reply = lambda _: ResolverError(f"{NAME} is not allowed", code="http_400")


def is_rectified(bureau: Bureau) -> None:
    bureau.crm.reply = type(bureau.mail)().reply


def is_superseded(bureau: Bureau) -> None:
    bureau.erase()


def is_attested(bureau: Bureau) -> None:
    bureau.crm.reply = lambda _: AwaitsPerson(NOON + timedelta(days=7))
    bureau.drain()
    (waiting,) = [each for each in bureau.open_corrections() if each.resolver == "crm"]
    assert waiting.status is OutboxStatus.SCHEDULED
    with bureau.db.begin() as session:
        attest(session, bureau.keyring, waiting.entry_id, actor="officer:1", reason="typed it in by hand")


def is_abandoned(bureau: Bureau) -> None:
    pass


@pytest.mark.parametrize(
    ("how", "status", "error"),
    [
        (is_rectified, OutboxStatus.SUCCEEDED, None),
        (is_abandoned, OutboxStatus.ABANDONED, "ResolverError"),
        (is_attested, OutboxStatus.SUCCEEDED, None),
        (is_superseded, OutboxStatus.ABANDONED, "Superseded"),
    ],
)
def test_survive_a_failure_and_are_gone_at_every_end(
    bureau: Bureau,
    noon: ManualClock,
    caplog: pytest.LogCaptureFixture,
    how: Callable[[Bureau], None],
    status: OutboxStatus,
    error: str | None,
) -> None:
    caplog.set_level(logging.DEBUG)
    request_id = bureau.correct(name=NAME, email=EMAIL)
    fails(bureau)
    entry = bureau.of(request_id)
    assert entry.status is OutboxStatus.FAILED
    assert entry.corrections_sealed is not None
    assert bureau.row(request_id).corrections_sealed is None

    noon.advance(timedelta(minutes=1))
    how(bureau)
    bureau.drain()
    entry = bureau.of(request_id)
    assert (entry.status, entry.last_error, entry.corrections_sealed) == (status, error, None)
    assert entry.fields == ["name", "email"]
    no_trace(bureau, caplog)


def test_a_retry_sends_them_again_under_the_same_key(bureau: Bureau, noon: ManualClock) -> None:
    bureau.correct(name=NAME, email=EMAIL)
    bureau.crm.reply = lambda _: ConnectionError()
    bureau.drain()
    is_rectified(bureau)
    noon.advance(timedelta(minutes=1))
    bureau.drain()
    assert bureau.crm.told == [{"name": NAME, "email": EMAIL}] * 2


def test_the_request_completes_with_events_that_name_fields_and_no_values(
    bureau: Bureau, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    request_id = bureau.correct(name=NAME, email=EMAIL)
    assert bureau.person() == (NAME, EMAIL)
    bureau.drain("crm")
    assert bureau.status(request_id) is RequestStatus.RUNNING
    bureau.drain("mail")
    assert bureau.status(request_id) is RequestStatus.COMPLETED
    assert bureau.types() == [
        "REQUEST_RECEIVED",
        "LOCAL_RECTIFICATION_EXECUTED",
        "RECTIFICATION_STEP_SUCCEEDED",
        "RECTIFICATION_STEP_SUCCEEDED",
        "RECTIFICATION_COMPLETED",
    ]
    (executed,) = bureau.events("LOCAL_RECTIFICATION_EXECUTED")
    assert executed.payload["fields"] == ["name", "email"]
    assert tables_holding(bureau.db, NAME, EMAIL) == set()


def test_the_search_for_traces_finds_one_that_is_there(bureau: Bureau) -> None:
    """Else the tests above could not fail."""
    request_id = bureau.correct(name=NAME)
    with bureau.db.begin() as session:
        session.connection().exec_driver_sql(f"UPDATE effaced_outbox SET last_error = 'for {NAME}'")
    assert tables_holding(bureau.db, NAME) == {"effaced_outbox"}
    assert bureau.of(request_id).last_error is not None
