"""Removing archived dead letters for good, and summing up what they were. Only archived ones, ever."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, delete, false, func, select, update
from sqlalchemy.orm import Session

from effaced.audit.append import SYSTEM, Record, append, append_one
from effaced.audit.events import DeadLetterPurged, DeadLettersPurged
from effaced.audit.notes import NoteRef, note_fields
from effaced.audit.tables import Note
from effaced.core import clock
from effaced.core.db.sql import key_in
from effaced.core.errors import Conflict, Problem
from effaced.core.log import get_logger
from effaced.deadletters.arguments import InvalidArgument, days, number
from effaced.deadletters.decide import event_links
from effaced.deadletters.linked_work import work_not_done
from effaced.deadletters.read import ALL, OLDEST_FIRST, count_exactly
from effaced.deadletters.rules import ACTIVE, ARCHIVED
from effaced.deadletters.summaries import Group, add_to_summaries
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain

_log = get_logger(__name__)
_BATCH = 1_000


def count_purgeable(
    session: Session, *, ids: Sequence[UUID] | None = None, older_than_days: int | None = None
) -> int:
    """How many a purge of the same choice would remove. Refuses what the purge would refuse."""
    return count_exactly(session, ALL, _chosen(session, ids, older_than_days), _removable())


def purge(
    session: Session,
    *,
    ids: Sequence[UUID] | None = None,
    older_than_days: int | None = None,
    expected: int | None = None,
    actor: str = SYSTEM,
    note: NoteRef | None = None,
) -> int:
    """Remove the chosen dead letters. Returns how many. Without a choice none.

    Refuses, before anything is removed, if one of `ids` can't be. With `expected` it also refuses to remove
    another number than was confirmed; the caller rolls back then.
    """
    which = _chosen(session, ids, older_than_days)
    if expected is not None:
        _check_expected(expected, count_purgeable(session, ids=ids, older_than_days=older_than_days))
    total = 0
    while batch := _lock(session, which, _BATCH):
        total += _remove(session, batch, actor)
    if expected is not None:  # another process may have archived one since, or hold one
        _check_expected(expected, total)
    if total:
        append_one(session, DeadLettersPurged(count=total, **note_fields(note)), actor=actor)
    return total


def count_evictable(session: Session, count: int, domain: DeadLetterDomain | None = None) -> int:
    """How many `evict` would remove."""
    return min(number("count", count), count_exactly(session, ALL, _evictable(domain)))


def evict(
    session: Session,
    count: int,
    domain: DeadLetterDomain | None = None,
    *,
    compress: bool = False,
    actor: str = SYSTEM,
    note: NoteRef | None = None,
) -> int:
    """Remove up to `count` of the oldest archived dead letters; with `compress` a summary of each kind is
    kept.

    Those that are not archived are never evicted: if too few are, that is logged as an error instead.
    """
    batch = _lock(session, _evictable(domain), number("count", count))
    if compress:
        add_to_summaries(session, _groups(batch))
    removed = _remove(session, batch, actor)
    if removed:
        append_one(session, DeadLettersPurged(count=removed, **note_fields(note)), actor=actor)
    if removed < count:
        active = count_exactly(session, ALL, DeadLetter.status.in_(ACTIVE))
        _log.error("dead_letters_not_evicted", asked=count, evicted=removed, unresolved=active)
    return removed


def _removable() -> ColumnElement[bool]:
    """Archived, and over work that was done: nothing else is ever removed."""
    return (DeadLetter.status == ARCHIVED) & ~work_not_done()


def _chosen(session: Session, ids: Sequence[UUID] | None, older_than_days: int | None) -> ColumnElement[bool]:
    if older_than_days is not None:
        if ids is not None:
            raise InvalidArgument("ids", "can't be combined with older_than_days: choose one, not both")
        since = clock.now() - timedelta(days=days(older_than_days))
        return _removable() & (DeadLetter.archived_at <= since)
    if ids is None:
        return false()
    which = key_in(session, DeadLetter.id, ids)
    if others := session.scalar(select(func.count()).where(which, ~_removable())):
        raise InvalidArgument(
            "ids",
            f"include {others} that {'is' if others == 1 else 'are'} not archived, or whose work is not done;"
            " nothing was removed",
        )
    return which


def _evictable(domain: DeadLetterDomain | None) -> ColumnElement[bool]:
    return _removable() if domain is None else _removable() & (DeadLetter.domain == domain)


def _check_expected(expected: int, present: int) -> None:
    if present != expected:
        rule = f"is {expected}, but a purge would now remove {present}"
        raise Conflict(
            "The preview is out of date; look at it again.",
            problems=[Problem("expected", rule, code="preview_outdated")],
        )


def _lock(session: Session, which: ColumnElement[bool], limit: int) -> Sequence[Row[*tuple[Any, ...]]]:
    return session.execute(
        select(
            DeadLetter.id,
            DeadLetter.domain,
            DeadLetter.failure_type,
            DeadLetter.error_code,
            DeadLetter.entry_id,
            DeadLetter.request_id,
            DeadLetter.subject_key_id,
            DeadLetter.subject_hmac,
            DeadLetter.created_at,
        )
        .where(which, _removable())
        .order_by(*OLDEST_FIRST)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()


def _remove(session: Session, batch: Sequence[Row[*tuple[Any, ...]]], actor: str) -> int:
    if not batch:
        return 0
    ids = [each.id for each in batch]
    append(
        session,
        [
            Record(
                DeadLetterPurged(dead_letter_id=each.id, domain=each.domain, error=each.failure_type),
                actor=actor,
                **event_links(each),
            )
            for each in batch
        ],
    )
    # The notes about a dead letter go with it; the audit trail keeps that there were some.
    session.execute(update(Note).where(key_in(session, Note.dead_letter_id, ids)).values(text_sealed=None))
    removed = session.execute(
        delete(DeadLetter)
        .where(key_in(session, DeadLetter.id, ids), DeadLetter.status == ARCHIVED)
        .returning(DeadLetter.id)
    )
    return len(removed.all())


def _groups(batch: Sequence[Row[*tuple[Any, ...]]]) -> list[Group]:
    kinds: dict[tuple[DeadLetterDomain, str, str], list[Row[*tuple[Any, ...]]]] = defaultdict(list)
    for each in batch:
        kinds[each.domain, each.failure_type, each.error_code].append(each)
    return [
        Group(*kind, len(found), found[0].created_at, found[-1].created_at) for kind, found in kinds.items()
    ]
