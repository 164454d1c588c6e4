"""Systems that all of a sudden know nobody.

"Not there" is a good end of an erasure. But a mistyped path answers so to everybody, and everybody would be
certified as erased. So when a system that used to erase people says it of nearly all, somebody is told.
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
from effaced.core import dbtime
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
# Of fewer answers than this nobody can say what is usual.
ENOUGH = 20
SUDDEN, USUAL = 0.8, 0.2
TOLD_AGAIN_AFTER = timedelta(hours=24)
SHOWN = timedelta(days=7)
# What a system itself can say of an erasure; an attestation is a person's word.
_ANSWERS = (
    StepOutcome.ERASED, StepOutcome.ALREADY_ABSENT, StepOutcome.EXPIRED,
    StepOutcome.VERIFIED_EXPIRY, StepOutcome.RETAINED,
)  # fmt: skip
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Share:
    """Of how many people a system said that they were not there."""

    absent: int
    answers: int

    def __bool__(self) -> bool:
        return self.answers >= ENOUGH

    @property
    def of_all(self) -> float:
        return self.absent / self.answers


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm that was raised: what the hour showed, and the week before it."""

    resolver: str
    at: datetime
    now: Share
    before: Share


def ring_for_absences(session: Session) -> list[str]:
    """Raise the alarm for every system where absences have sprung up; their names. Once a day at most."""
    now = dbtime.now(session)
    return [name for name in known_resolvers(session) if _spikes(session, name, now)]


def raised(session: Session, since: timedelta = SHOWN) -> dict[str, Alarm]:
    """The last alarm of each system within that time, by name."""
    events = session.execute(
        select(AuditEvent.at, AuditEvent.payload)
        .where(AuditEvent.type == AbsenceSpiked.type, AuditEvent.at > dbtime.now(session) - since)
        .order_by(AuditEvent.id)
    )
    return {told["resolver"]: _alarm(at, told) for at, told in events}


def _spikes(session: Session, resolver: str, now: datetime) -> bool:
    share = _share(session, _tried(resolver, now - WINDOW))
    if not share or share.of_all < SUDDEN:
        return False
    # A look at every entry of the system: only where the hour was strange, which is seldom.
    before = _share(session, _ended(resolver, now - WINDOW - BEFORE, now - WINDOW))
    if before and before.of_all >= USUAL:
        return False
    lock(session, resolver)  # of several schedulers one tells
    if resolver in raised(session, TOLD_AGAIN_AFTER):
        return False
    spiked = AbsenceSpiked(
        resolver=resolver,
        absent=share.absent,
        answers=share.answers,
        absent_before=before.absent,
        answers_before=before.answers,
    )
    append_one(session, spiked)
    told = notices.AbsenceSpiked(resolver=resolver, absent=share.absent, answers=share.answers)
    announce(session, [told])
    _log.error("absence_spiked", resolver=resolver, absent=share.absent, answers=share.answers)
    return True


def _share(session: Session, query: Select[Any]) -> Share:
    counts: dict[StepOutcome, int] = dict(session.execute(query.group_by(outbox.c.outcome)).all())
    return Share(counts.get(StepOutcome.ALREADY_ABSENT, 0), sum(counts.values()))


def _tried(resolver: str, since: datetime) -> Select[Any]:
    """By the tries, which are indexed by time and kept for a day; the outbox is not."""
    made = and_(
        attempts.c.resolver == resolver,
        attempts.c.at >= since,
        attempts.c.outcome == AttemptOutcome.SUCCESS,
        attempts.c.operation == OutboxOperation.ERASE,
    )
    ended = attempts.join(outbox, outbox.c.entry_id == attempts.c.entry_id)
    return _counted(made).select_from(ended)


def _ended(resolver: str, since: datetime, until: datetime) -> Select[Any]:
    return _counted(
        and_(
            outbox.c.resolver == resolver,
            outbox.c.operation == OutboxOperation.ERASE,
            outbox.c.status == OutboxStatus.SUCCEEDED,
            outbox.c.ended_at >= since,
            outbox.c.ended_at < until,
        )
    )


def _counted(which: ColumnElement[bool]) -> Select[Any]:
    return select(outbox.c.outcome, func.count()).where(which, outbox.c.outcome.in_(_ANSWERS))


def _alarm(at: datetime, told: dict[str, Any]) -> Alarm:
    now, before = Share(told["absent"], told["answers"]), Share(told["absent_before"], told["answers_before"])
    return Alarm(told["resolver"], at, now, before)
