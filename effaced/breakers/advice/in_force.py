"""A breaker's policy and rate in force, and what of both was changed at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from effaced.breakers.advice.tuner import target_of
from effaced.breakers.model import BreakerRole
from effaced.breakers.policy import BreakerPolicies, BreakerPolicy
from effaced.model import PolicyKind
from effaced.retries.overrides import get_override

_KINDS = (PolicyKind.BREAKER, PolicyKind.RATE)


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """Of one breaker, or of `defaults`. `rate_per_second` is None without a limit; a host has none."""

    name: str
    roles: Mapping[BreakerRole, BreakerPolicy]
    rate_per_second: float | None
    overrides: Mapping[PolicyKind, Mapping[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "roles": {role.value: _plain(each.model_dump()) for role, each in self.roles.items()},
            "rate_per_second": self.rate_per_second,
            "overrides": {kind.value: dict(each) for kind, each in self.overrides.items()},
        }


def read_policy(session: Session, policies: BreakerPolicies, name: str, rate: float | None) -> PolicyInForce:
    """`policies` and `rate` are those in force."""
    changed = {kind: get_override(session, target_of(name, kind)) for kind in _KINDS}
    return PolicyInForce(
        name,
        {role: policies.named(name, role) for role in BreakerRole},
        rate,
        {kind: each.body if each else {} for kind, each in changed.items()},
    )


def _plain(value: Any) -> Any:
    """A policy as JSON: sets of statuses become sorted lists."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return sorted(value) if isinstance(value, frozenset) else value
