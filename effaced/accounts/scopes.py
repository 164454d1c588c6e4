"""What an API key may be used for."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from effaced.core.errors import Problem, Refused


class Scope(StrEnum):
    """One kind of call. Keys that were made before there were scopes have those of requests."""

    REQUESTS_READ = "requests:read"
    REQUESTS_WRITE = "requests:write"
    OPERATE_READ = "operate:read"
    OPERATE_WRITE = "operate:write"


DEFAULT = (Scope.REQUESTS_READ, Scope.REQUESTS_WRITE)
# Who may change something may look at it.
_INCLUDED = {Scope.REQUESTS_WRITE: Scope.REQUESTS_READ, Scope.OPERATE_WRITE: Scope.OPERATE_READ}


def parse_scopes(words: Iterable[str]) -> tuple[Scope, ...]:
    """The scopes that the words name, in one order; refuses others, and none at all."""
    wanted = set(words)
    if not wanted or wanted - set(Scope):
        said = f"must be one or more of {', '.join(Scope)}"
        raise Refused(f"The scopes {said}.", problems=[Problem("scopes", said)])
    return tuple(each for each in Scope if each in wanted)


def has_scope(stored: Iterable[str] | None, needed: Scope) -> bool:
    """Whether a key with these stored scopes may do this."""
    held = set(DEFAULT if stored is None else stored)
    held |= {_INCLUDED[each] for each in _INCLUDED if each in held}
    return needed in held
