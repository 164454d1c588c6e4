"""What the figures suggest for one system's policies, and what of it can be taken back."""

from __future__ import annotations

from sqlalchemy.orm import Session

from effaced.breakers.advice.tuner import AutoTunePlan, target_of
from effaced.console.current import runtime
from effaced.model import PolicyKind
from effaced.retries.overrides import get_override
from effaced.triage.systems import breakers_of


def plans_for(session: Session, name: str) -> list[AutoTunePlan]:
    """The suggestions for its own breaker and its host's."""
    mine = breakers_of(runtime().registry.get(name))
    found = runtime().tuner(session).suggest(runtime().advisor(session))
    return [each for each in found if each.breaker in mine]


def undoable(session: Session, name: str) -> list[str]:
    """Those of its breakers whose policy or rate limit was changed and can be changed back."""
    return [
        breaker
        for breaker in breakers_of(runtime().registry.get(name))
        if any(
            (found := get_override(session, target_of(breaker, kind))) is not None
            and found.previous is not None
            for kind in (PolicyKind.BREAKER, PolicyKind.RATE)
        )
    ]
