"""Totals of all attempts ever made, up to this moment; they only grow."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from effaced.retries.aggregate import EARLIER
from effaced.retries.count import HOUR, count
from effaced.retries.figures import Figures, from_columns
from effaced.retries.overrides import ALL
from effaced.retries.tables import attempt_hours, attempts


def read_totals(session: Session) -> dict[str, Figures]:
    """Figures by resolver: all hours that were ever counted, and the attempts made since the last count.

    `entries` and `requests` are not in it: they do not add up.
    """
    totals: dict[str, Figures] = {}
    last_ids: dict[datetime, int] = {}
    for row in session.execute(select(attempt_hours)):
        if row.resolver == ALL:
            last_ids[row.hour] = row.last_id
        else:
            totals.setdefault(row.resolver, Figures()).merge(from_columns(row._mapping))
    for name, figures in _since(session, last_ids).items():
        totals.setdefault(name, Figures()).merge(figures)
    return totals


def _since(session: Session, last_ids: dict[datetime, int]) -> dict[str, Figures]:
    """The attempts of the newest counted hour, of the one before it, and of all later ones, not counted yet.

    A result of an older hour that comes late is left to the next count: once told, a total never shrinks.
    """
    newest = max(last_ids, default=EARLIER)
    if newest == EARLIER:
        return {}
    at, number, before = attempts.c.at, attempts.c.id, newest - HOUR
    new = [and_(at >= newest, number > last_ids[newest])]
    if before in last_ids:
        new.append(and_(at >= before, at < newest, number > last_ids[before]))
    # The first condition follows from the others; it lets the primary key serve.
    least = min(last_ids[each] for each in (newest, before) if each in last_ids)
    return count(session, and_(number > least, or_(*new)))
