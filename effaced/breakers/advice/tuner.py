"""Turns advice into plans, and changes the policies in force: by advice or by hand, audited, with undo."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from effaced.audit.notes import NoteRef
from effaced.breakers.advice.metrics import BreakerAdvisor
from effaced.breakers.advice.rules import HostAdvice, Suggestion
from effaced.breakers.model import HOST, RESOLVER, split_name
from effaced.breakers.policy import DEFAULTS, BreakerPolicies, with_changes
from effaced.core import clock
from effaced.core.errors import ConfigurationError, Conflict, Problem, Refused
from effaced.model import PolicyKind, PolicyScope
from effaced.retries.overrides import Override, Target, check_rate, get_override, set_override, undo_override

# Fields that have to fit a resolver's timeout and attempts.
_LIMITED = {"fail_max", "stuck_timeout_s", "roles"}


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

    def as_dict(self) -> dict[str, Any]:
        measured = self.advice.metrics
        return {
            "breaker": self.breaker,
            "since": clock.text(measured.since),
            "until": clock.text(measured.until),
            "seen": {
                "calls": measured.calls,
                "too_many_requests": measured.too_many,
                "retry_afters": measured.retry_afters,
                "median_retry_after_s": measured.median_retry_after_s,
                "opens": measured.opens,
                "trials_ended": measured.trials_ended,
                "trials_failed": measured.trials_failed,
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
    """In the caller's transaction. `policies` are those in force, which a change has to fit."""

    def __init__(self, session: Session, policies: BreakerPolicies) -> None:
        self._session = session
        self._policies = policies

    def suggest(self, advisor: BreakerAdvisor) -> list[AutoTunePlan]:
        """What `enforce` would change. Changes nothing."""
        advice = advisor.advise()
        return [AutoTunePlan(name, self._suggestions(each), each) for name, each in sorted(advice.items())]

    def _suggestions(self, advice: HostAdvice) -> tuple[Suggestion, ...]:
        """The suggestions; the reason of each also names the role overrides that it would replace."""
        return tuple(
            replace(each, why=f"{each.why} {warning}")
            if (warning := self._warn_of_replaced(advice.breaker, each))
            else each
            for each in advice.suggestions
        )

    def _warn_of_replaced(self, breaker: str, suggestion: Suggestion) -> str:
        if suggestion.kind is not PolicyKind.BREAKER:
            return ""
        replaced = self._policies.replaced_by(breaker, {suggestion.field: suggestion.now})
        return describe_replaced_overrides(replaced)

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
            change_policy(
                self._session, self._policies, plan.breaker, plan.kind, plan.fields, actor=actor, note=note
            )
        return plans


def change_policy(
    session: Session,
    policies: BreakerPolicies,
    name: str,
    kind: PolicyKind,
    fields: Mapping[str, Any],
    *,
    actor: str,
    note: NoteRef | None = None,
) -> Override:
    """Change fields of a breaker's policy, or a resolver's rate; `defaults` changes them for all.

    What was changed before and is not named stays changed, but a field changed for all roles ends what was
    changed of it for a role. Refused if the result does not fit.
    """
    if kind is PolicyKind.RATE and name.startswith(f"{HOST}:"):
        message = "must be a resolver: a host has no rate limit"
        raise Refused(f"The name {message}.", problems=[Problem("name", message)])
    check = check_rate if kind is PolicyKind.RATE else partial(_require_fit, policies, name)
    return set_override(
        session, target_of(name, kind), fields, check=check, actor=actor, note=note, merge=with_changes
    )


def describe_replaced_overrides(fields: Sequence[str]) -> str:
    """A sentence that names the role overrides which a change for all roles replaces; empty if none."""
    return f"It holds for all roles: what was changed as {', '.join(fields)} ends." if fields else ""


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
    found = [each for kind in kinds if (each := get_override(session, target_of(name, kind))) is not None]
    if not found:
        raise Conflict("Nothing was changed here that could be undone.")
    latest = max(found, key=lambda each: each.changed_at)
    return undo_override(session, latest.target, actor=actor, note=note)


def target_of(name: str, kind: PolicyKind) -> Target:
    """What an override of this breaker, or of `defaults`, is stored under."""
    if name == DEFAULTS:
        return Target(kind)
    scope, key = split_name(name)
    return Target(kind, PolicyScope(scope), key)


def _require_fit(policies: BreakerPolicies, name: str, changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The changes, if the policies with them are valid; refused with every problem by field."""
    try:
        changed = policies.replace({name: changes})
        scope, key = split_name(name)
        if changes.keys() & _LIMITED and (name == DEFAULTS or scope == RESOLVER):
            changed.require_fit(None if name == DEFAULTS else key)
    except ConfigurationError as error:
        raise Refused("The breaker policy is invalid.", problems=error.problems) from None
    return changes
