"""Keyset paging: a page ends at a row, and the next one begins after it.

Rows that come and go shift nothing, and the thousandth page costs as much as the first. Links carry an opaque
token: the sort key of the last row.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, literal, select, tuple_
from sqlalchemy.orm import Session

from effaced.core.errors import Problem, Refused

T = TypeVar("T")
Key = tuple[datetime | date | UUID | int | str, ...]
PAGE = 50
# Counting a million rows for a badge helps nobody; past this a count reads "10,000+".
COUNT_CAP = 10_000
# A sort key is a few dates, ids and names of at most 255 characters.
_LONGEST_TOKEN = 8_000
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

_WRITE = {
    datetime: ("t", datetime.isoformat),
    date: ("d", date.isoformat),
    UUID: ("u", str),
    int: ("i", int),
    str: ("s", str),
}
_READ: dict[str, tuple[type, Any]] = {
    "t": (datetime, datetime.fromisoformat),
    "d": (date, date.fromisoformat),
    "u": (UUID, UUID),
    "i": (int, int),
    "s": (str, str),
}


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows, and the token of the page after them (none at the end)."""

    items: tuple[T, ...]
    next: str | None = None


def encode(key: Key) -> str:
    """A sort key as a token for a URL."""
    parts = [[_WRITE[type(value)][0], _WRITE[type(value)][1](value)] for value in key]  # type: ignore[operator]
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).rstrip(b"=").decode()


def decode(token: str, *kinds: type) -> Key:
    """The sort key of a token; refuses what is not a token of a list sorted by these kinds."""
    try:
        if len(token) > _LONGEST_TOKEN:
            raise ValueError
        parts = json.loads(base64.urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4)))
        key = tuple(_READ[kind][1](value) for kind, value in parts)
        fits = [_READ[kind][0] for kind, _ in parts] == list(kinds) and all(map(_storable, key))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        fits, key = False, ()
    if not fits:
        problem = Problem("after", "is not the start of a page of this list", code="malformed")
        raise Refused("This page can't be found. Start again at the top of the list.", problems=[problem])
    return key


def _storable(value: object) -> bool:
    """Whether a database could hold it; anybody can write a token."""
    if isinstance(value, datetime):
        return value.tzinfo is not None and 1 < value.astimezone(UTC).year < 9999
    if isinstance(value, int):
        return abs(value) < 2**63
    # Python reads lone surrogates from JSON, and can't write them.
    return not isinstance(value, str) or not _UNSTORABLE.search(value)


def after_key(columns: Sequence[Any], key: Key, *, descending: bool = False) -> ColumnElement[bool]:
    """The condition for rows after `key`. Both databases answer it from an index on `columns`."""
    here = tuple_(*columns)
    there = tuple_(*(literal(value, column.type) for value, column in zip(key, columns, strict=True)))
    return here < there if descending else here > there


def page_of(rows: Sequence[T], limit: int, keys: Sequence[Key]) -> Page[T]:
    """A page of the first `limit` rows of a query that asked for one more."""
    more = len(rows) > limit
    return Page(tuple(rows[:limit]), encode(keys[limit - 1]) if more else None)


def count_up_to(session: Session, query: Select[Any], cap: int = COUNT_CAP) -> int:
    """How many rows a query has; one more than `cap` stands for "more than that"."""
    return session.scalar(select(func.count()).select_from(query.limit(cap + 1).subquery())) or 0
