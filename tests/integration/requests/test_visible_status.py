"""The status that a sender may see: as it is shown, and as lists are filtered by it, in every situation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from uuid import UUID

import pytest
from sqlalchemy import insert, select, text

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.core.db import Database
from effaced.model import RequestKind, RequestStatus, new_id
from effaced.requests.duplicates import originals_of, visible_status, visible_status_sql
from effaced.requests.read import RequestFilter, find_page
from effaced.requests.tables import Request

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ORIGINALS = ("none", "own", "another key's", "an officer's")
EXECUTED = (None, NOON - HOUR, NOON, NOON + HOUR)


@pytest.fixture
def keys(db: Database) -> tuple[UUID, UUID]:
    with db.begin() as session:
        made = [create_api_key(session, NewApiKey(name=name), actor="cli")[0].id for name in ("a", "b")]
    return made[0], made[1]


@pytest.fixture
def requests(db: Database, keys: tuple[UUID, UUID]) -> Iterator[dict[UUID, Request]]:
    """One request of the first key for every situation that there can be, by id."""
    own, other = keys
    rows = []
    for status, original, executed, approvals in product(RequestStatus, ORIGINALS, EXECUTED, (0, 1, 2)):
        before = new_id()
        if original != "none":
            sender = {"own": own, "another key's": other}.get(original)
            rows.append(row(before, sender, RequestStatus.RUNNING, executed, approvals, None))
        duplicate_of = None if original == "none" else before
        rows.append(row(new_id(), own, status, executed, approvals, duplicate_of))
    with db.begin() as session:
        session.execute(insert(Request), rows)
    with db.read() as session:
        yield {each.id: each for each in session.scalars(select(Request).where(Request.api_key_id == own))}


def row(
    request_id: UUID,
    sender: UUID | None,
    status: RequestStatus,
    executed: datetime | None,
    approvals: int,
    duplicate_of: UUID | None,
) -> dict[str, object]:
    return {
        "id": request_id,
        "ref": f"ER-{request_id.hex[-8:]}",
        "kind": RequestKind.ERASURE,
        "status": status,
        "api_key_id": sender,
        "duplicate_of": duplicate_of,
        "subject_key_id": "k1",
        "subject_hmac": request_id.hex * 2,
        "datamap_hash": "0" * 64,
        "approvals_needed": approvals,
        "received_at": NOON,
        "due_at": NOON + 30 * 24 * HOUR,
        "executed_at": executed,
        "execute_attempts": 0,
    }


def test_the_filter_finds_what_is_shown_in_every_situation(
    db: Database, keys: tuple[UUID, UUID], requests: dict[UUID, Request]
) -> None:
    with db.read() as session:
        originals = originals_of(session, requests.values())
        shown = {each.id: visible_status(each, originals.get(each.id)) for each in requests.values()}
        for status in RequestStatus:
            found = session.scalars(
                select(Request.id).where(Request.api_key_id == keys[0], visible_status_sql(status))
            )
            assert set(found) == {each for each, visible in shown.items() if visible is status}
    assert set(shown.values()) == set(RequestStatus)
    hidden = [each for each in requests.values() if shown[each.id] is not each.status]
    assert len(hidden) == 2 * len(EXECUTED) * 3, "of another sender's, whenever executed"


@pytest.mark.parametrize("status", RequestStatus)
def test_a_list_by_status_has_exactly_those_that_show_it(
    db: Database, keys: tuple[UUID, UUID], requests: dict[UUID, Request], status: RequestStatus
) -> None:
    with db.read() as session:
        originals = originals_of(session, requests.values())
        expected = {
            each.id for each in requests.values() if visible_status(each, originals.get(each.id)) is status
        }
        found, after = set(), None
        while True:
            which = RequestFilter(status=status, api_key_id=keys[0])
            page = find_page(session, which, NOON, after=after, limit=50)
            found |= {each.id for each in page.items}
            if (after := page.next) is None:
                break
    assert found == expected


def test_whoever_sees_everything_sees_the_status_as_it_is(
    db: Database, requests: dict[UUID, Request]
) -> None:
    with db.read() as session:
        page = find_page(session, RequestFilter(status=RequestStatus.RECEIVED), NOON, limit=500)
    received = {each.id for each in requests.values() if each.status is RequestStatus.RECEIVED}
    assert {each.id for each in page.items} == received


@pytest.mark.parametrize("latest_first", [False, True])
@pytest.mark.parametrize("status", [None, RequestStatus.REVIEW])
def test_the_list_of_one_key_goes_by_its_index(
    migrated_postgres_url: str, latest_first: bool, status: RequestStatus | None
) -> None:
    database = Database(migrated_postgres_url)
    with database.begin() as session:
        senders = [create_api_key(session, NewApiKey(name=f"k{n}"), actor="cli")[0].id for n in range(20)]
        rows = [
            row(new_id(), senders[n % 20], RequestStatus.REVIEW, None, 1, None) | {"due_at": NOON + n * HOUR}
            for n in range(4_000)
        ]
        session.execute(insert(Request), rows)
    with database.begin() as session:
        session.execute(text("ANALYZE effaced_requests"))
    asked: list[str] = []
    with database.read() as session:
        which = RequestFilter(api_key_id=senders[3], status=status)
        page = find_page(session, which, NOON, latest_first=latest_first, limit=50)
        session.execute(text("LOAD 'auto_explain'"))
        for name in ("log_min_duration = 0", "log_level = notice"):
            session.execute(text(f"SET auto_explain.{name}"))
        raw = session.connection().connection.dbapi_connection
        assert raw is not None
        raw.add_notice_handler(lambda notice: asked.append(notice.message_primary or ""))  # type: ignore[attr-defined]
        again = find_page(session, which, NOON, latest_first=latest_first, after=page.next, limit=50)
    database.dispose()
    assert (len(page.items), len(again.items)) == (50, 50)
    (plan,) = [each for each in asked if "effaced_requests" in each]
    assert "ix_effaced_requests_sender" in plan, plan
    assert "Sort" not in plan.replace("Sort Key", ""), plan
