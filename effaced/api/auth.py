"""Who calls: `Authorization: Bearer <API key>`."""

from __future__ import annotations

from collections.abc import Mapping

from flask import request
from sqlalchemy.exc import SQLAlchemyError

from effaced.accounts.api_keys import authenticate, record_use, use_is_due
from effaced.accounts.scopes import Scope, has_scope
from effaced.accounts.tables import ApiKey
from effaced.api.problems import FORBIDDEN, UNAUTHENTICATED, ApiProblem
from effaced.core.db import Database
from effaced.core.errors import Problem
from effaced.core.log import get_logger
from effaced.retries.policy import OPERATORS_ONLY

_log = get_logger(__name__)


def require_key(db: Database, needed: Scope) -> ApiKey:
    """The caller's key. Refuses with 401, and does not tell why a key is no good; 403 names the scope."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise ApiProblem(
            UNAUTHENTICATED,
            "Send the header `Authorization: Bearer <key>`. `effaced apikey new` makes a key.",
            headers={"WWW-Authenticate": 'Bearer realm="effaced"'},
        )
    with db.read() as session:
        key = authenticate(session, token.strip())
    if key is None:
        raise ApiProblem(
            UNAUTHENTICATED,
            "This API key is not known, or was revoked.",
            headers={"WWW-Authenticate": 'Bearer realm="effaced", error="invalid_token"'},
        )
    if use_is_due(key):
        _note_use(db, key)
    if not has_scope(key.scopes, needed):
        raise ApiProblem(
            FORBIDDEN,
            f"This API key lacks the scope {needed}; `effaced apikey new --scope` gives it to a new one.",
            problems=[Problem("Authorization", f"needs the scope {needed}")],
            headers={
                "WWW-Authenticate": f'Bearer realm="effaced", error="insufficient_scope", scope="{needed}"'
            },
        )
    return key


def require_operator_for(key: ApiKey, changes: Mapping[str, object], *, under: str) -> None:
    """Refuse with 403 if the changes of a retry policy have a field that only operators may set."""
    if has_scope(key.scopes, Scope.OPERATE_WRITE):
        return
    said = f"needs the scope {Scope.OPERATE_WRITE}"
    problems = [Problem(f"{under}.{name}", said) for name in OPERATORS_ONLY if name in changes]
    if problems:
        raise ApiProblem(
            FORBIDDEN, "Only an operator may decide that a call is made twice.", problems=problems
        )


def _note_use(db: Database, key: ApiKey) -> None:
    try:
        with db.begin() as session:
            record_use(session, key.id)
    except SQLAlchemyError as error:
        # Nice to know, but no reason to turn somebody away who only wants to read.
        _log.warning("use_not_noted", key=str(key.id), error=type(error).__name__)
