"""The transaction of an application that embeds effaced: all or nothing, however its engine was made."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, event, make_url, text
from sqlalchemy.orm import Session, sessionmaker

from effaced.breakers.stores.sql import SqlBreakerStore
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError
from effaced.deadletters.repository import SQLFailedOperationRepository
from effaced.embed import Effaced
from effaced.model import RequestStatus, SubjectRef
from effaced.resolvers.noop import NoopResolver
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.saga.facade import Outbox, OutboxEntry

MAP = """
version: 1
subject: {table: customers, key: id}
refs: {crm_contact: {column: id}}
tables:
  customers: {columns: {id: delete}}
"""
SAID = "AUTOCOMMIT"


class Shop:
    """An application that makes its engine by itself, as applications do."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url.replace("postgresql://", "postgresql+psycopg://")
        self.engine = create_engine(self.url)
        with self.engine.begin() as connection:
            connection.execute(text("CREATE TABLE customers (id integer PRIMARY KEY)"))
            connection.execute(text("INSERT INTO customers VALUES (1), (2)"))
        (folder / "map.yaml").write_text(MAP)
        self.datamap = folder / "map.yaml"
        self.engines = [self.engine]

    def made(self, **options: Any) -> Engine:
        self.engines.append(engine := create_engine(self.url, **options))
        return engine

    def privacy(self, sessions: sessionmaker[Session]) -> Effaced:
        registry = ResolverRegistry((Registered("crm", "crm_contact", NoopResolver()),))
        return Effaced(sessions, keys=new_key(), datamap=self.datamap, resolvers=registry)

    def customers(self) -> list[int]:
        with self.engine.connect() as connection:
            return list(connection.scalars(text("SELECT id FROM customers ORDER BY id")))

    def entries(self) -> int:
        with self.engine.connect() as connection:
            return connection.scalar(text("SELECT count(*) FROM effaced_outbox")) or 0


