"""Who calls: `Authorization: Bearer <API key>`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from flask import request
from sqlalchemy.exc import SQLAlchemyError

from effaced.accounts.api_keys import authenticate, record_use, use_is_due
from effaced.accounts.scopes import Scope, has_scope
from effaced.accounts.tables import ApiKey
from effaced.api.operations.problems import FORBIDDEN, UNAUTHENTICATED, ApiProblem
from effaced.core.db import Database
from effaced.core.errors import Problem
from effaced.core.log import get_logger
from effaced.retries.policy import OPERATORS_ONLY

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """A system with an API key."""

    key: ApiKey

    @property
    def actor(self) -> str:
        return f"api_key:{self.key.id}"

    @property
    def sandbox(self) -> bool:
        return self.key.sandbox

    @property
    def officer_id(self) -> UUID | None:
        """The officer in whose name this key decides."""
        return self.key.officer_id

    @property
    def sees_all(self) -> bool:
        """Whether it reads everybody's requests, as an officer does; else those that it has sent."""
        return self.has(Scope.DECIDE_READ)

    def has(self, scope: Scope) -> bool:
        return has_scope(self.key.scopes, scope)


def authenticate_caller(db: Database) -> Caller:
    """The caller. Refuses with 401, and does not tell why a key is no good."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise ApiProblem(
            UNAUTHENTICATED,
            "Send the header `Authorization: Bearer <key>`. `effaced apikey new` makes a key.",
            headers={"WWW-Authenticate": 'Bearer realm="effaced"'},
        )
    with db.look() as session:
        key = authenticate(session, token.strip())
    if key is None:
        raise ApiProblem(
            UNAUTHENTICATED,
            "This API key is not known, or was revoked.",
            headers={"WWW-Authenticate": 'Bearer realm="effaced", error="invalid_token"'},
        )
    if use_is_due(key):
        _record_use(db, key)
    return Caller(key)


def require_scope(caller: Caller, scopes: tuple[Scope, ...]) -> None:
    """Refuse with 403, and the scopes that would do, a caller that has none of them."""
    if not scopes or any(caller.has(each) for each in scopes):
        return
    named = " or ".join(scopes)
    raise ApiProblem(
        FORBIDDEN,
        f"This API key lacks the scope {named}; `effaced apikey new --scope` gives it to a new one.",
        problems=[Problem("Authorization", f"needs the scope {named}", code="missing_scope")],
        headers={
            "WWW-Authenticate": f'Bearer realm="effaced", error="insufficient_scope", scope="{scopes[0]}"'
        },
    )


def require_operator_for(caller: Caller, changes: Mapping[str, object], *, under: str) -> None:
    """Refuse with 403 if the changes of a retry policy have a field that only operators may set."""
    if caller.has(Scope.OPERATE_WRITE):
        return
    said = f"needs the scope {Scope.OPERATE_WRITE}"
    problems = [
        Problem(f"{under}.{name}", said, code="missing_scope") for name in OPERATORS_ONLY if name in changes
    ]
    if problems:
        raise ApiProblem(
            FORBIDDEN, "Only an operator may decide that a call is made twice.", problems=problems
        )


def _record_use(db: Database, key: ApiKey) -> None:
    try:
        with db.begin() as session:
            record_use(session, key.id)
    except SQLAlchemyError as error:
        # Nice to know, but no reason to turn somebody away who only wants to read.
        _log.warning("use_not_recorded", key=str(key.id), error=type(error).__name__)
