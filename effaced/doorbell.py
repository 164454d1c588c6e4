"""Telling the workers that there is something to do, after the commit and never before.

What rings (RQ, in a fleet) is put in at start-up; with nothing put in, ringing is silent. A ring that
fails is logged and forgotten: the scheduler's sweep finds whatever is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlalchemy import event
from sqlalchemy.orm import Session

from effaced.log import get_logger

Ring = Callable[[frozenset[str]], None]
_PENDING = "effaced_ring"
_log = get_logger(__name__)
_ring: Ring | None = None


def install(ring: Ring | None) -> None:
    """Put the bell in (or take it out)."""
    global _ring
    _ring = ring


def ring(resolvers: Iterable[str]) -> None:
    """Ring now, for these resolvers. Never raises."""
    names = frozenset(resolvers)
    if _ring is None or not names:
        return
    try:
        _ring(names)
    except Exception as error:  # whatever the bell is made of, the work is safe in the database
        _log.warning("ring_failed", resolvers=sorted(names), error=type(error).__name__)


def ring_after_commit(session: Session, resolvers: Iterable[str]) -> None:
    """Ring once this session has committed; a rollback rings nothing."""
    waiting = session.info.setdefault(_PENDING, set())
    if not waiting:
        event.listen(session, "after_commit", _ring_pending, once=True)
        event.listen(session, "after_soft_rollback", _forget, once=True)
    waiting.update(resolvers)


def _ring_pending(session: Session) -> None:
    ring(session.info.pop(_PENDING, set()))


def _forget(session: Session, _previous: object) -> None:
    session.info.pop(_PENDING, None)
