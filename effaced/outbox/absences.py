"""Alarms for systems that suddenly report nearly everybody as absent.

"Not there" is a good end of an erasure. But a mistyped path answers 404 for everybody, and everybody would be
certified as erased. So an alarm is raised when a system that used to erase people says it of nearly all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, select
from sqlalchemy.orm import Session

from effaced.audit.append import append_one
from effaced.audit.events import AbsenceSpiked
from effaced.audit.tables import AuditEvent
from effaced.core.db import dbtime
from effaced.core.log import get_logger
from effaced.model import AttemptOutcome, OutboxOperation, OutboxStatus, StepOutcome
from effaced.notify import notices
from effaced.notify.write import announce
from effaced.outbox.flow import lock
from effaced.outbox.tables import outbox
from effaced.retries.count import known_resolvers
from effaced.retries.tables import attempts

WINDOW = timedelta(hours=1)
BEFORE = timedelta(days=7)
# With fewer answers than this a share means nothing.
MIN_ANSWERS = 20
SPIKE_FROM, NORMAL_BELOW = 0.8, 0.2
REPEATED_AFTER = timedelta(hours=24)
SHOWN = timedelta(days=7)
# What a system itself can answer to an erasure; an attestation is a person's word.
_ANSWERS = (
    StepOutcome.ERASED, StepOutcome.ALREADY_ABSENT, StepOutcome.EXPIRED,
    StepOutcome.VERIFIED_EXPIRY, StepOutcome.RETAINED,
)  # fmt: skip
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Share:
    """How many answers of a system were "not there"."""

    absent: int
    answers: int

    def __bool__(self) -> bool:
        return self.answers >= MIN_ANSWERS

    @property
    def ratio(self) -> float:
        return self.absent / self.answers


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm: how often the system said so within the hour, and in the week before it."""

    resolver: str
    at: datetime
    now: Share
    before: Share


def report_absence_spikes(session: Session) -> list[str]:
    """Raise an alarm for every system whose absences have spiked, one a day at most; return their names."""
    now = dbtime.now(session)
    return [name for name in known_resolvers(session) if _alert_on_spike(session, name, now)]


def recent_alarms(session: Session, since: timedelta = SHOWN) -> dict[str, Alarm]:
    """The last alarm of each system within that time, by its name."""
    events = session.execute(
        select(AuditEvent.at, AuditEvent.payload)
        .where(AuditEvent.type == AbsenceSpiked.type, AuditEvent.at > dbtime.now(session) - since)
        .order_by(AuditEvent.id)
    )
    return {payload["resolver"]: _alarm(at, payload) for at, payload in events}


def _alert_on_spike(session: Session, resolver: str, now: datetime) -> bool:
    share = _share(session, _recent_answers(resolver, now - WINDOW))
    if not share or share.ratio < SPIKE_FROM:
        return False
    # This reads every entry of the system, so only after an unusual hour, which is rare.
    before = _share(session, _earlier_answers(resolver, now - WINDOW - BEFORE, now - WINDOW))
    if before and before.ratio >= NORMAL_BELOW:
        return False
    lock(session, resolver)  # only one of several schedulers raises it
    if resolver in recent_alarms(session, REPEATED_AFTER):
        return False
    spiked = AbsenceSpiked(
        resolver=resolver,
        absent=share.absent,
        answers=share.answers,
        absent_before=before.absent,
        answers_before=before.answers,
    )
    append_one(session, spiked)
    notice = notices.AbsenceSpiked(resolver=resolver, absent=share.absent, answers=share.answers)
    announce(session, [notice])
    _log.error("absence_spiked", resolver=resolver, absent=share.absent, answers=share.answers)
    return True


def _share(session: Session, query: Select[Any]) -> Share:
    counts: dict[StepOutcome, int] = dict(session.execute(query.group_by(outbox.c.outcome)).all())
    return Share(counts.get(StepOutcome.ALREADY_ABSENT, 0), sum(counts.values()))


def _recent_answers(resolver: str, since: datetime) -> Select[Any]:
    """Found by the attempts, which are indexed by time and kept for a day; the outbox is not."""
    made = and_(
        attempts.c.resolver == resolver,
        attempts.c.at >= since,
        attempts.c.outcome == AttemptOutcome.SUCCESS,
        attempts.c.operation == OutboxOperation.ERASE,
    )
    ended = attempts.join(outbox, outbox.c.entry_id == attempts.c.entry_id)
    return _count_outcomes(made).select_from(ended)


def _earlier_answers(resolver: str, since: datetime, until: datetime) -> Select[Any]:
    return _count_outcomes(
        and_(
            outbox.c.resolver == resolver,
            outbox.c.operation == OutboxOperation.ERASE,
            outbox.c.status == OutboxStatus.SUCCEEDED,
            outbox.c.ended_at >= since,
            outbox.c.ended_at < until,
        )
    )


def _count_outcomes(which: ColumnElement[bool]) -> Select[Any]:
    return select(outbox.c.outcome, func.count()).where(which, outbox.c.outcome.in_(_ANSWERS))


def _alarm(at: datetime, payload: dict[str, Any]) -> Alarm:
    now = Share(payload["absent"], payload["answers"])
    before = Share(payload["absent_before"], payload["answers_before"])
    return Alarm(payload["resolver"], at, now, before)
