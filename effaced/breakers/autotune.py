"""From advice to plans, and from plans to changes of the policies in force: audited, and undone like any."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from effaced.audit.notes import NoteRef
from effaced.breakers.advisor import HostAdvice, Suggestion
from effaced.breakers.model import split_name
from effaced.breakers.observe import BreakerAdvisor
from effaced.breakers.policy import BreakerPolicies
from effaced.core import clock
from effaced.core.errors import ConfigurationError, Conflict, Refused
from effaced.model import PolicyKind, PolicyScope
from effaced.retries.overrides import Check, Override, Target, check_rate, get, put
from effaced.retries.overrides import undo as undo_override


@dataclass(frozen=True, slots=True)
class AutoTunePlan:
    """What would change for one breaker, and why."""

    breaker: str
    changes: tuple[Suggestion, ...]
    advice: HostAdvice

    @property
    def kind(self) -> PolicyKind:
        return self.changes[0].kind

    @property
    def fields(self) -> dict[str, float]:
        return {each.field: each.now for each in self.changes}

    def told(self) -> dict[str, Any]:
        seen = self.advice.metrics
        return {
            "breaker": self.breaker,
            "since": clock.text(seen.since),
            "until": clock.text(seen.until),
            "seen": {
                "calls": seen.calls,
                "too_many_requests": seen.too_many,
                "retry_afters": seen.retry_afters,
                "median_retry_after_s": seen.median_retry_after_s,
                "opens": seen.opens,
                "trials_ended": seen.trials_ended,
                "trials_failed": seen.trials_failed,
            },
            "changes": [
                {
                    "kind": each.kind.value,
                    "field": each.field,
                    "from": each.was,
                    "to": each.now,
                    "why": each.why,
                }
                for each in self.changes
            ],
        }


class BreakerAutoTuner:
    """In the caller's transaction. `policies` are those in force, which a change has to fit into."""

    def __init__(self, session: Session, policies: BreakerPolicies) -> None:
        self._session = session
        self._policies = policies

    def suggest(self, advisor: BreakerAdvisor) -> list[AutoTunePlan]:
        """What would be changed. Changes nothing."""
        advice = advisor.advise()
        return [AutoTunePlan(name, each.suggestions, each) for name, each in sorted(advice.items())]

    def enforce(
        self,
        advisor: BreakerAdvisor,
        *,
        actor: str,
        note: NoteRef | None = None,
        only: Collection[str] | None = None,
    ) -> list[AutoTunePlan]:
        """Change it, for all breakers or some; what was changed before and is not named stays changed."""
        plans = [each for each in self.suggest(advisor) if only is None or each.breaker in only]
        for plan in plans:
            target = target_of(plan.breaker, plan.kind)
            check = check_rate if plan.kind is PolicyKind.RATE else checked(self._policies, plan.breaker)
            put(self._session, target, plan.fields, check=check, actor=actor, note=note, merge=True)
        return plans


def undo(
    session: Session,
    name: str,
    *,
    actor: str,
    note: NoteRef | None = None,
    kind: PolicyKind | None = None,
) -> Override:
    """Go back to before the last change of a breaker's policy or, if that was later, of its rate limit."""
    kinds = [kind] if kind else [PolicyKind.BREAKER, PolicyKind.RATE]
    found = [each for kind in kinds if (each := get(session, target_of(name, kind))) is not None]
    if not found:
        raise Conflict("Nothing was changed here that could be undone.")
    latest = max(found, key=lambda each: each.changed_at)
    return undo_override(session, latest.target, actor=actor, note=note)


def target_of(name: str, kind: PolicyKind) -> Target:
    scope, key = split_name(name)
    return Target(kind, PolicyScope(scope), key)


def checked(policies: BreakerPolicies, name: str) -> Check:
    """Refuses fields of a breaker's policy that can't be, by their names."""

    def check(changes: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            policies.replace({name: changes})
        except ConfigurationError as error:
            problems = error.problems
        else:
            return changes
        raise Refused("The breaker's policy is not as it must be.", problems=problems)

    return check
