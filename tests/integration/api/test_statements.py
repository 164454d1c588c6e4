"""What a call costs between effaced and PostgreSQL, counted where the statements are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import event, select, text
from sqlalchemy.exc import DBAPIError

from effaced.accounts.api_keys import authenticate
from effaced.accounts.tables import ApiKey
from effaced.bench.relay import relayed
from effaced.core import clock
from effaced.core.db import Database

from .conftest import Api

MOST_STATEMENTS, MOST_TRANSACTIONS = 15, 2
"""Of a request that is taken in, executed and answered. Lower them when it takes fewer."""


@contextmanager
def counted(database: Database) -> Iterator[list[str]]:
    """The statements that are sent meanwhile, and COMMIT for each transaction that ends so."""
    sent: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    def commit(_: Any) -> None:
        sent.append("COMMIT")

    event.listen(database.engine, "before_cursor_execute", note)
    event.listen(database.engine, "commit", commit)
    try:
        yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
        event.remove(database.engine, "commit", commit)


@pytest.fixture
def api(make_api: Callable[..., Api], migrated_postgres_url: str) -> Api:
    made = make_api(migrated_postgres_url, approvals_needed=0)
    assert made.post(made.erasure("1")).status_code == 201  # what is read once, is read
    return made


def test_a_look_is_one_statement_without_a_transaction(migrated_postgres_url: str) -> None:
    with relayed(migrated_postgres_url) as (url, relay):
        database = Database(url)
        with database.look() as session:
            assert session.scalar(text("SELECT 1")) == 1
        relay.restart()
        relay._counting = True
        with database.look() as session:
            assert session.scalar(text("SELECT 'looked'")) == "looked"
        trips = [trip for trip in relay.trips if not trip.startswith(b"X")]
        # The pool asks whether the connection still lives; psycopg sends nothing else.
        assert len([trip for trip in trips if b"looked" in trip]) == 1
        assert len(trips) <= 2, trips
        assert not any(word in trip for trip in trips for word in (b"BEGIN", b"COMMIT", b"ROLLBACK"))
        database.dispose()


def test_a_connection_that_has_looked_has_transactions_again(migrated_postgres_url: str) -> None:
    database = Database(migrated_postgres_url, pool_size=1)
    for _ in range(3):
        with database.look() as session:
            first = session.scalar(text("SELECT pg_backend_pid()"))
        with suppress(ZeroDivisionError), database.begin() as session:
            assert session.scalar(text("SELECT pg_backend_pid()")) == first
            session.execute(text("CREATE TABLE left_behind (id int)"))
            raise ZeroDivisionError
        with database.read() as session:
            assert session.scalar(text("SELECT to_regclass('left_behind')")) is None
    database.dispose()


def test_a_connection_that_died_while_it_lay_idle_is_replaced_before_a_look(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, other = Database(migrated_postgres_url, pool_size=1), Database(migrated_postgres_url)
    with database.look() as session:
        pid = session.scalar(text("SELECT pg_backend_pid()"))
    with other.begin() as session:
        session.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
    later = clock.monotonic() + 60
    monkeypatch.setattr(clock, "monotonic", lambda: later)
    with database.look() as session:
        assert session.scalar(text("SELECT pg_backend_pid()")) != pid
    database.dispose()
    other.dispose()


def test_on_sqlite_a_look_takes_no_lock_and_sees_what_was_committed(migrated_sqlite_url: str) -> None:
    database = Database(migrated_sqlite_url)
    with database.begin() as session:
        session.execute(text("CREATE TABLE seen (id int)"))
        with database.look() as looking:
            assert authenticate(looking, f"eff_{'a' * 8}_{'a' * 32}") is None
    with database.look() as looking:
        assert looking.execute(text("SELECT count(*) FROM seen")).scalar() == 0
        with database.begin() as session:  # a look that is open keeps no writer waiting
            session.execute(text("INSERT INTO seen VALUES (1)"))
    database.dispose()


def test_what_was_looked_at_can_be_read_afterwards(make_api: Callable[..., Api], migrated_url: str) -> None:
    api = make_api(migrated_url)
    with api.runtime.db.look() as session:
        key = session.scalars(select(ApiKey)).one()
    assert (key.name, key.scopes, key.sandbox) == ("shop", ["requests:read", "requests:write"], False)


def test_a_look_at_what_is_not_there_fails_as_any_other_and_harms_nobody(migrated_url: str) -> None:
    database = Database(migrated_url, pool_size=1)
    with pytest.raises(DBAPIError), database.look() as session:
        session.execute(text("SELECT * FROM nothing_of_this_name"))
    with database.look() as session:
        assert session.scalar(text("SELECT 1")) == 1
    database.dispose()


def test_reading_takes_one_transaction_and_the_key_none(api: Api) -> None:
    with counted(api.runtime.db) as sent:
        assert api.get("/api/v1/requests").status_code == 200
    assert sent.count("COMMIT") == 1
    assert len([each for each in sent if "effaced_api_keys" in each]) == 1
    assert len(sent) <= 4, sent


def test_a_refused_call_costs_the_look_at_its_key(api: Api) -> None:
    with counted(api.runtime.db) as sent:
        assert api.post({"kind": "murder"}).status_code == 422
    assert len(sent) == 1


def test_a_request_is_taken_in_and_executed_within_its_budget(api: Api) -> None:
    with counted(api.runtime.db) as sent:
        assert api.post(api.erasure("2"), idempotency_key="a-1").status_code == 201
    statements = [each for each in sent if each != "COMMIT"]
    assert len(statements) <= MOST_STATEMENTS, [each[:80] for each in statements]
    assert sent.count("COMMIT") <= MOST_TRANSACTIONS
