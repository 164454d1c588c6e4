"""Telling the workers that there is something to do, after the commit and never before.

What rings (RQ, in a fleet) is put in at start-up; with nothing put in, ringing is silent. A ring that
fails is logged and forgotten: the scheduler's sweep finds whatever is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlalchemy import event
from sqlalchemy.orm import Session, SessionTransaction

from effaced.core.log import get_logger

Ring = Callable[[frozenset[str]], None]
_PENDING = "effaced_ring"
_log = get_logger(__name__)
_ring: Ring | None = None


def install(ring: Ring | None) -> None:
    """Set the function that notifies the workers; None removes it."""
    global _ring
    _ring = ring


def ring(resolvers: Iterable[str]) -> None:
    """Notify the workers of these resolvers now. Never raises."""
    names = frozenset(resolvers)
    if _ring is None or not names:
        return
    try:
        _ring(names)
    except Exception as error:  # whatever the bell is made of, the work is safe in the database
        _log.warning("ring_failed", resolvers=sorted(names), error=type(error).__name__)


def ring_after_commit(session: Session, resolvers: Iterable[str]) -> None:
    """Ring once this session has committed; a rollback rings nothing."""
    session.info.setdefault(_PENDING, set()).update(resolvers)


@event.listens_for(Session, "after_commit")
def _ring_pending(session: Session) -> None:
    # The release of a savepoint is no commit: others can't see anything yet.
    if not session.in_nested_transaction():
        ring(session.info.pop(_PENDING, ()))


@event.listens_for(Session, "after_soft_rollback")
def _forget(session: Session, previous: SessionTransaction) -> None:
    # Of an undone savepoint a ring may be left over; it finds nothing and does no harm.
    if not previous.nested:
        session.info.pop(_PENDING, None)
