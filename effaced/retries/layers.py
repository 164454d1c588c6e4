"""Which retry policy is in force: settings, then what differs for everything, a resolver, a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from effaced.core.log import get_logger
from effaced.model import PolicyScope
from effaced.retries.overrides import ALL, Bodies
from effaced.retries.policy import RetryPolicy

_log = get_logger(__name__)


def in_force(
    settings: RetryPolicy,
    file: Mapping[str, Any],
    overrides: Bodies,
    *,
    resolver: str | None = None,
    request_id: UUID | None = None,
) -> RetryPolicy:
    """The policy for one resolver, for one of its calls, or, without either, for everything else."""
    policy = _apply_changes(settings, overrides.get((PolicyScope.GLOBAL, ALL)))
    policy = _apply_changes(policy, file)
    if resolver is not None:
        policy = _apply_changes(policy, overrides.get((PolicyScope.RESOLVER, resolver)))
    if request_id is not None:
        policy = _apply_changes(policy, overrides.get((PolicyScope.REQUEST, str(request_id))))
    return policy


def _apply_changes(policy: RetryPolicy, changes: Mapping[str, Any] | None) -> RetryPolicy:
    """The policy with these changes, or as it was if they are invalid."""
    if not changes:
        return policy
    try:
        return policy.changed(changes)
    except ValidationError:
        # Written by another version, or by hand. Calls go on by what else there is.
        _log.error("policy_override_unusable", fields=sorted(changes))
        return policy
