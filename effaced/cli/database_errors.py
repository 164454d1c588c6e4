"""What a database has against it, as a sentence for the person who can change that."""

from __future__ import annotations

import re

from sqlalchemy.exc import DBAPIError

# The first that fits. PostgreSQL gives a refused connection no code, so words have to do.
_SENTENCES = (
    (
        r"readonly|read-only",
        "The database can't be written: it is read-only for effaced. Nothing was changed.",
    ),
    (
        r"authentication failed|role .* does not exist|no pg_hba\.conf entry",
        "The database refuses the login. Check user and password in EFFACED_DATABASE_URL.",
    ),
    (
        r"database .* does not exist",
        "The server has no database of that name. Check EFFACED_DATABASE_URL.",
    ),
    (
        r"no such table|does not exist",
        "The database lacks a table that effaced needs. Run `effaced migrate`.",
    ),
    (r"lock", "The database is busy: another process holds a lock. Nothing was changed; try again."),
    (
        r"connection|unable to open|resolve host|translate host",
        "The database can't be reached. Check EFFACED_DATABASE_URL and that the server is up.",
    ),
)


def sentence(error: DBAPIError) -> str:
    """Names tables at most, never a value."""
    said = str(error.orig).lower()
    if denied := re.search(r'permission denied(?: for (?:table|schema|sequence|view) [\w."]+)?', said):
        return f"The database user of effaced may not do that: {denied[0]}. Nothing was changed."
    for words, told in _SENTENCES:
        if re.search(words, said):
            return told
    if error.connection_invalidated:
        return _SENTENCES[-1][1]
    return f"The database refused ({type(error.orig).__name__}). Nothing was changed."
