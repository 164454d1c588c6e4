"""Requeuing abandoned entries: a full set of attempts again, because a person asked for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from effaced.audit.append import Record, append
from effaced.audit.events import Requeued
from effaced.audit.notes import NoteRef, note_fields
from effaced.core.db import dbtime
from effaced.core.db.sql import update_rows
from effaced.core.errors import ConfigurationError
from effaced.doorbell import ring_after_commit
from effaced.model import OutboxOperation, OutboxStatus
from effaced.outbox.entry import COLUMNS, Entry, as_entry
from effaced.outbox.tables import OutboxRow


def requeue(
    session: Session,
    entry_ids: Iterable[UUID],
    *,
    actor: str,
    note: NoteRef | None = None,
    gates: Mapping[UUID, datetime] | None = None,
) -> list[Entry]:
    """Put those of the entries that are abandoned back into the queue, with an event for each.

    Others are skipped, so asking twice does no harm. Refuses, before anything changes, if one of them is a
    rectification: its corrections are gone, so trying again would do nothing and report success. `gates` are
    moments before which some may not be called, so that a vendor that has just recovered is not flooded.
    """
    abandoned = [
        as_entry(row)
        for row in session.execute(
            select(*COLUMNS)
            .where(OutboxRow.entry_id.in_(list(entry_ids)), OutboxRow.status == OutboxStatus.ABANDONED)
            .order_by(OutboxRow.entry_id)
            .with_for_update()
        )
    ]
    for entry in abandoned:
        if entry.operation is OutboxOperation.RECTIFY:
            raise ConfigurationError(
                f"Entry {entry.entry_id} is a rectification whose corrections are gone: send it again."
            )
    append(
        session,
        [
            Record(
                Requeued(
                    resolver=entry.resolver,
                    prior_attempts=entry.attempts,
                    prior_error=entry.last_error,
                    **note_fields(note),
                ),
                actor=actor,
                request_id=entry.request_id,
                entry_id=entry.entry_id,
                subject=entry.subject,
            )
            for entry in abandoned
        ],
    )
    now = dbtime.now(session)
    flipped = session.execute(
        update(OutboxRow)
        .where(OutboxRow.entry_id.in_([entry.entry_id for entry in abandoned]))
        .values(
            status=OutboxStatus.PENDING,
            attempts=0,
            crashes=0,
            claimed_alone=False,
            gate=None,
            waiting_since=None,
            last_error=None,
            ended_at=None,
            aging_since=now,
            idle_since=None,
            times_parked=0,
        )
        .returning(*COLUMNS)
    )
    entries = [as_entry(row) for row in flipped]
    later = [each.entry_id for each in entries if each.entry_id in (gates or {})]
    if gates and later:
        update_rows(
            session,
            OutboxRow,
            [
                {"entry_id": each, "gate": gates[each], "waiting_since": now, "aging_since": gates[each]}
                for each in later
            ],
        )
    ring_after_commit(session, {entry.resolver for entry in entries})
    return entries
