"""What stands in the path and the query of a call, checked; a wrong one is refused by its name."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from werkzeug.datastructures import MultiDict

from effaced.core.errors import NotFound, Problem, Refused
from effaced.core.paging import PAGE
from effaced.deadletters.arguments import as_uuid
from effaced.deadletters.read import DeadLetterFilter
from effaced.deadletters.rules import OPEN, Sla
from effaced.model import DeadLetterDomain, DeadLetterStatus

E = TypeVar("E", bound=StrEnum)
Arguments = MultiDict[str, str]
MOST = 500
_LONGEST = 255
_MOST_PROBLEMS = 20
_FILTER = (
    "status", "domain", "resolver", "error", "code", "request_id", "assigned_to", "unassigned", "late",
    "expired",
)  # fmt: skip


def path_id(name: str, what: str) -> UUID:
    """The id in the path; what is none belongs to nothing."""
    known = as_uuid(name)
    if known is None:
        raise NotFound(f"There is no such {what}.")
    return known


def only(given: Mapping[str, str], *known: str) -> None:
    """Refuses arguments that would be ignored: a mistyped filter is none, and takes in everything."""
    if strangers := sorted(set(given) - set(known)):
        said = f"is not known; {', '.join(known)} are"
        problems = [Problem(_shown(each), said) for each in strangers[:_MOST_PROBLEMS]]
        raise Refused("The query has an unknown argument.", problems=problems)


def limit_of(given: Mapping[str, str]) -> int:
    return number_of(given, "limit", 1, MOST, PAGE)


def number_of(given: Mapping[str, str], name: str, least: int, most: int, default: int | None = None) -> int:
    """A whole number; without a default it has to be there."""
    value = given.get(name, "")
    if not value and default is not None:
        return default
    if not (value.isascii() and value.isdigit() and len(value) <= 9 and least <= int(value) <= most):
        raise _wrong(name, f"must be a number from {least} to {most}")
    return int(value)


def word_of(given: Arguments, name: str, words: type[E]) -> E | None:
    """One of these words, or nothing."""
    return next(iter(_words(given.getlist(name)[:1], name, words)), None)


def letter_filter(given: Arguments, sla: Sla, *, paging: bool = False) -> DeadLetterFilter:
    """Which dead letters a call is about. Without `status` those that are open; `all` takes every one."""
    only(given, *_FILTER, *(("after", "limit") if paging else ()))
    words = given.getlist("status")
    return DeadLetterFilter(
        statuses=() if "all" in words else _words(words, "status", DeadLetterStatus) or OPEN,
        domain=word_of(given, "domain", DeadLetterDomain),
        resolver=_text(given, "resolver"),
        error=_text(given, "error"),
        code=_text(given, "code"),
        request_id=_id(given, "request_id"),
        assigned_to=_id(given, "assigned_to"),
        unassigned=_flag(given, "unassigned"),
        late=_flag(given, "late"),
        expired=_flag(given, "expired"),
        sla=sla,
    )


def _words(values: list[str], name: str, words: type[E]) -> tuple[E, ...]:
    if set(values) - set(words):
        raise _wrong(name, f"must be one of {', '.join(words)}")
    return tuple(words(each) for each in dict.fromkeys(values))


def _text(given: Mapping[str, str], name: str) -> str | None:
    value = given.get(name) or None
    if value is not None and (len(value) > _LONGEST or not value.isprintable()):
        raise _wrong(name, f"must have at most {_LONGEST} printable characters")
    return value


def _id(given: Mapping[str, str], name: str) -> UUID | None:
    if not given.get(name):
        return None
    known = as_uuid(given[name])
    if known is None:
        raise _wrong(name, "must be an id")
    return known


def _flag(given: Mapping[str, str], name: str) -> bool:
    value = given.get(name, "")
    if value not in ("", "true", "false"):
        raise _wrong(name, "must be true or false")
    return value == "true"


def _wrong(name: str, said: str) -> Refused:
    return Refused(f"The argument {name} {said}.", problems=[Problem(name, said)])


def _shown(name: str) -> str:
    return name if len(name) <= 64 and name.isidentifier() else "(unprintable)"
