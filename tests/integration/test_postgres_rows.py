"""A test never sees what another left behind: a used database is as good as new, or it is thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kept_connections
import postgres_rows
import psycopg
import pytest
from quick_database import open_quickly
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from effaced.core.db import Base, Database


@pytest.fixture
def used(postgres_admin: Any, migrated_postgres_template: str) -> Iterator[str]:
    url = postgres_admin.create(template=migrated_postgres_template)
    yield url
    postgres_admin.drop(url)


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


EVENT = "INSERT INTO effaced_audit_events (at, type, actor, payload) VALUES (now(), 'X', 'cli', '{}')"


def test_rows_and_the_companys_tables_go(used: str, migrated_postgres_shape: str) -> None:
    run(used, "CREATE TYPE mood AS ENUM ('fine')", "CREATE TABLE people (id serial PRIMARY KEY, mood mood)")
    run(used, "INSERT INTO people (mood) VALUES ('fine')", EVENT)
    assert postgres_rows.empty(used, migrated_postgres_shape)
    database = Database(used)
    with database.read() as session:
        full = [table.name for table in Base.metadata.sorted_tables if session.query(table).first()]
        assert full == ["effaced_schema_levels"]
    database.dispose()
    with psycopg.connect(used) as connection:
        assert connection.execute("SELECT to_regclass('people')").fetchone() == (None,)
        number = connection.execute(f"{EVENT} RETURNING id".encode()).fetchone()
        assert number == (1,)
        with pytest.raises(psycopg.Error, match="only grows"):
            connection.execute("DELETE FROM effaced_audit_events")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE effaced_requests ADD COLUMN more integer",
        "ALTER TABLE effaced_audit_events DISABLE TRIGGER ALL",
        "DROP INDEX ix_effaced_attempts_entry",
        "CREATE FUNCTION one() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "CREATE SCHEMA other",
        "ANALYZE",
        "DELETE FROM effaced_alembic_version",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',"
        " current_database()); END $$",
        "CREATE TABLE large AS SELECT n, repeat('x', 200) FROM generate_series(1, 3000) AS n",
    ],
)
def test_a_database_that_was_changed_is_not_used_again(
    used: str, migrated_postgres_shape: str, change: str
) -> None:
    run(used, change)
    assert not postgres_rows.empty(used, migrated_postgres_shape)


@pytest.fixture
def kept(used: str) -> Iterator[str]:
    """A database whose connections are kept from one test to the next."""
    name = make_url(used).database or ""
    kept_connections.keep(name)
    yield used
    kept_connections.close_all(name)


def process_of(url: str, *statements: str) -> int:
    """What a test does that opens the database: the statements, and who served them."""
    database = open_quickly(url)
    with database.begin() as session:
        for statement in statements:
            session.execute(text(statement))
        pid: int = session.scalar(text("SELECT pg_backend_pid()"))
    database.dispose()
    return pid


def test_a_connection_is_taken_over_by_the_next_test_alone(kept: str, migrated_postgres_shape: str) -> None:
    first = process_of(kept)
    second = process_of(kept)
    assert first != second
    assert postgres_rows.empty(kept, migrated_postgres_shape)
    assert process_of(kept) in (first, second)


def test_a_kept_connection_remembers_nothing(kept: str, migrated_postgres_shape: str) -> None:
    lock = "SELECT pg_advisory_lock(7)"
    first = process_of(kept, "SET lock_timeout = 7", lock, *["SELECT 1 AS often"] * 8)
    assert postgres_rows.empty(kept, migrated_postgres_shape)
    database = open_quickly(kept)
    with database.read() as session:
        assert session.scalar(text("SELECT pg_backend_pid()")) == first
        assert session.scalar(text("SHOW lock_timeout")) == "5s"
        assert session.scalar(text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")) == 0
        assert session.scalar(text("SELECT count(*) FROM pg_prepared_statements")) == 0
        for _ in range(8):
            assert session.scalar(text("SELECT 1 AS often")) == 1
    database.dispose()


def test_connections_that_a_test_left_open_are_cut(kept: str, migrated_postgres_shape: str) -> None:
    database = open_quickly(kept)
    session = database.sessions()
    session.execute(text("SELECT 1"))
    assert postgres_rows.empty(kept, migrated_postgres_shape)
    with pytest.raises(DBAPIError):
        session.execute(text("SELECT 1"))
    session.close()
    database.dispose()
