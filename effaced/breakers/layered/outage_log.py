"""Shadow records and drift history in the database: they outlive a process, and all processes see them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, insert, select, update
from sqlalchemy.orm import Session

from effaced.breakers.layered.drift import DriftReconciliationRecord, DriftReconciliationResult
from effaced.breakers.tables import drift, shadow
from effaced.core import clock
from effaced.core.db import Database
from effaced.core.log import get_logger

_log = get_logger(__name__)
MOST_RECORDS = 1_000


@dataclass(frozen=True, slots=True)
class L2SyncFailureRecord:
    """One change that the shared store did not take. `error_message` is the error's class name."""

    service_name: str
    intended_state: str
    failure_time: datetime
    error_message: str
    l1_state_at_failure: str
    adapter_type: str = "unknown"
    operation: str = "sync"
    synced_after_recovery: bool = False
    recovery_time: datetime | None = None


class OutageLog:
    """Each method is a transaction of its own, or part of the caller's: a second one might wait for it."""

    def __init__(self, database: Database, session: Session | None = None) -> None:
        self._db = database
        self._session = session

    def within(self, session: Session) -> OutageLog:
        return OutageLog(self._db, session)

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
        self._write(insert(shadow).values(row))

    def records(self) -> list[L2SyncFailureRecord]:
        with self._reading() as session:
            return sync_failures(session)

    def unsynced_services(self) -> set[str]:
        found = select(shadow.c.service_name).where(shadow.c.synced_at.is_(None)).distinct()
        with self._reading() as session:
            return set(session.scalars(found))

    def mark_as_synced(self, service_name: str, up_to: datetime) -> int:
        """Mark what failed up to that moment. Returns how many records."""
        confirmed = update(shadow).where(
            shadow.c.service_name == service_name, shadow.c.synced_at.is_(None), shadow.c.failed_at <= up_to
        )
        return self._write(confirmed.values(synced_at=clock.now()))

    def add_drift(self, record: DriftReconciliationRecord) -> None:
        """Errors are logged: the reconciliation has happened."""
        try:
            self._write(insert(drift).values(asdict(record) | {"result": record.result.value}))
        except Exception as error:
            _log.error("drift_record_not_kept", breaker=record.service_name, error=type(error).__name__)

    def _write(self, statement: Any) -> int:
        writing = self._db.begin() if self._session is None else nullcontext(self._session)
        with writing as session:
            return session.connection().execute(statement).rowcount

    def _reading(self) -> AbstractContextManager[Session]:
        return self._db.read() if self._session is None else nullcontext(self._session)


def sync_failures(
    session: Session,
    *,
    since: datetime | None = None,
    names: Collection[str] | None = None,
    limit: int = MOST_RECORDS,
) -> list[L2SyncFailureRecord]:
    """The latest records of all processes, oldest first."""
    found = select(shadow).order_by(shadow.c.id.desc()).limit(limit)
    rows = session.execute(_restricted(found, shadow.c.failed_at, since, shadow.c.service_name, names)).all()
    return [
        L2SyncFailureRecord(
            service_name=row.service_name,
            intended_state=row.intended_state,
            failure_time=row.failed_at,
            error_message=row.error,
            l1_state_at_failure=row.l1_state,
            adapter_type=row.adapter,
            operation=row.operation,
            synced_after_recovery=row.synced_at is not None,
            recovery_time=row.synced_at,
        )
        for row in reversed(rows)
    ]


def drift_history(
    session: Session,
    *,
    since: datetime | None = None,
    names: Collection[str] | None = None,
    limit: int = MOST_RECORDS,
) -> list[DriftReconciliationRecord]:
    """The latest reconciliations of all processes, oldest first."""
    columns = [drift.c[name] for name in DriftReconciliationRecord.__dataclass_fields__]
    found: Select[Any] = select(*columns).order_by(drift.c.id.desc()).limit(limit)
    rows = session.execute(
        _restricted(found, drift.c.reconciled_at, since, drift.c.service_name, names)
    ).all()
    return [
        DriftReconciliationRecord(**(row._asdict() | {"result": DriftReconciliationResult(row.result)}))
        for row in reversed(rows)
    ]


def _restricted(
    query: Select[Any],
    moment: ColumnElement[Any],
    since: datetime | None,
    name: ColumnElement[Any],
    names: Collection[str] | None,
) -> Select[Any]:
    query = query if since is None else query.where(moment >= since)
    return query if names is None else query.where(name.in_(names))


def delete_old(session: Session, older_than: timedelta) -> int:
    """Delete records of changes that were synced long ago, and old drift history. Returns how many."""
    before = clock.now() - older_than
    old: Iterable[Any] = (
        delete(shadow).where(shadow.c.synced_at < before),
        delete(drift).where(drift.c.reconciled_at < before),
    )
    return sum(session.connection().execute(each).rowcount for each in old)
