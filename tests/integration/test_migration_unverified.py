"""Requests that stood as completed over a read-back that contradicts them are brought to the truth."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest
from alembic.script import ScriptDirectory
from saga_cast import KEYRING, NOON, CheckingVendor, House, Vendor
from sqlalchemy import select, text

from effaced import migrate
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import ResolverError
from effaced.core.paths import MIGRATIONS
from effaced.model import RequestStatus, StepOutcome, Verification
from effaced.outbox.tables import Operation
from effaced.requests.tables import Request
from effaced.resolvers.protocols import AlreadyAbsent, Scheduled
from effaced.triage.attest import attest

BEFORE = str(ScriptDirectory(str(MIGRATIONS)).get_revision("0012").down_revision)
DAY = timedelta(days=1)


@pytest.fixture
def noon() -> Iterator[ManualClock]:
    with clock.pretend(NOON) as moving:
        yield moving


@pytest.fixture
def house(database_url: str, noon: ManualClock) -> Iterator[House]:
    migrate.upgrade(database_url)
    database = Database(database_url)
    yield House(database)
    database.dispose()


def to_the_time_before(house: House) -> None:
    migrate.downgrade(str(house.db.engine.url.render_as_string(hide_password=False)), BEFORE)


def to_today(house: House) -> None:
    migrate.upgrade(str(house.db.engine.url.render_as_string(hide_password=False)))


def stored(house: House, column: str, table: str) -> list[object]:
    with house.db.read() as session:
        return list(session.scalars(text(f"SELECT {column} FROM {table} ORDER BY {column}")))


def unverified(house: House, request_id: UUID) -> int:
    with house.db.read() as session:
        return session.scalars(select(Operation.unverified).where(Operation.request_id == request_id)).one()


@pytest.mark.parametrize("seen", [False, ConnectionError()], ids=["still present", "due"])
def test_a_request_completed_over_an_open_read_back_is_reopened(house: House, seen: object) -> None:
    house.vendor("crm", CheckingVendor(absent=lambda _: seen))  # type: ignore[arg-type, return-value]
    wrong = house.request(("crm", "c-1"), ("crm", "c-2"))
    house.drain()
    house.vendor("mailing", CheckingVendor())
    right = house.request(("mailing", "m-1"))
    house.drain("mailing")
    to_the_time_before(house)
    assert stored(house, "status", "effaced_requests") == ["completed", "completed"]
    to_today(house)
    assert house.status(right) is RequestStatus.COMPLETED
    assert unverified(house, right) == 0
    assert house.status(wrong) is RequestStatus.RUNNING
    assert unverified(house, wrong) == 2
    with house.db.read() as session:
        reopened = session.get_one(Request, wrong)
    assert (reopened.completed_at, reopened.closed_at) == (None, None)
    (event,) = house.events("REQUEST_REOPENED")
    assert (event.request_id, event.payload, event.actor) == (wrong, {"unverified": 2}, "system")


def test_a_reopened_request_is_closed_by_an_attestation(house: House) -> None:
    house.vendor("crm", CheckingVendor(absent=lambda _: False))
    request_id = house.request(("crm", "c-1"))
    house.drain()
    to_the_time_before(house)
    to_today(house)
    with house.db.begin() as session:
        attest(session, KEYRING, house.entry().entry_id, actor="officer:7", reason="seen for myself")
    assert house.status(request_id) is RequestStatus.COMPLETED


def test_several_requests_of_one_person_can_be_reopened(house: House) -> None:
    house.vendor("crm", CheckingVendor(absent=lambda _: False))
    requests = [house.request(("crm", f"c-{n}")) for n in range(2)]
    house.drain()
    to_the_time_before(house)
    with house.db.begin() as session:
        session.execute(
            text("UPDATE effaced_requests SET subject_hmac = :one, executed_at = received_at"),
            {"one": "a" * 64},
        )
    to_today(house)
    assert {house.status(request_id) for request_id in requests} == {RequestStatus.RUNNING}


def test_an_expiry_that_nobody_read_back_is_not_called_verified(house: House, noon: ManualClock) -> None:
    vendors = (Vendor(), CheckingVendor())
    for name, vendor in zip(("crm", "mailing"), vendors, strict=True):
        vendor.answer = lambda _: Scheduled(noon() + DAY)
        house.vendor(name, vendor)
        house.request((name, "c-1"))
        house.drain(name)
    noon.advance(DAY)
    for name, vendor in zip(("crm", "mailing"), vendors, strict=True):
        vendor.answer = lambda _: AlreadyAbsent()
        house.drain(name)
    to_the_time_before(house)
    assert stored(house, "outcome", "effaced_outbox") == ["verified_expiry", "verified_expiry"]
    to_today(house)
    assert {entry.resolver: entry.outcome for entry in house.entries()} == {
        "crm": StepOutcome.EXPIRED,
        "mailing": StepOutcome.VERIFIED_EXPIRY,
    }


def test_a_read_back_that_was_given_up_is_named_so(house: House, noon: ManualClock) -> None:
    house.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))
    request_id = house.request(("crm", "c-1"))
    for _ in range(27):
        house.drain()
        noon.advance(DAY)
    to_the_time_before(house)
    assert stored(house, "verification", "effaced_outbox") == ["due"]
    to_today(house)
    assert house.entry().verification is Verification.UNVERIFIABLE
    assert unverified(house, request_id) == 1
    assert house.status(request_id) is RequestStatus.RUNNING


def test_what_was_done_by_hand_counts_as_attested(house: House) -> None:
    house.vendor("crm", Vendor(lambda _: ResolverError("no", code="http_400")))
    house.request(("crm", "c-1"))
    house.drain()
    with house.db.begin() as session:
        attest(session, KEYRING, house.entry().entry_id, actor="officer:7", reason="by telephone")
    to_the_time_before(house)
    with house.db.begin() as session:
        session.execute(text("UPDATE effaced_outbox SET verification = NULL, verified_at = NULL"))
    to_today(house)
    entry = house.entry()
    assert (entry.verification, entry.verified_at) == (Verification.ATTESTED, entry.ended_at)
