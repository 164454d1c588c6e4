from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select

from effaced import clock
from effaced.accounts.officers import create_officer, deactivate_officer
from effaced.accounts.passwords import needs_rehash
from effaced.accounts.sign_in import LOCKED_FOR, REFUSED, SignInResult, sign_in
from effaced.accounts.tables import Officer
from effaced.audit.tables import AuditEvent
from effaced.db import Database
from effaced.model import Role

EMAIL, PASSWORD = "ada@example.org", "correct horse battery"
START = datetime(2026, 3, 2, 9, tzinfo=UTC)


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


def attempt(db: Database, password: str = PASSWORD, email: str = EMAIL) -> SignInResult:
    with db.begin() as session:
        return sign_in(session, email=email, password=password)


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


def test_a_wrong_password_is_counted_and_recorded(db: Database, officer: Officer) -> None:
    assert attempt(db, "wrong") == SignInResult(None, REFUSED)
    assert stored(db, officer).failed_sign_ins == 1
    assert last_event(db) == (
        "SIGN_IN_REFUSED",
        "system",
        {"officer_id": str(officer.id), "why": "wrong_password"},
    )


def test_somebody_unknown_hears_the_same_sentence(db: Database, at: clock.ManualClock) -> None:
    for email in ("nobody@example.org", "", "no address", "\x00@x", "a" * 400 + "@x"):
        assert attempt(db, email=email) == SignInResult(None, REFUSED)
        assert last_event(db) == ("SIGN_IN_REFUSED", "system", {"why": "unknown_officer"})


def test_a_deactivated_officer_hears_the_same_sentence(db: Database, officer: Officer) -> None:
    with db.begin() as session:
        deactivate_officer(session, session.get_one(Officer, officer.id), actor="cli")
    assert attempt(db) == SignInResult(None, REFUSED)
    assert last_event(db)[2]["why"] == "inactive"


def test_five_failures_lock_even_the_right_password_out(db: Database, officer: Officer) -> None:
    for _ in range(5):
        attempt(db, "wrong")
    assert attempt(db) == SignInResult(None, REFUSED)
    assert last_event(db)[2]["why"] == "locked"


def test_four_failures_do_not_lock(db: Database, officer: Officer) -> None:
    for _ in range(4):
        attempt(db, "wrong")
    assert attempt(db).officer is not None


def test_a_success_starts_the_count_anew(db: Database, officer: Officer) -> None:
    for password in ["wrong"] * 4 + [PASSWORD] + ["wrong"] * 4:
        attempt(db, password)
    assert attempt(db).officer is not None


def test_the_lock_ends_after_fifteen_minutes(db: Database, officer: Officer, at: clock.ManualClock) -> None:
    for _ in range(5):
        attempt(db, "wrong")
    at.advance(LOCKED_FOR - timedelta(seconds=1))
    assert attempt(db).officer is None
    at.advance(timedelta(seconds=1))
    assert attempt(db).officer is not None


def test_trying_while_locked_does_not_lengthen_the_lock(
    db: Database, officer: Officer, at: clock.ManualClock
) -> None:
    for _ in range(5):
        attempt(db, "wrong")
    at.advance(timedelta(minutes=10))
    for _ in range(5):
        attempt(db, "wrong")
    at.advance(timedelta(minutes=5))
    assert attempt(db).officer is not None


def test_after_a_lock_there_are_five_tries_again(
    db: Database, officer: Officer, at: clock.ManualClock
) -> None:
    for _ in range(5):
        attempt(db, "wrong")
    at.advance(LOCKED_FOR)
    for _ in range(4):
        attempt(db, "wrong")
    assert attempt(db).officer is not None


def test_signing_in_strengthens_an_old_hash(db: Database, officer: Officer) -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD.encode())
    with db.begin() as session:
        session.get_one(Officer, officer.id).password_hash = weak
    assert attempt(db).officer is not None
    assert not needs_rehash(stored(db, officer).password_hash)