@pytest.fixture
def shop(migrated_url: str, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(migrated_url, tmp_path)
    yield shop
    for engine in shop.engines:
        engine.dispose()


MAKERS = pytest.mark.parametrize(
    "make",
    [
        lambda sessions: Outbox(sessions, keyring=Keyring.parse(new_key())),
        lambda sessions: SQLFailedOperationRepository(sessions, Keyring.parse(new_key())),
        SqlBreakerStore,
    ],
    ids=["outbox", "dead_letters", "breakers"],
)


class TestAutocommit:
    def test_of_the_engine_is_refused_at_the_start(self, shop: Shop) -> None:
        with pytest.raises(ConfigurationError, match=SAID):
            shop.privacy(sessionmaker(shop.made(isolation_level="AUTOCOMMIT")))

    def test_of_the_engine_s_options_is_refused_at_the_start(self, shop: Shop) -> None:
        with pytest.raises(ConfigurationError, match=SAID):
            shop.privacy(sessionmaker(shop.made().execution_options(isolation_level="AUTOCOMMIT")))

    @MAKERS
    def test_is_refused_by_every_part_of_the_library(
        self, shop: Shop, make: Callable[[sessionmaker[Session]], object]
    ) -> None:
        with pytest.raises(ConfigurationError, match=SAID):
            make(sessionmaker(shop.made(isolation_level="AUTOCOMMIT")))

    def test_that_the_engine_s_options_take_back_is_none(self, shop: Shop) -> None:
        engine = shop.made(isolation_level="AUTOCOMMIT").execution_options(isolation_level="SERIALIZABLE")
        sessions = sessionmaker(engine)
        privacy = shop.privacy(sessions)
        with sessions() as session:
            privacy.erase(session, "1")
            session.rollback()
        assert (shop.customers(), shop.entries()) == ([1, 2], 0)

    def test_of_the_session_at_hand_is_refused_before_anything_changes(self, shop: Shop) -> None:
        privacy = shop.privacy(sessionmaker(shop.engine))
        with sessionmaker(shop.engine)() as session:
            session.connection(execution_options={"isolation_level": "AUTOCOMMIT"})
            with pytest.raises(ConfigurationError, match=SAID):
                privacy.erase(session, "1")
            entry = OutboxEntry("crm", SubjectRef("crm_contact", "1"), "1")
            with pytest.raises(ConfigurationError, match=SAID):
                privacy.outbox.enqueue(session, [entry])
        assert (shop.customers(), shop.entries()) == ([1, 2], 0)

    def test_of_the_driver_s_own_connections_is_refused(self, shop: Shop) -> None:
        def connect() -> Any:
            url = make_url(shop.url)
            if url.get_backend_name() == "sqlite":
                return sqlite3.connect(str(url.database), isolation_level=None)
            said = url.set(drivername="postgresql").render_as_string(hide_password=False)
            return psycopg.connect(said, autocommit=True)

        sessions = sessionmaker(shop.made(creator=connect))
        privacy = shop.privacy(sessions)
        with sessions() as session, pytest.raises(ConfigurationError, match=SAID):
            privacy.erase(session, "1")
        with pytest.raises(ConfigurationError, match=SAID):
            privacy.outbox.status_counts()
        assert shop.customers() == [1, 2]

    @pytest.mark.parametrize("value", ["1", "true", "on"])
    def test_in_a_database_s_address_is_refused(self, value: str) -> None:
        with pytest.raises(ConfigurationError, match="autocommit"):
            Database(f"postgresql://db.example/shop?autocommit={value}")


def begin_by_itself(engine: Engine) -> Engine:
    """What SQLAlchemy's notes on pysqlite and savepoints say."""

    @event.listens_for(engine, "connect")
    def connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


class TestSavepoint:
    """What happens inside the caller's savepoint is the caller's to take back."""

    @pytest.fixture
    def sqlite(self, migrated_sqlite_url: str, tmp_path: Path) -> Iterator[Shop]:
        shop = Shop(migrated_sqlite_url, tmp_path)
        yield shop
        for engine in shop.engines:
            engine.dispose()

    def test_in_a_transaction_that_sqlite_has_not_begun_is_refused(self, sqlite: Shop) -> None:
        """Python's sqlite3 would commit at the savepoint's end, and the rollback would undo nothing."""
        sessions = sessionmaker(sqlite.engine)
        privacy = sqlite.privacy(sessions)
        with sessions() as session:
            with session.begin_nested(), pytest.raises(ConfigurationError, match="begin_nested"):
                privacy.erase(session, "1")
            session.rollback()
        assert (sqlite.customers(), sqlite.entries()) == ([1, 2], 0)

    def test_around_an_enqueue_is_refused_too(self, sqlite: Shop) -> None:
        sessions = sessionmaker(sqlite.engine)
        outbox = Outbox(sessions, keyring=Keyring.parse(new_key()))
        entry = OutboxEntry("crm", SubjectRef("crm_contact", "1"), "1")
        with (
            sessions() as session,
            session.begin_nested(),
            pytest.raises(ConfigurationError, match="begin_nested"),
        ):
            outbox.enqueue(session, [entry])

    def test_of_a_connection_s_own_is_refused_too(self, sqlite: Shop) -> None:
        privacy = sqlite.privacy(sessionmaker(sqlite.engine))
        with sqlite.engine.connect() as connection:
            connection.begin()
            session = Session(connection, join_transaction_mode="create_savepoint")
            with pytest.raises(ConfigurationError, match="begin_nested"):
                privacy.erase(session, "1")

    def engine_of(self, shop: Shop, kind: str) -> Engine:
        return begin_by_itself(shop.made()) if kind == "recipe" else Database(shop.url).engine

    @pytest.mark.parametrize("kind", ["recipe", "database"])
    def test_is_undone_with_its_transaction(self, sqlite: Shop, kind: str) -> None:
        sessions = sessionmaker(self.engine_of(sqlite, kind))
        privacy = sqlite.privacy(sessions)
        with sessions() as session:
            with session.begin_nested():
                privacy.erase(session, "1")
            session.rollback()
        assert (sqlite.customers(), sqlite.entries()) == ([1, 2], 0)

    @pytest.mark.parametrize("kind", ["recipe", "database"])
    def test_is_undone_alone(self, sqlite: Shop, kind: str) -> None:
        sessions = sessionmaker(self.engine_of(sqlite, kind))
        privacy = sqlite.privacy(sessions)
        with sessions.begin() as session:
            point = session.begin_nested()
            privacy.erase(session, "1")
            point.rollback()
            privacy.erase(session, "2")
        assert (sqlite.customers(), sqlite.entries()) == ([1], 1)

    def test_on_postgresql_is_the_caller_s(self, migrated_postgres_url: str, tmp_path: Path) -> None:
        shop = Shop(migrated_postgres_url, tmp_path)
        sessions = sessionmaker(shop.engine)
        privacy = shop.privacy(sessions)
        with sessions() as session:
            with session.begin_nested():
                privacy.erase(session, "1")
            session.rollback()
        assert (shop.customers(), shop.entries()) == ([1, 2], 0)
        shop.engine.dispose()


def test_a_plain_sqlite_engine_has_begun_before_the_first_look(
    migrated_sqlite_url: str, tmp_path: Path
) -> None:
    """What is looked up first is still so when it is changed: nobody else writes in between."""
    shop = Shop(migrated_sqlite_url, tmp_path)
    sessions = sessionmaker(shop.engine)
    statements: list[str] = []
    privacy = shop.privacy(sessions)
    event.listen(shop.engine, "before_cursor_execute", lambda *found: statements.append(found[2]))
    with sessions() as session:
        privacy.erase(session, "1")
    assert statements[0] == "BEGIN IMMEDIATE"
    shop.engine.dispose()


def test_sessions_that_do_not_begin_by_themselves_are_the_application_s_own_affair(shop: Shop) -> None:
    sessions = sessionmaker(shop.engine, autobegin=False)
    privacy = shop.privacy(sessions)
    with sessions() as session, session.begin():
        taken = privacy.erase(session, "1")
    assert asyncio.run(privacy.runner().run_once()) == 1
    with sessions() as session, session.begin():
        found = privacy.look_up(session, taken.request_id)
        assert found is not None
        assert found.status is RequestStatus.COMPLETED
    assert privacy.plan
    assert privacy.outbox.list_abandoned() == []
