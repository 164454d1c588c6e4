"""Shadow records in the database, where they outlive a forked job."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from effaced.breakers.shadow import L2SyncFailureRecord
from effaced.breakers.tables import shadow
from effaced.core import clock
from effaced.core.db import Database


class SQLShadowKeeper:
    """Each verb is a transaction of its own, or part of the caller's: a second one might wait for that."""

    def __init__(self, database: Database, session: Session | None = None) -> None:
        self._db = database
        self._session = session

    def within(self, session: Session) -> SQLShadowKeeper:
        return SQLShadowKeeper(self._db, session)

    def add(self, record: L2SyncFailureRecord) -> None:
        row = {
            "service_name": record.service_name,
            "intended_state": record.intended_state,
            "l1_state": record.l1_state_at_failure,
            "failed_at": record.failure_time,
            "error": record.error_message,
            "adapter": record.adapter_type,
            "operation": record.operation,
        }
        with self._writing() as session:
            session.execute(insert(shadow).values(row))

    def unsynced(self) -> list[L2SyncFailureRecord]:
        rows = select(shadow).where(shadow.c.synced_at.is_(None)).order_by(shadow.c.id)
        with self._reading() as session:
            return [
                L2SyncFailureRecord(
                    service_name=row.service_name,
                    intended_state=row.intended_state,
                    failure_time=row.failed_at,
                    error_message=row.error,
                    l1_state_at_failure=row.l1_state,
                    adapter_type=row.adapter,
                    operation=row.operation,
                )
                for row in session.execute(rows)
            ]

    def mark(self, service_name: str, up_to: datetime) -> int:
        confirmed = update(shadow).where(
            shadow.c.service_name == service_name, shadow.c.synced_at.is_(None), shadow.c.failed_at <= up_to
        )
        with self._writing() as session:
            return session.connection().execute(confirmed.values(synced_at=clock.now())).rowcount

    def _writing(self) -> AbstractContextManager[Session]:
        return self._db.begin() if self._session is None else nullcontext(self._session)

    def _reading(self) -> AbstractContextManager[Session]:
        return self._db.read() if self._session is None else nullcontext(self._session)


def forget_synced(session: Session, older_than: timedelta) -> int:
    """Remove what was made up for long ago; how many."""
    old = delete(shadow).where(shadow.c.synced_at < clock.now() - older_than)
    return session.connection().execute(old).rowcount
