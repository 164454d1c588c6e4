"""`Effaced.migrate` works where the application's engine does, whatever its address says."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.orm import sessionmaker
from sqlalchemy.pool import StaticPool

from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.embed import Effaced
from effaced.model import RequestStatus
from effaced.resolvers.registry import ResolverRegistry

MAP = """
version: 1
subject: {table: customers, key: id}
tables:
  customers: {columns: {id: delete}}
"""
NOWHERE = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"


@pytest.fixture
def embed(tmp_path: Path) -> Iterator[Callable[[Engine], Effaced]]:
    (path := tmp_path / "map.yaml").write_text(MAP)
    engines: list[Engine] = []

    def made(engine: Engine) -> Effaced:
        engines.append(engine)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE customers (id integer PRIMARY KEY)"))
            connection.execute(text("INSERT INTO customers VALUES (1)"))
        return Effaced(sessionmaker(engine), keys=new_key(), datamap=path, resolvers=ResolverRegistry(()))

    yield made
    for engine in engines:
        engine.dispose()


def works(privacy: Effaced, engine: Engine) -> bool:
    privacy.migrate()
    privacy.migrate()  # again: nothing left to do
    with sessionmaker(engine).begin() as session:
        return privacy.erase(session, "1").status is RequestStatus.COMPLETED


def begin_by_itself(engine: Engine) -> Engine:
    event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def psycopg_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


@pytest.mark.parametrize("options", [{}, {"isolation_level": "SERIALIZABLE"}], ids=["plain", "serializable"])
def test_an_engine_of_the_application_s_own(
    embed: Callable[[Engine], Effaced], database_url: str, options: dict[str, Any]
) -> None:
    engine = create_engine(psycopg_url(database_url), **options)
    assert works(embed(engine), engine)


def test_an_engine_of_effaced(embed: Callable[[Engine], Effaced], database_url: str) -> None:
    engine = Database(database_url).engine
    assert works(embed(engine), engine)


class TestSqlite:
    def test_in_memory(self, embed: Callable[[Engine], Effaced]) -> None:
        engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        assert works(embed(engine), engine)

    def test_that_a_function_connects_to(self, embed: Callable[[Engine], Effaced], tmp_path: Path) -> None:
        engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(tmp_path / "shop.db"))
        assert works(embed(engine), engine)

    def test_whose_engine_begins_by_itself(
        self, embed: Callable[[Engine], Effaced], fresh_sqlite_url: str
    ) -> None:
        engine = begin_by_itself(create_engine(fresh_sqlite_url))
        assert works(embed(engine), engine)

    def test_whose_migration_fails_is_as_it_was(
        self, embed: Callable[[Engine], Effaced], fresh_sqlite_url: str
    ) -> None:
        engine = create_engine(fresh_sqlite_url)
        privacy = embed(engine)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE effaced_outbox (somebody_elses integer)"))
        with pytest.raises(Exception, match="effaced_outbox"):
            privacy.migrate()
        assert set(inspect(engine).get_table_names()) == {"customers", "effaced_outbox"}


class TestPostgres:
    def test_in_the_schema_that_the_engine_looks_in(
        self, embed: Callable[[Engine], Effaced], fresh_postgres_url: str
    ) -> None:
        engine = create_engine(
            psycopg_url(fresh_postgres_url), connect_args={"options": "-c search_path=tenant"}
        )
        with engine.begin() as connection:
            connection.execute(text("CREATE SCHEMA tenant"))
        assert works(embed(engine), engine)
        with engine.connect() as connection:
            found = text("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename LIKE 'effaced%'")
            assert list(connection.scalars(found)) == ["tenant"]

    def test_that_a_function_connects_to(
        self, embed: Callable[[Engine], Effaced], fresh_postgres_url: str
    ) -> None:
        said = make_url(fresh_postgres_url).set(drivername="postgresql")
        address = said.render_as_string(hide_password=False)
        engine = create_engine(NOWHERE, creator=lambda: psycopg.connect(address))
        assert works(embed(engine), engine)

    def test_gives_the_connection_back_as_it_was(
        self, embed: Callable[[Engine], Effaced], fresh_postgres_url: str
    ) -> None:
        engine = create_engine(psycopg_url(fresh_postgres_url), pool_size=1, max_overflow=0)
        privacy = embed(engine)
        asked = text("SELECT pg_backend_pid(), current_setting('lock_timeout'), count(*) FROM pg_locks"
                     " WHERE locktype = 'advisory' AND pid = pg_backend_pid()")  # fmt: skip
        with engine.connect() as connection:
            before = connection.execute(asked).one()
        privacy.migrate()
        with engine.connect() as connection:
            assert connection.execute(asked).one() == before
