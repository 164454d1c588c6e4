"""The repository over the database: open, call the function that the product itself calls, commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.append import SYSTEM
from effaced.audit.notes import NoteRef, read_notes, write_note
from effaced.core.crypto import Keyring
from effaced.core.db import Database
from effaced.core.errors import Conflict
from effaced.deadletters import acquire, change, find, purge, sla, summaries, tidy
from effaced.deadletters.change import Change
from effaced.deadletters.context import as_uuid, person
from effaced.deadletters.data import DLQCompressedEntry, FailedOperationData
from effaced.deadletters.interface import FailedOperationRepository
from effaced.deadletters.letter import Values, as_data
from effaced.deadletters.rules import (
    ACTIVE,
    PENDING,
    REPLAYED,
    RESOLVED,
    SETTLED,
    TWICE,
    domain_of,
    status_of,
)
from effaced.deadletters.tables import DeadLetter


class SQLFailedOperationRepository(FailedOperationRepository):
    """On PostgreSQL and SQLite."""

    def __init__(
        self,
        database: Database | sessionmaker[Session],
        keyring: Keyring,
        *,
        actor: str = SYSTEM,
        sla_thresholds: Mapping[str, timedelta] = sla.THRESHOLDS,
    ) -> None:
        super().__init__(keyring)
        self._db = database
        self._actor = actor
        self._sla = sla_thresholds

    def _keep(self, values: Values) -> None:
        try:
            with self._db.begin() as session:
                session.execute(insert(DeadLetter), [values])
        except IntegrityError:
            raise Conflict(TWICE) from None

    def get_by_id(self, id: str) -> FailedOperationData | None:
        letter_id = as_uuid(id)
        if letter_id is None:
            return None
        with self._read() as session:
            found = find.by_id(session, letter_id)
            return self._out(session, [found])[0] if found else None

    def get_pending_by_domain(self, domain: str, limit: int = 100) -> list[FailedOperationData]:
        return self.find_by_status(PENDING, domain, limit=limit)

    def get_pending_count_by_domain(self, domain: str) -> int:
        return self.count(status=PENDING, domain=domain)

    def update_status(
        self,
        id: str,
        status: str,
        resolution_type: str = "",
        resolution_note: str = "",
        resolved_by_id: int | str | None = None,
        recommended_action: str = "",
    ) -> bool:
        to, letter_id = status_of(status), as_uuid(id)
        if letter_id is None:
            return False
        which = DeadLetter.id == letter_id
        with self._db.begin() as session:
            if not find.count(session, which):
                return False
            if to in SETTLED:
                change.refuse_undone(session, which)
            wanted = Change(
                to,
                self._actor,
                resolution=resolution_type,
                by=person(resolved_by_id),
                note=self._note(session, letter_id, resolution_note),
                recommended=recommended_action,
            )
            return change.change(session, which, wanted) == 1

    def increment_retry_count(self, id: str) -> bool:
        letter_id = as_uuid(id)
        if letter_id is None:
            return False
        with self._db.begin() as session:
            return change.count_retry(session, letter_id)

    def mark_as_resolved(
        self,
        id: str,
        resolution_type: str,
        resolution_note: str = "",
        resolved_by_id: int | str | None = None,
    ) -> bool:
        return self.update_status(id, RESOLVED, resolution_type, resolution_note, resolved_by_id)

    def get_expired_operations(self, before_date: datetime, limit: int = 100) -> list[FailedOperationData]:
        with self._read() as session:
            before = DeadLetter.expires_at < before_date
            return self._out(session, find.expired(session, before, limit=limit))

    def bulk_update_status(self, ids: list[str], status: str) -> int:
        to, known = status_of(status), _uuids(ids)
        with self._db.begin() as session:
            return change.change_some(session, known, Change(to, self._actor)) if known else 0

    def find_by_status(
        self, status: str, domain: str | None = None, failure_type: str | None = None, limit: int = 100
    ) -> list[FailedOperationData]:
        with self._read() as session:
            which = find.matching(status, domain, failure_type)
            return self._out(session, find.oldest(session, *which, limit=limit))

    def find(
        self,
        *,
        status: str | None = None,
        domain: str | None = None,
        failure_type: str | None = None,
        offset: int = 0,
        limit: int = 100,
    ) -> list[FailedOperationData]:
        with self._read() as session:
            which = find.matching(status, domain, failure_type)
            return self._out(session, find.newest(session, *which, offset=offset, limit=limit))

    def count(
        self, *, status: str | None = None, domain: str | None = None, failure_type: str | None = None
    ) -> int:
        with self._read() as session:
            return find.count(session, *find.matching(status, domain, failure_type))

    def count_created_in_window(self, start: datetime, end: datetime) -> int:
        with self._read() as session:
            return find.count(session, DeadLetter.created_at.between(start, end))

    def find_replayable(
        self,
        max_retries: int,
        domain: str | None = None,
        failure_type: str | None = None,
        limit: int = 100,
    ) -> list[FailedOperationData]:
        with self._read() as session:
            which = find.matching(None, domain, failure_type)
            return self._out(session, find.oldest(session, find.replayable(), *which, limit=limit))

    def find_sla_breached(
        self, current_time: datetime, sla_thresholds: dict[str, timedelta]
    ) -> list[FailedOperationData]:
        with self._read() as session:
            return self._out(session, find.breached(session, current_time, sla_thresholds))

    def find_expired(self, current_time: datetime) -> list[FailedOperationData]:
        with self._read() as session:
            return self._out(session, find.expired(session, DeadLetter.expires_at <= current_time))

    def get_statistics(self) -> dict[str, Any]:
        with self._read() as session:
            return find.statistics(session, self._sla)

    def get_facet_counts(
        self, *, status: str | None = None, domain: str | None = None
    ) -> dict[str, dict[str, int]]:
        with self._read() as session:
            return {
                "by_status": find.counts_by(session, DeadLetter.status, *find.matching(domain=domain)),
                "by_domain": find.counts_by(session, DeadLetter.domain, *find.matching(status=status)),
            }

    def try_acquire_for_replay(
        self, id: str, max_retries: int, force: bool = False
    ) -> FailedOperationData | None:
        letter_id = as_uuid(id)
        if letter_id is None:
            return None
        with self._db.begin() as session:
            if not acquire.acquire_for_replay(session, [letter_id], force=force):
                return None
            return self._out(session, find.oldest(session, DeadLetter.id == letter_id))[0]

    def complete_replay(
        self,
        id: str,
        success: bool,
        resolution_type: str = "",
        note: str = "",
        resolved_by_id: int | str | None = None,
        error_details: dict[str, Any] | None = None,
        *,
        acquired: int,
    ) -> bool:
        letter_id = as_uuid(id)
        if letter_id is None:
            return False
        with self._db.begin() as session:
            if not acquire.is_ours(session, letter_id, acquired):
                return False
            ended = Change(
                RESOLVED,
                self._actor,
                resolution=resolution_type or REPLAYED,
                by=person(resolved_by_id),
                note=self._note(session, letter_id, note),
            )
            return acquire.complete_replay(
                session, letter_id, acquired, ended if success else None, details=error_details
            )

    def release_stale_replaying(self, older_than_minutes: int = 30) -> int:
        older_than, total = timedelta(minutes=older_than_minutes), 0
        while True:
            with self._db.begin() as session:
                released = tidy.release_stale(session, older_than=older_than)
            total += released
            if released < tidy.MOST:
                return total

    def archive_old_resolved(self, older_than_days: int = 30) -> int:
        older_than, total = timedelta(days=older_than_days), 0
        while True:
            with self._db.begin() as session:
                archived = tidy.archive_settled(session, older_than=older_than, actor=self._actor)
            total += archived
            if archived < tidy.MOST:
                return total

    def purge_archived(self, ids: list[str] | None = None, older_than_days: int | None = None) -> int:
        chosen = None if ids is None else _uuids(ids)
        with self._db.begin() as session:
            return purge.purge(session, ids=chosen, older_than_days=older_than_days, actor=self._actor)

    def get_cleanup_stats(self) -> dict[str, Any]:
        with self._read() as session:
            return find.cleanup_statistics(session)

    def count_archived_older_than(self, older_than_days: int) -> int:
        with self._read() as session:
            return purge.count_purgeable(session, older_than_days=older_than_days)

    def count_all(self) -> int:
        with self._read() as session:
            return find.count(session, DeadLetter.status.in_(ACTIVE))

    def count_by_domain(self, domain: str) -> int:
        with self._read() as session:
            return find.count(session, DeadLetter.status.in_(ACTIVE), *find.matching(domain=domain))

    def get_oldest_ids(self, count: int, domain: str | None = None) -> list[str]:
        with self._read() as session:
            return [str(each) for each in find.oldest_ids(session, count, *find.matching(domain=domain))]

    def delete(self, entry_id: str) -> bool:
        return self.purge_archived(ids=[entry_id]) == 1

    def evict_oldest(self, count: int, domain: str | None = None) -> int:
        return self._evict(count, domain, compress=False)

    def compress_and_evict_oldest(self, count: int, domain: str | None = None) -> int:
        return self._evict(count, domain, compress=True)

    def _evict(self, count: int, domain: str | None, *, compress: bool) -> int:
        chosen = None if domain is None else domain_of(domain)
        with self._db.begin() as session:
            return purge.evict(session, count, chosen, compress=compress, actor=self._actor)

    def store_compressed_entry(self, entry: DLQCompressedEntry) -> bool:
        with self._db.begin() as session:
            return summaries.store(session, entry)

    def get_compressed_entries(
        self, domain: str | None = None, status: str | None = None, limit: int = 100
    ) -> list[DLQCompressedEntry]:
        with self._read() as session:
            return summaries.summaries(session, domain=domain, status=status, limit=limit)

    def get_compressed_summary(self) -> dict[str, Any]:
        with self._read() as session:
            return summaries.totals(session)

    def update_compressed_status(self, entry_id: str, new_status: str) -> bool:
        summaries.compressed_status(new_status)
        summary_id = as_uuid(entry_id)
        if summary_id is None:
            return False
        with self._db.begin() as session:
            return summaries.move(session, summary_id, new_status)

    def _read(self) -> AbstractContextManager[Session]:
        return self._db.read() if isinstance(self._db, Database) else self._db()

    def _note(self, session: Session, letter_id: UUID, text: str) -> NoteRef | None:
        if not text:
            return None
        return write_note(
            session, self._keyring, text, author=self._actor, dead_letter_id=letter_id, field="note"
        )

    def _out(self, session: Session, rows: Sequence[Row[*tuple[Any, ...]]]) -> list[FailedOperationData]:
        noted = [row.resolution_note_id for row in rows if row.resolution_note_id]
        texts = read_notes(session, self._keyring, noted) if noted else {}
        return [as_data(row._mapping, texts.get(row.resolution_note_id, "")) for row in rows]


def _uuids(ids: Sequence[str]) -> list[UUID]:
    return [known for each in ids if (known := as_uuid(each)) is not None]
