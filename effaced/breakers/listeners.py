"""Listeners hear of calls and transitions. An error in a listener is logged and changes nothing."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Sequence
from functools import partial

from sqlalchemy import event
from sqlalchemy.orm import Session, SessionTransaction

from effaced.breakers.model import BreakerRole, Transition
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.core.log import get_logger

_log = get_logger(__name__)
_PENDING = "effaced_breaker_transitions"


class BreakerListener:
    """Override the methods you need."""

    def before_call(self, service_name: str, role: BreakerRole, calls: int) -> None:
        """This many calls have been admitted."""

    def success(self, service_name: str, role: BreakerRole) -> None: ...

    def failure(self, service_name: str, role: BreakerRole, outcome: Outcome) -> None: ...

    def state_change(self, transition: Transition) -> None:
        """Called once, in the process that made the transition."""


class Notifier:
    """Calls the listeners, and `on_transition`."""

    def __init__(
        self, listeners: Sequence[BreakerListener], on_transition: Callable[[Transition], None] | None
    ) -> None:
        self.listeners = tuple(listeners)
        self._on_transition = on_transition

    def announce_admitted(self, names: Sequence[str], role: BreakerRole, calls: int) -> None:
        if self.listeners:
            for name in names:
                self._call("before_call", name, role, calls)

    def announce_outcomes(self, names: Sequence[str], role: BreakerRole, outcomes: Sequence[Outcome]) -> None:
        if not self.listeners:
            return
        for name in names:
            for outcome in (each.for_breaker(name) for each in outcomes):
                if outcome.kind is OutcomeKind.SUCCESS:
                    self._call("success", name, role)
                elif outcome.kind is OutcomeKind.FAILURE:
                    self._call("failure", name, role, outcome)

    def announce_transitions(self, made: Sequence[Transition], session: Session | None = None) -> None:
        """Announce transitions: now, or after the commit of the session that they are part of."""
        if session is not None:
            session.info.setdefault(_PENDING, []).append(partial(self.announce_transitions, made))
            return
        for each in made:
            _log.info(
                "breaker_moved",
                breaker=each.service_name,
                old=each.old.value,
                new=each.new.value,
                reason=each.reason,
            )
            self._call("state_change", each)
            if self._on_transition is not None:
                try:
                    self._on_transition(each)
                except (Exception, CancelledError) as error:
                    _log.warning("breaker_transition_hook_failed", error=type(error).__name__)

    def _call(self, method: str, *arguments: object) -> None:
        for listener in self.listeners:
            try:
                getattr(listener, method)(*arguments)
            except (Exception, CancelledError) as error:
                _log.warning("breaker_listener_failed", method=method, error=type(error).__name__)


@event.listens_for(Session, "after_commit")
def _announce_pending(session: Session) -> None:
    if not session.in_nested_transaction():  # releasing a savepoint is not a commit
        for announce in session.info.pop(_PENDING, ()):
            announce()


@event.listens_for(Session, "after_soft_rollback")
def _discard_pending(session: Session, previous: SessionTransaction) -> None:
    if not previous.nested:
        session.info.pop(_PENDING, None)
