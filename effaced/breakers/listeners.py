"""Who wants to hear of calls and of moves. What a listener raises is logged and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from effaced.breakers.model import BreakerRole, Transition
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.core.log import get_logger

_log = get_logger(__name__)


class BreakerListener:
    """Override what is of interest."""

    def before_call(self, service_name: str, role: BreakerRole, calls: int) -> None:
        """So many calls have been let in."""

    def success(self, service_name: str, role: BreakerRole) -> None: ...

    def failure(self, service_name: str, role: BreakerRole, outcome: Outcome) -> None: ...

    def state_change(self, transition: Transition) -> None:
        """Told once, in the process that made the move."""


class Telling:
    """Tells listeners, and whoever else wants to hear of transitions."""

    def __init__(
        self, listeners: Sequence[BreakerListener], on_transition: Callable[[Transition], None] | None
    ) -> None:
        self.listeners = tuple(listeners)
        self._on_transition = on_transition

    def admitted(self, names: Sequence[str], role: BreakerRole, calls: int) -> None:
        if self.listeners:
            for name in names:
                self._tell("before_call", name, role, calls)

    def outcomes(self, names: Sequence[str], role: BreakerRole, made: Sequence[Outcome]) -> None:
        if not self.listeners:
            return
        for outcome in made:
            for name in names:
                if outcome.kind is OutcomeKind.SUCCESS:
                    self._tell("success", name, role)
                elif outcome.kind is OutcomeKind.FAILURE:
                    self._tell("failure", name, role, outcome)

    def transitions(self, made: Sequence[Transition]) -> None:
        for each in made:
            _log.info(
                "breaker_moved",
                breaker=each.service_name,
                old=each.old.value,
                new=each.new.value,
                reason=each.reason,
            )
            self._tell("state_change", each)
            if self._on_transition is not None:
                try:
                    self._on_transition(each)
                except Exception as error:
                    _log.warning("breaker_transition_hook_failed", error=type(error).__name__)

    def _tell(self, what: str, *about: object) -> None:
        for listener in self.listeners:
            try:
                getattr(listener, what)(*about)
            except Exception as error:
                _log.warning("breaker_listener_failed", told=what, error=type(error).__name__)
