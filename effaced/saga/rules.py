"""Which rules apply to an entry: the settings, a resolver's own limits, and changes at run time."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.breakers.policy import CallLimits
from effaced.model import PolicyKind
from effaced.outbox.entry import Entry
from effaced.resolvers.protocols import Limits
from effaced.resolvers.registry import ResolverRegistry
from effaced.retries.layers import in_force
from effaced.retries.overrides import Bodies, read_bodies
from effaced.retries.policy import RetryPolicy
from effaced.saga.result import Rules


def limits_of(registry: ResolverRegistry, resolver: str) -> Limits:
    return registry.get(resolver).limits if resolver in registry else Limits()


def own_changes(limits: Limits) -> dict[str, Any]:
    """The fields of a retry policy that a resolver's own limits set."""
    fields = {
        "max_attempts": limits.max_attempts,
        "timeout": limits.max_age and limits.max_age.total_seconds(),
        "base_delay": limits.backoff and limits.backoff.total_seconds(),
        "max_backoff_delay": limits.backoff_cap and limits.backoff_cap.total_seconds(),
    }
    return {name: value for name, value in fields.items() if value is not None}


def call_limits(
    registry: ResolverRegistry, settings: RetryPolicy, session: Session | None = None
) -> dict[str, CallLimits]:
    """The limits that breaker policies must fit, by resolver; with a session, changes at run time count."""
    changed = (
        read_bodies(session, PolicyKind.RETRY, resolvers=[each.name for each in registry]) if session else {}
    )
    return {
        each.name: CallLimits(
            each.limits.timeout,
            in_force(settings, own_changes(each.limits), changed, resolver=each.name).max_attempts,
        )
        for each in registry
    }


class RuleBook:
    """The rules for entries, from the files and, where the database is asked, from changes at run time."""

    def __init__(self, settings: RetryPolicy, registry: ResolverRegistry) -> None:
        self._settings = settings
        self._registry = registry

    def from_files(self, resolver: str) -> Rules:
        return _from_files(self._settings, limits_of(self._registry, resolver))

    def in_force(self, session: Session, entries: Collection[Entry]) -> dict[UUID, Rules]:
        """The rules for each of these entries as they are now, by id: one query for all."""
        overrides = read_bodies(
            session,
            PolicyKind.RETRY,
            resolvers={each.resolver for each in entries},
            requests={each.request_id for each in entries},
        )
        return {each.entry_id: self._rules(each, overrides) for each in entries}

    def policy(
        self, session: Session, *, resolver: str | None = None, request_id: UUID | None = None
    ) -> RetryPolicy:
        """The policy in force, for display."""
        overrides = read_bodies(
            session,
            PolicyKind.RETRY,
            resolvers=[resolver] if resolver else [],
            requests=[request_id] if request_id else [],
        )
        own = own_changes(limits_of(self._registry, resolver)) if resolver else {}
        return in_force(self._settings, own, overrides, resolver=resolver, request_id=request_id)

    def _rules(self, entry: Entry, overrides: Bodies) -> Rules:
        if not overrides:
            return self.from_files(entry.resolver)
        limits = limits_of(self._registry, entry.resolver)
        policy = in_force(
            self._settings,
            own_changes(limits),
            overrides,
            resolver=entry.resolver,
            request_id=entry.request_id,
        )
        return Rules(policy, limits.idempotent)


@lru_cache(maxsize=256)
def _from_files(settings: RetryPolicy, limits: Limits) -> Rules:
    return Rules(in_force(settings, own_changes(limits), {}), limits.idempotent)
