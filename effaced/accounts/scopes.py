"""What an API key may be used for."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from effaced.core.errors import Problem, Refused


class Scope(StrEnum):
    """One kind of call. Keys that were made before there were scopes have those of requests.

    `requests:*` reach only what the same key has sent. `decide:*` are for keys that act in an officer's name.
    """

    REQUESTS_READ = "requests:read"
    REQUESTS_WRITE = "requests:write"
    OPERATE_READ = "operate:read"
    OPERATE_WRITE = "operate:write"
    DECIDE_READ = "decide:read"
    DECIDE_APPROVE = "decide:approve"
    DECIDE_ATTEST = "decide:attest"
    AUDIT_READ = "audit:read"
    MESSAGES_READ = "messages:read"
    MESSAGES_WRITE = "messages:write"
    KEYS_READ = "keys:read"
    KEYS_WRITE = "keys:write"


DEFAULT = (Scope.REQUESTS_READ, Scope.REQUESTS_WRITE)
SANDBOX = frozenset(DEFAULT)
"""What a sandbox key can have: it plans, and there is nothing else of which it would see the effect."""
NEED_AN_OFFICER = frozenset((Scope.DECIDE_READ, Scope.DECIDE_APPROVE, Scope.DECIDE_ATTEST))
# Who may change something may look at it.
_INCLUDED = {
    Scope.REQUESTS_WRITE: Scope.REQUESTS_READ,
    Scope.OPERATE_WRITE: Scope.OPERATE_READ,
    Scope.DECIDE_APPROVE: Scope.DECIDE_READ,
    Scope.DECIDE_ATTEST: Scope.DECIDE_READ,
    Scope.MESSAGES_WRITE: Scope.MESSAGES_READ,
    Scope.KEYS_WRITE: Scope.KEYS_READ,
}


def parse_scopes(words: Iterable[str]) -> tuple[Scope, ...]:
    """The scopes that the words name, in one order; refuses others, and none at all."""
    wanted = set(words)
    if not wanted or wanted - set(Scope):
        said = f"must be one or more of {', '.join(Scope)}"
        raise Refused(f"The scopes {said}.", problems=[Problem("scopes", said, code="not_allowed")])
    return tuple(each for each in Scope if each in wanted)


def has_scope(stored: Iterable[str] | None, needed: Scope) -> bool:
    """Whether a key with these stored scopes may do this."""
    held = set(DEFAULT if stored is None else stored)
    held |= {_INCLUDED[each] for each in _INCLUDED if each in held}
    return needed in held
