"""Breakers in the database: rows are locked in the order of their names, transitions written with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Executable, bindparam, delete, insert, select, update
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from effaced.breakers import transitions
from effaced.breakers.model import CircuitBreakerStateData, StoreUnavailable
from effaced.breakers.stores.base import BreakerStore, ChangeFunction, changed_rows, with_new_rows
from effaced.breakers.stores.codec import NAMES, as_columns, from_columns
from effaced.breakers.tables import breakers
from effaced.core.db import Database, dbtime, is_postgres
from effaced.core.db.transactions import own_sessions

T = TypeVar("T")
_COLUMNS = [breakers.c[name] for name in NAMES]
# Built once, because it runs at every flush.
_NAMED = (
    select(*_COLUMNS)
    .where(breakers.c.service_name.in_(bindparam("names", expanding=True)))
    .order_by(breakers.c.service_name)
)
_NAMED_AND_LOCKED = _NAMED.with_for_update()
# SQLite has one lock, for writers. An application that embeds effaced may begin transactions without it, and
# a row that is only read could change before the write.
_NAMED_AND_TOUCHED = (
    update(breakers)
    .where(breakers.c.service_name.in_(bindparam("names", expanding=True)))
    .values(version=breakers.c.version)
    .returning(*_COLUMNS)
)


class SqlBreakerStore(BreakerStore):
    """The default store: PostgreSQL or SQLite, shared by all processes."""

    def __init__(self, database: Database | sessionmaker[Session], session: Session | None = None) -> None:
        self._db = database if isinstance(database, Database) else own_sessions(database)
        self._session = session

    def within(self, session: Session) -> BreakerStore:
        return SqlBreakerStore(self._db, session)

    def now(self) -> datetime:
        if self._session is not None:
            return dbtime.now(self._session)
        with _store_errors():
            return dbtime.now_for(self._db.readers if isinstance(self._db, Database) else self._db)

    def load(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        if not names:
            return {}
        with self._reading() as session:
            return _found(session, _NAMED, names)

    def load_all(self) -> list[CircuitBreakerStateData]:
        with self._reading() as session:
            return list(_found(session, select(*_COLUMNS).order_by(breakers.c.service_name)).values())

    def change(self, names: Collection[str], fn: ChangeFunction[T]) -> T:
        with self._writing() as session:
            before = _locked(session, sorted(names))
            dbtime.now(session)  # cached from here on: `fn` asks for it, and needs no other connection
            change = fn(before)
            for row in changed_rows(before, change):
                _write(session, row)
            if change.deleted:
                gone = delete(breakers).where(breakers.c.service_name.in_(change.deleted))
                session.connection().execute(gone)
            transitions.write(session, change.transitions, change.records)
            return change.result

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        if self._session is not None:
            yield self._session
        else:
            reading = self._db.read if isinstance(self._db, Database) else self._db
            with _store_errors(), reading() as session:
                yield session

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        if self._session is not None:
            yield self._session
        else:
            with _store_errors(), self._db.begin() as session:
                yield session


@contextmanager
def _store_errors() -> Iterator[None]:
    """A lock timeout or a lost connection must not end a runner."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise StoreUnavailable(error) from error


def _found(
    session: Session, wanted: Executable, names: Collection[str] = ()
) -> dict[str, CircuitBreakerStateData]:
    rows = session.connection().execute(wanted, {"names": list(names)} if names else {})
    return {row.service_name: from_columns(row._asdict()) for row in rows}


def _locked(session: Session, names: list[str]) -> dict[str, CircuitBreakerStateData]:
    """The rows, locked until the transaction ends. Missing ones are inserted, to have one to lock."""
    locking = _NAMED_AND_LOCKED if is_postgres(session) else _NAMED_AND_TOUCHED
    found = _found(session, locking, names)
    missing = [name for name in names if name not in found]
    if missing:
        fresh = [as_columns(CircuitBreakerStateData(name)) for name in missing]
        if is_postgres(session):
            from sqlalchemy.dialects.postgresql import insert as insert_or_leave

            for row in fresh:
                session.connection().execute(insert_or_leave(breakers).values(row).on_conflict_do_nothing())
        else:
            session.connection().execute(insert(breakers), fresh)
        found |= _found(session, locking, missing)
    return with_new_rows(names, found)


def _write(session: Session, row: CircuitBreakerStateData) -> None:
    values = as_columns(row)
    named = breakers.c.service_name == values.pop("service_name")
    session.connection().execute(update(breakers).where(named).values(values))
