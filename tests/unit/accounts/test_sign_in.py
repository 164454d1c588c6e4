from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select

from effaced.accounts.officers import create_officer, deactivate_officer
from effaced.accounts.passwords import needs_rehash
from effaced.accounts.refusals import close_refusals
from effaced.accounts.sign_in import REFUSED, Attempt, Device, SignInResult, sign_in
from effaced.accounts.tables import Officer, SignInCounter, SignInRefusals
from effaced.accounts.throttle import (
    MOST_PER_ACCOUNT,
    MOST_PER_ADDRESS,
    WINDOW,
    delete_old_counters,
    reset_counters,
)
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.model import Role

pytestmark = pytest.mark.usefixtures("cheap_passwords")

EMAIL, PASSWORD = "ada@example.org", "correct horse battery"
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
KEYRING = Keyring.parse(new_key())
HOME, ELSEWHERE = "192.0.2.1", "198.51.100.7"


@pytest.fixture
def at() -> Iterator[clock.ManualClock]:
    with clock.pretend(START) as manual:
        yield manual


@pytest.fixture
def officer(db: Database, at: clock.ManualClock) -> Officer:
    with db.begin() as session:
        return create_officer(
            session, email=EMAIL, name="Ada", role=Role.OFFICER, password=PASSWORD, actor="cli"
        )


def attempt(
    db: Database,
    password: str = PASSWORD,
    email: str = EMAIL,
    address: str = HOME,
    device: Device | None = None,
) -> SignInResult:
    return sign_in(db, KEYRING, Attempt(email, password, address, device))


def refusals(db: Database) -> list[dict[str, object]]:
    with db.read() as session:
        query = select(AuditEvent.payload).where(AuditEvent.type == "SIGN_IN_REFUSED").order_by(AuditEvent.id)
        return list(session.scalars(query))


def stored(db: Database, officer: Officer) -> Officer:
    with db.read() as session:
        return session.get_one(Officer, officer.id)


def last_event(db: Database) -> tuple[str, str, dict[str, object]]:
    with db.read() as session:
        row = session.scalars(select(AuditEvent).order_by(AuditEvent.id.desc())).first()
    assert row is not None
    return row.type, row.actor, row.payload


def test_the_right_password_lets_in_and_is_recorded(db: Database, officer: Officer) -> None:
    result = attempt(db, email=" ADA@example.org")
    assert result.officer is not None
    assert result.officer.id == officer.id
    assert stored(db, officer).last_sign_in_at == START
    assert last_event(db) == ("SIGNED_IN", f"officer:{officer.id}", {"officer_id": str(officer.id)})


def test_a_wrong_password_is_recorded(db: Database, officer: Officer) -> None:
    assert attempt(db, "wrong") == SignInResult(None, REFUSED)
    assert last_event(db) == (
        "SIGN_IN_REFUSED",
        "system",
        {"officer_id": str(officer.id), "why": "wrong_password", "count": 1},
    )


def test_somebody_unknown_hears_the_same_sentence(db: Database, at: clock.ManualClock) -> None:
    for email in ("nobody@example.org", "", "no address", "\x00@x", "\ud800@x", "a" * 400 + "@x"):
        assert attempt(db, email=email) == SignInResult(None, REFUSED)
    assert refusals(db) == [{"why": "unknown_officer", "count": 1}]


def test_a_deactivated_officer_hears_the_same_sentence(db: Database, officer: Officer) -> None:
    with db.begin() as session:
        deactivate_officer(session, session.get_one(Officer, officer.id), actor="cli")
    assert attempt(db) == SignInResult(None, REFUSED)
    assert last_event(db)[2]["why"] == "inactive"


def is_throttled(result: SignInResult) -> bool:
    return result.officer is None and result.retry_after is not None


