"""Filters that live in the URL: read from it, written back to it, refused by name when they make no sense."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode
from uuid import UUID

from flask import request
from sqlalchemy.orm import Session

from effaced.core.errors import Problem, Refused
from effaced.requests.read import find_by_ref

E = TypeVar("E", bound=StrEnum)


def text_arg(name: str, *, longest: int = 255) -> str | None:
    """A filter's text; an empty one is none."""
    value = request.args.get(name, "").strip()
    if len(value) > longest or not value.isprintable():
        raise not_allowed(name, [f"at most {longest} printable characters"])
    return value or None


def word_arg(name: str, words: type[E]) -> E | None:
    """One of a fixed set of words, or none."""
    value = request.args.get(name, "")
    if not value:
        return None
    try:
        return words(value)
    except ValueError:
        raise not_allowed(name, [word.value for word in words]) from None


def not_allowed(name: str, allowed: Iterable[str]) -> Refused:
    expected = f"expected {', '.join(allowed)}"
    return Refused(
        f"The filter '{name}' has a value that is not allowed.", problems=[Problem(name, expected)]
    )


def request_id_of(session: Session, ref: str) -> UUID | None:
    """The request that a filter names; refuses a ref that nobody has."""
    if not ref:
        return None
    found = find_by_ref(session, ref)
    if found is None:
        raise Refused("No request has this ref.", problems=[Problem("ref", "expected one like ER-2A3B-4C5D")])
    return found.id


def with_query(path: str, values: Mapping[str, str | None]) -> str:
    """The path with those of the values that are set."""
    given = {name: value for name, value in values.items() if value}
    return f"{path}?{urlencode(given)}" if given else path
