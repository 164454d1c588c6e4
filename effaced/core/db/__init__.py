"""Engine, sessions and column types, for PostgreSQL and SQLite alike."""

from effaced.core.db.columns import APPEND_ONLY, CHANGEABLE, OWNER_WRITES, Base, Json, UtcDateTime, Word
from effaced.core.db.engine import (
    Database,
    error_code,
    is_postgres,
    make_engine,
    parse_url,
    sqlite_file,
)

__all__ = [
    "APPEND_ONLY",
    "CHANGEABLE",
    "OWNER_WRITES",
    "Base",
    "Database",
    "Json",
    "UtcDateTime",
    "Word",
    "error_code",
    "is_postgres",
    "make_engine",
    "parse_url",
    "sqlite_file",
]
