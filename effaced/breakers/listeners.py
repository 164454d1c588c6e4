"""Who wants to hear of calls and of moves. What a listener raises is logged and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from effaced.breakers.model import BreakerRole, Transition
from effaced.breakers.outcomes import Outcome
from effaced.log import get_logger

_log = get_logger(__name__)


class BreakerListener:
    """Override what is of interest."""

    def before_call(self, service_name: str, role: BreakerRole, calls: int) -> None:
        """So many calls have been let in."""

    def success(self, service_name: str, role: BreakerRole) -> None: ...

    def failure(self, service_name: str, role: BreakerRole, outcome: Outcome) -> None: ...

    def state_change(self, transition: Transition) -> None:
        """Told once, in the process that made the move."""


def tell(listeners: Sequence[BreakerListener], what: str, *about: object) -> None:
    for listener in listeners:
        try:
            getattr(listener, what)(*about)
        except Exception as error:
            _log.warning("breaker_listener_failed", told=what, error=type(error).__name__)
