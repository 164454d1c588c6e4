"""What officers do to a breaker: pin it open or closed for a time, or reset it. Each is an audit event."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import event
from sqlalchemy.orm import Session, SessionTransaction

from effaced.audit.append import Record
from effaced.audit.events import BreakerForcedClosed, BreakerForcedOpen, BreakerReset
from effaced.audit.notes import NoteRef, noted
from effaced.breakers import machine
from effaced.breakers.administration import PIN_MINUTES
from effaced.breakers.change import Change, Rows, stamp
from effaced.breakers.ground import Ground
from effaced.breakers.model import HOST, RESOLVER, BreakerState, Transition
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.core.errors import Problem, Refused

LONGEST = timedelta(days=30)
_UNTOLD = "effaced_breaker_moves"


class Steering(Ground):
    """The part of the registry that people use. `name` is `resolver:crm` or `host:api.example`."""

    def force_open(
        self,
        name: str,
        *,
        actor: str,
        seconds: float | None = None,
        until: datetime | None = None,
        note: NoteRef | None = None,
        session: Session | None = None,
    ) -> Transition:
        """Let nothing through for a while. With a session, in its transaction, and told after its commit."""
        end = until_when(self.repository.now(), seconds, until)
        made = pin(self._within(session), name, BreakerState.OPEN, until=end, actor=actor, note=note)
        return self._told_by(made, session)

    def force_close(
        self,
        name: str,
        *,
        actor: str,
        seconds: float | None = None,
        until: datetime | None = None,
        note: NoteRef | None = None,
        session: Session | None = None,
    ) -> Transition:
        """Let everything through for a while, whatever comes of it."""
        end = until_when(self.repository.now(), seconds, until)
        made = pin(self._within(session), name, BreakerState.CLOSED, until=end, actor=actor, note=note)
        return self._told_by(made, session)

    def reset(
        self, name: str, *, actor: str, note: NoteRef | None = None, session: Session | None = None
    ) -> Transition:
        """Begin anew: closed, nothing counted, no pin, no cooldown."""
        return self._told_by(reset(self._within(session), name, actor=actor, note=note), session)

    def _within(self, session: Session | None) -> CircuitBreakerStateRepository:
        return self.repository if session is None else self.repository.within(session)

    def _told_by(self, made: Transition, session: Session | None) -> Transition:
        if session is None:
            self._telling.transitions([made])
        else:
            session.info.setdefault(_UNTOLD, []).append(lambda: self._telling.transitions([made]))
        return made


def pin(
    repository: CircuitBreakerStateRepository,
    name: str,
    state: BreakerState,
    *,
    until: datetime,
    actor: str,
    note: NoteRef | None,
) -> Transition:
    """Hold it in that state until then, whatever comes of calls."""
    require_name(name)
    type_ = BreakerForcedOpen if state is BreakerState.OPEN else BreakerForcedClosed
    reason = str(note.note_id) if note else None

    def pinned(rows: Rows) -> Change[Transition]:
        row, now = rows[name], repository.now()
        step = machine.force(row, state, now, until=until, actor=actor, reason=reason)
        assert step.transition is not None
        told = type_(breaker=name, previous=row.state.value, until=until, **noted(note))
        return Change(
            [stamp(row, step.data, now)], step.transition, [step.transition], [Record(told, actor=actor)]
        )

    return repository.change([name], pinned)


def reset(
    repository: CircuitBreakerStateRepository, name: str, *, actor: str, note: NoteRef | None
) -> Transition:
    """Closed, and nothing counted: pin and cooldown are gone too."""
    require_name(name)

    def made_new(rows: Rows) -> Change[Transition]:
        row, now = rows[name], repository.now()
        step = machine.reset(row, now, actor=actor)
        assert step.transition is not None
        told = BreakerReset(breaker=name, previous=row.state.value, **noted(note))
        return Change(
            [stamp(row, step.data, now)], step.transition, [step.transition], [Record(told, actor=actor)]
        )

    return repository.change([name], made_new)


def until_when(now: datetime, seconds: float | None, until: datetime | None) -> datetime:
    """The end of a pin: in so many seconds, or then; 90 minutes if nothing is said. At most 30 days."""
    if seconds is not None and until is not None:
        raise _refused("until", "give seconds or until, not both")
    if seconds is not None:
        if not 0 < seconds <= LONGEST.total_seconds():
            raise _refused("seconds", f"must be over 0 and at most {LONGEST.total_seconds():.0f}")
        return now + timedelta(seconds=seconds)
    if until is None:
        return now + timedelta(minutes=PIN_MINUTES)
    if not now < until <= now + LONGEST:
        raise _refused("until", "must be in the future and at most 30 days away")
    return until


def require_name(name: str) -> None:
    scope, found, key = name.partition(":")
    if not found or scope not in (RESOLVER, HOST) or not key:
        raise _refused("name", "expected resolver:NAME or host:NAME")


def _refused(field: str, message: str) -> Refused:
    return Refused(f"The breaker was left as it is: {field} {message}.", problems=[Problem(field, message)])


@event.listens_for(Session, "after_commit")
def _tell(session: Session) -> None:
    if not session.in_nested_transaction():  # the release of a savepoint is no commit
        for tell in session.info.pop(_UNTOLD, ()):
            tell()


@event.listens_for(Session, "after_soft_rollback")
def _forget(session: Session, previous: SessionTransaction) -> None:
    if not previous.nested:
        session.info.pop(_UNTOLD, None)
