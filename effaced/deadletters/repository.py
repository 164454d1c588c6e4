"""FailedOperationRepository over the database: open, call what the product itself calls, commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from effaced.audit.append import SYSTEM
from effaced.audit.notes import NoteRef, read_notes, write_note
from effaced.core.arguments import checked
from effaced.core.crypto import Keyring
from effaced.core.db import Database
from effaced.core.db.transactions import own_sessions
from effaced.core.errors import Conflict
from effaced.deadletters import archive, purge, replay, summaries
from effaced.deadletters.arguments import (
    actor_id,
    as_uuid,
    code,
    days,
    dead_letter_domain,
    dead_letter_status,
    facts,
    linked_ids,
    minutes,
    moment,
    no_message,
    note_text,
    number,
    sla,
)
from effaced.deadletters.context import new_context
from effaced.deadletters.create import NewDeadLetter, create
from effaced.deadletters.data import DLQCompressedEntry, FailedOperationData
from effaced.deadletters.decide import Change, set_status, set_status_of_many
from effaced.deadletters.interface import FailedOperationRepository
from effaced.deadletters.read import (
    ALL,
    FIRST_TO_EXPIRE,
    NEWEST_FIRST,
    OLDEST_FIRST,
    DeadLetterFilter,
    count_by,
    count_exactly,
    dead_letters_by_id,
    find_dead_letters,
    is_expired,
    is_late,
    is_replayable,
)
from effaced.deadletters.rules import ACTIVE, MAX_RETRIES, REPLAYED, RESOLVED, SLA, Sla
from effaced.deadletters.statistics import cleanup_statistics, statistics
from effaced.deadletters.tables import DeadLetter


@checked
class SQLFailedOperationRepository(FailedOperationRepository):
    """The repository on PostgreSQL or SQLite."""

    def __init__(
        self,
        database: Database | sessionmaker[Session],
        keyring: Keyring,
        *,
        actor: str = SYSTEM,
        sla_thresholds: Sla = SLA,
    ) -> None:
        if not isinstance(database, Database):
            database = own_sessions(database)
        self._begin = database.begin
        self._read: Callable[[], AbstractContextManager[Session]] = (
            database.read if isinstance(database, Database) else database
        )
        self._keyring = keyring
        self._actor = actor
        self._sla = sla("sla_thresholds", sla_thresholds)

    def create(
        self,
        domain: str,
        failure_type: str,
        error_message: str = "",
        error_code: str = "",
        entity_type: str | None = None,
        entity_id: str | None = None,
        entity_refs: dict[str, Any] | None = None,
        user_id: int | str | None = None,
        snapshot_data: dict[str, Any] | None = None,
        request_data: dict[str, Any] | None = None,
        response_data: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        retry_count: int = 0,
        max_retries: int = MAX_RETRIES,
        next_action_hint: str = "",
        recommended_action: str = "",
        expires_at: datetime | None = None,
    ) -> FailedOperationData:
        no_message("error_message", error_message)
        about = dead_letter_domain(domain)
        new = NewDeadLetter(
            domain=about,
            failure_type=failure_type,
            error_code=error_code,
            linked=linked_ids(about, entity_type, entity_id, entity_refs),
            subject=None if user_id is None else self._keyring.subject_key(str(user_id)),
            context=new_context(snapshot_data, request_data, response_data),
            marks=facts("metadata", metadata),
            retry_count=retry_count,
            max_retries=max_retries,
            next_action_hint=next_action_hint,
            recommended_action=recommended_action,
            expires_at=expires_at,
        )
        try:
            with self._begin() as session:
                return self._by_id(session, create(session, new, actor=self._actor))
        except IntegrityError:  # under REPEATABLE READ, where the other one is not seen
            raise Conflict("There is already a dead letter for this work.") from None

    def get_by_id(self, id: str) -> FailedOperationData | None:
        with self._read() as session:
            found = self._data(session, dead_letters_by_id(session, _uuids([id])))
            return found[0] if found else None

    def update_status(
        self,
        id: str,
        status: str,
        resolution_type: str = "",
        resolution_note: str = "",
        resolved_by_id: int | str | None = None,
        recommended_action: str = "",
    ) -> bool:
        to, by = dead_letter_status(status), actor_id("resolved_by_id", resolved_by_id)
        note_text("resolution_note", resolution_note)
        wanted = Change(to, self._actor, resolution_type, by, recommended=recommended_action)
        with self._begin() as session:
            for found in dead_letters_by_id(session, _uuids([id])):
                note_ref = self._note(session, found.id, resolution_note)
                set_status(session, found.id, replace(wanted, note=note_ref))
                return True
        return False

    def increment_retry_count(self, id: str) -> bool:
        with self._begin() as session:
            return any(replay.count_retry(session, each) for each in _uuids([id]))

    def get_expired_operations(self, before_date: datetime, limit: int = 100) -> list[FailedOperationData]:
        before = DeadLetter.expires_at < moment("before_date", before_date)
        return self._find(ALL, before, order=FIRST_TO_EXPIRE, limit=limit)

    def bulk_update_status(self, ids: list[str], status: str) -> int:
        wanted = Change(dead_letter_status(status), self._actor)
        with self._begin() as session:
            return set_status_of_many(session, known, wanted) if (known := _uuids(ids)) else 0

    def find_by_status(
        self, status: str, domain: str | None = None, failure_type: str | None = None, limit: int = 100
    ) -> list[FailedOperationData]:
        return self._find(_filter(status, domain, failure_type), limit=limit)

    def find(
        self,
        *,
        status: str | None = None,
        domain: str | None = None,
        failure_type: str | None = None,
        offset: int = 0,
        limit: int = 100,
    ) -> list[FailedOperationData]:
        which = _filter(status, domain, failure_type)
        return self._find(which, order=NEWEST_FIRST, offset=number("offset", offset), limit=limit)

    def count(
        self, *, status: str | None = None, domain: str | None = None, failure_type: str | None = None
    ) -> int:
        return self._count(_filter(status, domain, failure_type))

    def count_created_in_window(self, start: datetime, end: datetime) -> int:
        window = DeadLetter.created_at.between(moment("start", start), moment("end", end))
        return self._count(ALL, window)

    def find_replayable(
        self,
        max_retries: int,
        domain: str | None = None,
        failure_type: str | None = None,
        limit: int = 100,
    ) -> list[FailedOperationData]:
        return self._find(_filter(None, domain, failure_type), is_replayable(), limit=limit)

    def find_sla_breached(
        self, current_time: datetime, sla_thresholds: dict[str, timedelta]
    ) -> list[FailedOperationData]:
        at, waits = moment("current_time", current_time), sla("sla_thresholds", sla_thresholds)
        return self._find(ALL, is_late(at, waits))

    def find_expired(self, current_time: datetime) -> list[FailedOperationData]:
        at = moment("current_time", current_time)
        return self._find(ALL, is_expired(at), order=FIRST_TO_EXPIRE)

    def get_statistics(self) -> dict[str, Any]:
        with self._read() as session:
            return statistics(session, self._sla)

    def get_facet_counts(
        self, *, status: str | None = None, domain: str | None = None
    ) -> dict[str, dict[str, int]]:
        with self._read() as session:
            return {
                "by_status": count_by(session, DeadLetter.status, _filter(domain=domain)),
                "by_domain": count_by(session, DeadLetter.domain, _filter(status)),
            }

    def try_acquire_for_replay(
        self, id: str, max_retries: int, force: bool = False
    ) -> FailedOperationData | None:
        with self._begin() as session:
            for acquired in replay.acquire_for_replay(session, _uuids([id]), force=force):
                return self._by_id(session, acquired)
        return None

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
        by = actor_id("resolved_by_id", resolved_by_id)
        note_text("note", note)
        details = facts("error_details", error_details)
        ended = Change(RESOLVED, self._actor, resolution_type or REPLAYED, by)
        dead_letter_id = as_uuid(id)
        with self._begin() as session:
            if dead_letter_id is None or not replay.lock_acquired(session, dead_letter_id, acquired):
                return False
            note_ref = self._note(session, dead_letter_id, note)
            done = replace(ended, note=note_ref) if success else None
            return replay.complete_replay(session, dead_letter_id, acquired, done, details=details)

    def release_stale_replaying(self, older_than_minutes: int = 30) -> int:
        older_than = timedelta(minutes=minutes(older_than_minutes))
        return self._repeat(
            lambda session: replay.release_stale(session, older_than=older_than), replay.MAX_RELEASED
        )

    def archive_old_resolved(self, older_than_days: int = 30) -> int:
        older_than = timedelta(days=days(older_than_days))
        return self._repeat(
            lambda session: archive.archive_settled(session, older_than=older_than, actor=self._actor),
            archive.MAX_ARCHIVED,
        )

    def purge_archived(self, ids: list[str] | None = None, older_than_days: int | None = None) -> int:
        chosen = None if ids is None else _uuids(ids)
        with self._begin() as session:
            return purge.purge(session, ids=chosen, older_than_days=older_than_days, actor=self._actor)

    def get_cleanup_stats(self) -> dict[str, Any]:
        with self._read() as session:
            return cleanup_statistics(session)

    def count_archived_older_than(self, older_than_days: int) -> int:
        with self._read() as session:
            return purge.count_purgeable(session, older_than_days=older_than_days)

    def count_all(self) -> int:
        return self._count(DeadLetterFilter(statuses=ACTIVE))

    def count_by_domain(self, domain: str) -> int:
        return self._count(DeadLetterFilter(statuses=ACTIVE, domain=dead_letter_domain(domain)))

    def get_oldest_ids(self, count: int, domain: str | None = None) -> list[str]:
        which, limit = _filter(domain=domain), number("count", count)
        with self._read() as session:
            return [str(each.id) for each in find_dead_letters(session, which, limit=limit)]

    def evict_oldest(self, count: int, domain: str | None = None) -> int:
        return self._evict(count, domain, compress=False)

    def compress_and_evict_oldest(self, count: int, domain: str | None = None) -> int:
        return self._evict(count, domain, compress=True)

    def store_compressed_entry(self, entry: DLQCompressedEntry) -> bool:
        with self._begin() as session:
            return summaries.store_summary(session, entry)

    def get_compressed_entries(
        self, domain: str | None = None, status: str | None = None, limit: int = 100
    ) -> list[DLQCompressedEntry]:
        with self._read() as session:
            return summaries.summaries(session, domain=domain, status=status, limit=limit)

    def get_compressed_summary(self) -> dict[str, Any]:
        with self._read() as session:
            return summaries.summary_totals(session)

    def update_compressed_status(self, entry_id: str, new_status: str) -> bool:
        to = summaries.summary_status(new_status)
        with self._begin() as session:
            return any(summaries.set_summary_status(session, each, to) for each in _uuids([entry_id]))

    def _find(
        self,
        which: DeadLetterFilter,
        *conditions: ColumnElement[bool],
        order: Sequence[Any] = OLDEST_FIRST,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[FailedOperationData]:
        limit = None if limit is None else number("limit", limit)
        with self._read() as session:
            found = find_dead_letters(session, which, *conditions, order=order, offset=offset, limit=limit)
            return self._data(session, found)

    def _count(self, which: DeadLetterFilter, *conditions: ColumnElement[bool]) -> int:
        with self._read() as session:
            return count_exactly(session, which, *conditions)

    def _by_id(self, session: Session, dead_letter_id: UUID) -> FailedOperationData:
        return self._data(session, dead_letters_by_id(session, [dead_letter_id]))[0]

    def _data(self, session: Session, found: Sequence[Any]) -> list[FailedOperationData]:
        note_ids = [each.resolution_note_id for each in found if each.resolution_note_id]
        texts = read_notes(session, self._keyring, note_ids) if note_ids else {}
        return [FailedOperationData.from_line(each, texts.get(each.resolution_note_id, "")) for each in found]

    def _note(self, session: Session, dead_letter_id: UUID, text: str) -> NoteRef | None:
        if not text:
            return None
        request_id = session.scalar(select(DeadLetter.request_id).where(DeadLetter.id == dead_letter_id))
        return write_note(
            session,
            self._keyring,
            text,
            author=self._actor,
            request_id=request_id,
            dead_letter_id=dead_letter_id,
        )

    def _evict(self, count: int, domain: str | None, *, compress: bool) -> int:
        chosen = None if domain is None else dead_letter_domain(domain)
        with self._begin() as session:
            return purge.evict(session, count, chosen, compress=compress, actor=self._actor)

    def _repeat(self, step: Callable[[Session], int], most: int) -> int:
        """Steps of at most that many, each in a transaction of its own, until one has done less."""
        total, done = 0, most
        while done >= most:
            with self._begin() as session:
                done = step(session)
            total += done
        return total


def _filter(
    status: str | None = None, domain: str | None = None, failure_type: str | None = None
) -> DeadLetterFilter:
    """Nothing named means everything."""
    return DeadLetterFilter(
        statuses=() if status is None else (dead_letter_status(status),),
        domain=None if domain is None else dead_letter_domain(domain),
        error=None if failure_type is None else code("failure_type", failure_type, 255),
    )


def _uuids(ids: Sequence[str]) -> list[UUID]:
    return [known for each in ids if (known := as_uuid(each)) is not None]
