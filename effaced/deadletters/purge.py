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
from effaced.audit.notes import NoteRef, noted
from effaced.audit.tables import Note
from effaced.core import clock
from effaced.core.log import get_logger
from effaced.core.sql import among
from effaced.deadletters.change import about
from effaced.deadletters.linked_work import work_not_done
from effaced.deadletters.rules import ACTIVE, ARCHIVED, confirmed, evict_choice, not_removable, purge_choice
from effaced.deadletters.summaries import Group, sum_up
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain

_log = get_logger(__name__)
_LOT = 1_000


def removable() -> ColumnElement[bool]:
    """Archived, and over work that was done: nothing else is ever removed."""
    return (DeadLetter.status == ARCHIVED) & ~work_not_done()


def purgeable(older_than_days: int) -> ColumnElement[bool]:
    """Archived at least that many days ago: what a purge removes, and what its preview counts."""
    since = clock.now() - timedelta(days=older_than_days)
    return removable() & (DeadLetter.archived_at <= since)


def count_purgeable(
    session: Session, *, ids: Sequence[UUID] | None = None, older_than_days: int | None = None
) -> int:
    """How many a purge of the same choice would remove. Refuses what the purge would refuse."""
    which = _chosen(session, ids, older_than_days)
    query = select(func.count()).select_from(DeadLetter)
    return session.scalar(query.where(which, removable())) or 0


def purge(
    session: Session,
    *,
    ids: Sequence[UUID] | None = None,
    older_than_days: int | None = None,
    expected: int | None = None,
    actor: str = SYSTEM,
    note: NoteRef | None = None,
) -> int:
    """Remove the chosen letters; how many. Nothing is chosen by saying nothing.

    Refuses, before anything is removed, if one of `ids` may not be. With `expected` it also refuses to
    remove another number than was confirmed; the caller rolls back then.
    """
    which = _chosen(session, ids, older_than_days)
    if expected is not None:
        confirmed(expected, count_purgeable(session, ids=ids, older_than_days=older_than_days))
    total = 0
    while lot := _lock(session, which, _LOT):
        total += _remove(session, lot, actor)
    if expected is not None:  # somebody else may have put one away since, or hold one
        confirmed(expected, total)
    if total:
        append_one(session, DeadLettersPurged(count=total, **noted(note)), actor=actor)
    return total


def _chosen(session: Session, ids: Sequence[UUID] | None, older_than_days: int | None) -> ColumnElement[bool]:
    purge_choice(ids, older_than_days)
    if older_than_days is not None:
        return purgeable(older_than_days)
    if ids is None:
        return false()
    which = among(session, DeadLetter.id, ids)
    others = session.scalar(select(func.count()).where(which, ~removable()))
    if others:
        raise not_removable(others)
    return which


def evict(
    session: Session,
    count: int,
    domain: DeadLetterDomain | None = None,
    *,
    compress: bool = False,
    actor: str = SYSTEM,
) -> int:
    """Remove up to `count` of the oldest archived letters; with `compress` a summary of each kind stays.

    Dead letters that are not archived are never evicted, however full it is: then the alarm rings.
    """
    evict_choice(count)
    which = removable()
    if domain is not None:
        which &= DeadLetter.domain == domain
    lot = _lock(session, which, count)
    if compress:
        sum_up(session, _groups(lot))
    removed = _remove(session, lot, actor)
    if removed:
        append_one(session, DeadLettersPurged(count=removed), actor=actor)
    if removed < count:
        kept = session.scalar(select(func.count()).where(DeadLetter.status.in_(ACTIVE))) or 0
        _log.error("dead_letters_not_evicted", asked=count, evicted=removed, unresolved=kept)
    return removed


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
        .where(which, removable())
        .order_by(DeadLetter.created_at, DeadLetter.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()


def _remove(session: Session, letters: Sequence[Row[*tuple[Any, ...]]], actor: str) -> int:
    if not letters:
        return 0
    ids = [letter.id for letter in letters]
    append(
        session,
        [
            Record(
                DeadLetterPurged(dead_letter_id=letter.id, domain=letter.domain, error=letter.failure_type),
                actor=actor,
                **about(letter),
            )
            for letter in letters
        ],
    )
    # What people wrote about a letter goes with it; the trail keeps that something was written.
    session.execute(update(Note).where(among(session, Note.dead_letter_id, ids)).values(text_sealed=None))
    gone = session.execute(
        delete(DeadLetter)
        .where(among(session, DeadLetter.id, ids), DeadLetter.status == ARCHIVED)
        .returning(DeadLetter.id)
    )
    return len(gone.all())


def _groups(letters: Sequence[Row[*tuple[Any, ...]]]) -> list[Group]:
    kinds: dict[tuple[DeadLetterDomain, str, str], list[Row[*tuple[Any, ...]]]] = defaultdict(list)
    for letter in letters:
        kinds[letter.domain, letter.failure_type, letter.error_code].append(letter)
    return [
        Group(*kind, len(found), found[0].created_at, found[-1].created_at) for kind, found in kinds.items()
    ]