class TestWrongPasswords:
    def test_five_from_one_address_make_even_the_right_one_wait(self, db: Database, officer: Officer) -> None:
        for _ in range(5):
            assert attempt(db, "wrong") == SignInResult(None, REFUSED)
        result = attempt(db)
        assert (result.officer, result.retry_after) == (None, WINDOW)
        assert "15 minutes" in result.message

    def test_four_do_not(self, db: Database, officer: Officer) -> None:
        for _ in range(4):
            attempt(db, "wrong")
        assert attempt(db).officer is not None

    def test_are_forgiven_after_the_right_one(self, db: Database, officer: Officer) -> None:
        for password in ["wrong"] * 4 + [PASSWORD] + ["wrong"] * 4:
            attempt(db, password)
        assert attempt(db).officer is not None

    def test_are_forgiven_after_fifteen_minutes(
        self, db: Database, officer: Officer, at: clock.ManualClock
    ) -> None:
        for _ in range(5):
            attempt(db, "wrong")
        at.advance(WINDOW - timedelta(seconds=1))
        assert is_throttled(attempt(db))
        at.advance(timedelta(seconds=1))
        for _ in range(4):
            assert attempt(db, "wrong") == SignInResult(None, REFUSED)
        assert attempt(db).officer is not None

    def test_tried_during_the_wait_do_not_lengthen_it(
        self, db: Database, officer: Officer, at: clock.ManualClock
    ) -> None:
        for _ in range(5):
            attempt(db, "wrong")
        at.advance(timedelta(minutes=10))
        for _ in range(5):
            attempt(db, "wrong")
        at.advance(timedelta(minutes=5))
        assert attempt(db).officer is not None

    def test_of_a_stranger_do_not_keep_the_officer_out(self, db: Database, officer: Officer) -> None:
        for _ in range(10):
            attempt(db, "wrong", address=ELSEWHERE)
        assert attempt(db).officer is not None

    def test_of_many_addresses_keep_out_everybody_but_the_officers_own_browser(
        self, db: Database, officer: Officer
    ) -> None:
        for number in range(MOST_PER_ACCOUNT):
            attempt(db, "wrong", address=f"203.0.113.{number}")
        assert is_throttled(attempt(db))
        assert is_throttled(attempt(db, device=Device(UUID(int=7), "of somebody else")))
        assert attempt(db, device=Device(officer.id, "laptop")).officer is not None

    def test_in_the_officers_own_browser_are_limited_too(self, db: Database, officer: Officer) -> None:
        for _ in range(5):
            attempt(db, "wrong", device=Device(officer.id, "laptop"))
        assert is_throttled(attempt(db, device=Device(officer.id, "laptop"), address=ELSEWHERE))

    def test_for_many_accounts_make_their_address_wait(self, db: Database, officer: Officer) -> None:
        for number in range(MOST_PER_ADDRESS):
            attempt(db, "wrong", email=f"p{number}@example.org", address=ELSEWHERE)
        assert is_throttled(attempt(db, address=ELSEWHERE))
        assert attempt(db, address=HOME).officer is not None

    def test_make_an_unknown_account_wait_like_a_known_one(self, db: Database, officer: Officer) -> None:
        for email in (EMAIL, "nobody@example.org"):
            answers = [attempt(db, "wrong", email=email) for _ in range(6)]
            assert answers[:5] == [SignInResult(None, REFUSED)] * 5
            assert answers[5].retry_after == WINDOW

    def test_stop_counting_with_a_new_password(self, db: Database, officer: Officer) -> None:
        for _ in range(5):
            attempt(db, "wrong")
        with db.begin() as session:
            reset_counters(session, KEYRING, EMAIL.upper())
        assert attempt(db).officer is not None

    def test_leave_nothing_that_names_anybody_and_nothing_after_the_window(
        self, db: Database, officer: Officer, at: clock.ManualClock
    ) -> None:
        attempt(db, "wrong", email="someone.typed@example.org")
        with db.begin() as session:
            kept = repr(session.execute(select(SignInCounter.__table__)).all())
            assert "someone" not in kept
            assert HOME not in kept
        at.advance(WINDOW)
        with db.begin() as session:
            delete_old_counters(session)
            close_refusals(session)
            assert session.scalars(select(SignInCounter)).all() == []
            assert session.scalars(select(SignInRefusals)).all() == []


class TestTrail:
    def test_grows_by_the_number_of_digits_of_what_was_refused(
        self, db: Database, at: clock.ManualClock
    ) -> None:
        for number in range(100):
            attempt(db, email=f"p{number}@example.org", address=f"203.0.113.{number}")
        assert [each["count"] for each in refusals(db)] == [1, 10, 100]

    def test_has_the_final_count_once_the_window_is_over(
        self, db: Database, officer: Officer, at: clock.ManualClock
    ) -> None:
        for _ in range(4):
            attempt(db, "wrong")
        at.advance(WINDOW)
        with db.begin() as session:
            close_refusals(session)
            close_refusals(session)
        since = START.isoformat().replace("+00:00", "Z")
        whose = {"officer_id": str(officer.id), "why": "wrong_password"}
        assert refusals(db) == [{**whose, "count": 1}, {**whose, "count": 4, "since": since}]

    def test_has_the_final_count_also_if_the_next_refusal_comes_before_the_housekeeping(
        self, db: Database, officer: Officer, at: clock.ManualClock
    ) -> None:
        for _ in range(3):
            attempt(db, "wrong")
        at.advance(WINDOW)
        attempt(db, "wrong")
        assert [each["count"] for each in refusals(db)] == [1, 3, 1]

    def test_does_not_grow_with_tries_that_have_to_wait(self, db: Database, officer: Officer) -> None:
        for _ in range(30):
            attempt(db, "wrong")
        assert len(refusals(db)) == 1


def test_signing_in_strengthens_an_old_hash(db: Database, officer: Officer) -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD.encode())
    with db.begin() as session:
        session.get_one(Officer, officer.id).password_hash = weak
    assert attempt(db).officer is not None
    assert not needs_rehash(stored(db, officer).password_hash)
