"""Figures about all dead letters: how many, where, since when, and what there is to clean up."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func
from sqlalchemy.orm import Session

from effaced.deadletters.archive import ARCHIVED_AFTER, count_archivable
from effaced.deadletters.purge import count_purgeable
from effaced.deadletters.read import ALL, DeadLetterFilter, count_by, matching
from effaced.deadletters.rules import ACTIVE, Sla
from effaced.deadletters.tables import DeadLetter

_PURGE_AFTER_DAYS = 90


def statistics(session: Session, sla: Sla) -> dict[str, Any]:
    """Totals of all dead letters; domains, error classes and age of those that are not settled."""
    by_status = count_by(session, DeadLetter.status, ALL)
    active = DeadLetterFilter(statuses=ACTIVE)
    oldest = func.min(DeadLetter.created_at, type_=DeadLetter.created_at.type)
    return {
        "total": sum(by_status.values()),
        "active": sum(by_status.get(each, 0) for each in ACTIVE),
        "by_status": by_status,
        "by_domain": count_by(session, DeadLetter.domain, active),
        "by_failure_type": count_by(session, DeadLetter.failure_type, active),
        "sla_breached": count_by(session, DeadLetter.domain, DeadLetterFilter(late=True, sla=sla)),
        "oldest_active_at": session.scalar(matching(active, oldest)),
    }


def cleanup_statistics(session: Session) -> dict[str, Any]:
    """What could be archived and purged."""
    by_status = count_by(session, DeadLetter.status, ALL)
    return {
        "total": sum(by_status.values()),
        "by_status": by_status,
        f"resolved_older_than_{ARCHIVED_AFTER.days}_days": count_archivable(session),
        f"archived_older_than_{_PURGE_AFTER_DAYS}_days": count_purgeable(
            session, older_than_days=_PURGE_AFTER_DAYS
        ),
    }
