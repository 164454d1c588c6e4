"""Others who write to the same rows while a person is erased. SQLite has one writer at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from textwrap import dedent

import pytest
from sqlalchemy import text

from effaced.core.db import Database
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import plan_erasure
from effaced.datamap.run.erase import erase

MAP = """
    version: 1
    subject: {table: people, key: id}
    tables:
      people: {columns: {id: delete, home: delete}}
      orders: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete}}
      addresses: {link: {from: people, on: {id: home}}, columns: {id: delete, town: delete}}
      towns: {link: {from: addresses, on: {id: town}}, columns: {id: delete}}
    """
WITH_KEYS = (
    "CREATE TABLE towns (id integer PRIMARY KEY)",
    "CREATE TABLE addresses (id integer PRIMARY KEY, town integer REFERENCES towns)",
    "CREATE TABLE people (id integer PRIMARY KEY, home integer REFERENCES addresses)",
    "CREATE TABLE orders (id integer PRIMARY KEY, person integer REFERENCES people)",
)
WITHOUT_KEYS = tuple(each.partition(" REFERENCES")[0] + (")" if " REF" in each else "") for each in WITH_KEYS)


class Street:
    """Alice (1) and Bob (2) share the address 11, the only one in the town 5."""

    def __init__(self, database: Database, folder, tables) -> None:
        self.database = database
        path = folder / "datamap.yaml"
        path.write_text(dedent(MAP), encoding="utf-8")
        with database.begin() as session:
            for statement in (
                *tables,
                "INSERT INTO towns VALUES (5)",
                "INSERT INTO addresses VALUES (11, 5)",
                "INSERT INTO people VALUES (1, 11), (2, 11)",
                "INSERT INTO orders VALUES (100, 1)",
            ):
                session.execute(text(statement))
            self.plan = plan_erasure(session.connection(), load_map(path))

    def erase(self, person: str) -> None:
        with self.database.begin() as session:
            erase(session, self.plan, person)

    def erase_beside(self, person: str, first) -> None:
        """Erase beside a transaction that has done `first`, which is committed when it is in the way."""
        failed: list[Exception] = []

        def work() -> None:
            try:
                self.erase(person)
            except Exception as error:
                failed.append(error)

        with self.database.begin() as session:
            first(session)
            thread = threading.Thread(target=work)
            thread.start()
            waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            with self.database.read() as watching:
                while thread.is_alive() and not watching.scalar(waiting):
                    watching.rollback()
        thread.join()
        assert failed == []

    def rows(self, table: str) -> list[int]:
        with self.database.read() as session:
            return list(session.scalars(text(f"SELECT id FROM {table} ORDER BY id")))


@pytest.fixture(params=[WITH_KEYS, WITHOUT_KEYS], ids=["foreign_keys", "no_foreign_keys"])
def street(request: pytest.FixtureRequest, fresh_postgres_url: str, tmp_path) -> Iterator[Street]:
    database = Database(fresh_postgres_url)
    yield Street(database, tmp_path, request.param)
    database.dispose()


def test_two_who_share_a_row_and_go_at_once_do_not_both_leave_it_behind(street):
    street.erase_beside("2", lambda session: erase(session, street.plan, "1"))
    assert (street.rows("people"), street.rows("addresses"), street.rows("towns")) == ([], [], [])


@pytest.mark.parametrize("street", [WITH_KEYS], indirect=True)
class TestWithForeignKeys:
    def test_a_row_that_a_neighbour_is_adding_for_the_person_goes_too(self, street):
        street.erase_beside("1", lambda session: session.execute(text("INSERT INTO orders VALUES (101, 1)")))
        assert street.rows("orders") == []

    def test_what_a_neighbour_begins_to_point_at_stays(self, street):
        street.erase("2")
        street.erase_beside("1", lambda session: session.execute(text("INSERT INTO people VALUES (3, 11)")))
        assert (street.rows("people"), street.rows("addresses"), street.rows("towns")) == ([3], [11], [5])
