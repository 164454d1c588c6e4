"""Who calls: `Authorization: Bearer <API key>`."""

from __future__ import annotations

from flask import request
from sqlalchemy.exc import SQLAlchemyError

from effaced.accounts.api_keys import authenticate, note_use, use_is_due
from effaced.accounts.tables import ApiKey
from effaced.api.problems import UNAUTHENTICATED, ApiProblem
from effaced.db import Database
from effaced.log import get_logger

_log = get_logger(__name__)


def require_key(db: Database) -> ApiKey:
    """The caller's key. Refuses with 401; why a key is no good is not told."""
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
    return key


def _note_use(db: Database, key: ApiKey) -> None:
    try:
        with db.begin() as session:
            note_use(session, key.id)
    except SQLAlchemyError as error:
        # Nice to know, but no reason to turn somebody away who only wants to read.
        _log.warning("use_not_noted", key=str(key.id), error=type(error).__name__)
