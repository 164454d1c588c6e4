"""One migration tree for both databases, and the trail's guards in place after it."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text
from sqlalchemy.exc import DatabaseError
from waiting import PATIENCE

from effaced import migrate
from effaced.audit.append import append_one
from effaced.audit.events import RequestRepeated
from effaced.core.db import Database
from effaced.core.db.schema_level import require_fitting_schema
from effaced.core.errors import Unavailable


@pytest.fixture
def empty(database_url: str) -> Database:
    database = Database(database_url)
    yield database
    database.dispose()


def effaced_tables(database: Database) -> set[str]:
    return {name for name in inspect(database.engine).get_table_names() if name.startswith("effaced_")}


def test_upgrade_from_empty_gives_what_the_models_say(empty: Database, database_url: str) -> None:
    migrate.upgrade(database_url)
    with empty.engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "version_table": migrate.VERSION_TABLE,
                "compare_type": True,
                "include_name": lambda name, kind, _: kind != "table" or (name or "").startswith("effaced_"),
            },
        )
        assert compare_metadata(context, migrate.load_tables().metadata) == []


def test_downgrade_leaves_nothing_of_ours(empty: Database, database_url: str) -> None:
    migrate.upgrade(database_url)
    migrate.downgrade(database_url, "base")
    assert effaced_tables(empty) == {migrate.VERSION_TABLE}


def test_the_companys_tables_are_left_alone(empty: Database, database_url: str) -> None:
    with empty.begin() as session:
        session.execute(text("CREATE TABLE customers (id integer primary key, email text)"))
        session.execute(text("INSERT INTO customers VALUES (1, 'anna@people.example')"))
    migrate.upgrade(database_url)
    migrate.downgrade(database_url, "base")
    with empty.read() as session:
        assert session.execute(text("SELECT * FROM customers")).all() == [(1, "anna@people.example")]


def test_many_at_once_do_it_once(fresh_postgres_url: str) -> None:
    code = "import sys; from effaced import migrate; migrate.upgrade(sys.argv[1])"
    processes = [subprocess.Popen([sys.executable, "-c", code, fresh_postgres_url]) for _ in range(3)]
    assert [process.wait(PATIENCE) for process in processes] == [0, 0, 0]


def test_a_database_without_tables_is_refused_with_the_command_to_run(empty: Database) -> None:
    with empty.read() as session, pytest.raises(Unavailable, match="effaced migrate"):
        require_fitting_schema(session.connection())


class TestTrail:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE effaced_audit_events SET actor = 'nobody'",
            "DELETE FROM effaced_audit_events",
            "UPDATE effaced_audit_events SET type = 'X' WHERE id > 0",
        ],
    )
    def test_refuses_to_be_changed(self, db: Database, statement: str) -> None:
        with db.begin() as session:
            append_one(session, RequestRepeated())
        with pytest.raises(DatabaseError, match="only grows"), db.begin() as session:
            session.execute(text(statement))

    def test_refuses_truncate(self, migrated_postgres_url: str) -> None:
        database = Database(migrated_postgres_url)
        with pytest.raises(DatabaseError, match="only grows"), database.begin() as session:
            session.execute(text("TRUNCATE effaced_audit_events"))
        database.dispose()

    @pytest.mark.parametrize("verb", ["INSERT OR REPLACE", "REPLACE"])
    def test_refuses_a_replacement_in_sqlite(self, migrated_sqlite_url: str, verb: str) -> None:
        database = Database(migrated_sqlite_url)
        with database.begin() as session:
            append_one(session, RequestRepeated())
        columns, values = "(id, at, type, actor, payload)", "(1, '2026', 'X', 'y', '{}')"
        replace = f"{verb} INTO effaced_audit_events {columns} VALUES {values}"
        with pytest.raises(DatabaseError, match="only grows"), database.begin() as session:
            session.execute(text(replace))
        database.dispose()

    def test_rolls_back_with_what_it_tells_of(self, db: Database) -> None:
        class Undone(Exception):
            pass

        def append_and_fail() -> None:
            with db.begin() as session:
                append_one(session, RequestRepeated())
                raise Undone

        with pytest.raises(Undone):
            append_and_fail()
        with db.read() as session:
            assert session.scalar(text("SELECT count(*) FROM effaced_audit_events")) == 0


def test_writers_on_sqlite_wait_for_each_other(migrated_sqlite_url: str) -> None:
    """Two read-then-write transactions: with deferred locks one would be told that it came too late."""
    database = Database(migrated_sqlite_url)
    inside, errors = threading.Event(), []

    def second() -> None:
        inside.wait(PATIENCE)
        try:
            with database.begin() as session:
                session.execute(text("SELECT count(*) FROM effaced_audit_events"))
                append_one(session, RequestRepeated())
        except DatabaseError as error:
            errors.append(error)

    thread = threading.Thread(target=second)
    thread.start()
    with database.begin() as session:
        session.execute(text("SELECT count(*) FROM effaced_audit_events"))
        inside.set()
        append_one(session, RequestRepeated())
    thread.join(PATIENCE)
    with database.read() as session:
        assert session.scalar(text("SELECT count(*) FROM effaced_audit_events")) == 2
    assert errors == []
    database.dispose()
