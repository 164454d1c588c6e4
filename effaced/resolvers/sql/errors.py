"""What an error of another database means for an entry.

A database's message quotes rows and values, so none of it is kept: only its code is. One thing has no code,
a refusal at the door; that is told by the words of PostgreSQL's own message, in English.
"""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft

from effaced.core.db import error_code
from effaced.core.errors import ConfigurationError, NotFound, Refused, ResolverError
from effaced.datamap.plan.erasure import MissingRights
from effaced.datamap.run.erase import DatabaseRefusal
from effaced.datamap.schema.fingerprint import SchemaChanged
from effaced.resolvers.protocols import (
    CallTimeout,
    CredentialsRefused,
    Rejected,
    TransientFailure,
    Unreachable,
)

_AT_THE_DOOR = (
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "pg_hba.conf rejects",
    "not permitted to log in",
    "permission denied for database",
)
_MISSING_RIGHT = "sqlstate_42501"
_NOT_ALLOWED = ("sqlstate_28", _MISSING_RIGHT, "sqlite_readonly", "sqlite_auth", "sqlite_perm")
_OUT_OF_TIME = ("sqlstate_57014", "sqlstate_55P03", "sqlite_interrupt", "sqlite_busy", "sqlite_locked")
# Deadlocks and the like; a shutdown; no room; a standby that only reads, as during a failover.
_MAY_PASS = ("sqlstate_40", "sqlstate_57", "sqlstate_53", "sqlstate_25006", "sqlstate_58")
_UNREACHABLE = ("sqlstate_08", "sqlite_cantopen", "sqlite_ioerr", "sqlite_full", "sqlite_notadb")
# A table or a column is not what the plan was made for.
_OTHER_SCHEMA = ("sqlstate_42", "sqlstate_3F", "sqlite_error", "sqlite_schema")


def may_be_stale_plan(error: Exception) -> bool:
    """Whether it may come from a plan that is older than the schema."""
    if isinstance(error, DatabaseRefusal):
        return not error.code.startswith(_NOT_ALLOWED + _MAY_PASS)
    code = error_code(error) if isinstance(error, DBAPIError) else ""
    return code.startswith(_OTHER_SCHEMA) and not code.startswith(_NOT_ALLOWED)


def failure_of(error: Exception) -> Exception:
    """The failure that tells it, with a code and no words of the database's own."""
    if isinstance(error, TransientFailure | ResolverError):
        return error
    if isinstance(error, MissingRights):
        return _by_code(_MISSING_RIGHT)
    if isinstance(error, SchemaChanged):
        return TransientFailure("The schema was changed while this was done.", code="schema_changed")
    if isinstance(error, ConfigurationError):
        return Rejected("The map does not fit the database any more.", code="map_does_not_fit")
    if isinstance(error, NotFound):
        return Rejected("The reference can't be a key of the subject table.", code="not_a_key")
    if isinstance(error, Refused):
        return Rejected("A corrected value does not fit its column.", code="unfit_correction")
    if isinstance(error, DatabaseRefusal):
        return _by_code(error.code)
    if isinstance(error, NoConnectionLeft):
        return CallTimeout("No connection was free in time.", code="no_connection_free")
    if isinstance(error, DBAPIError):
        return _by_code(error_code(error)) if error_code(error) else _without_code(error)
    if isinstance(error, SQLAlchemyError):
        return Rejected(f"The call can't be made: {type(error).__name__}.", code=type(error).__name__)
    return error


def _by_code(code: str) -> Exception:
    if code.startswith(_NOT_ALLOWED):
        return CredentialsRefused(f"The database does not let us ({code}).", code=code)
    if code.startswith(_OUT_OF_TIME):
        return CallTimeout(f"The database did not get to it in time ({code}).", code=code)
    if code.startswith(_UNREACHABLE):
        return Unreachable(f"The database can't be reached ({code}).", code=code)
    if code.startswith(_MAY_PASS):
        return TransientFailure(f"The database can't do it now ({code}).", code=code)
    return Rejected(f"The database refuses ({code or 'no code'}).", code=code or "refused")


def _without_code(error: DBAPIError) -> Exception:
    text = str(error.orig)
    role_missing = "role" in text and "does not exist" in text
    if role_missing or any(words in text for words in _AT_THE_DOOR):
        return CredentialsRefused("The database refused our credentials.", code="login_refused")
    name = type(error.orig).__name__
    return Unreachable(f"No answer: {name}.", code=name)
