"""What the list of dead letters can be narrowed to, each value with its count, and its groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from sqlalchemy.orm import Session

from effaced.console.abandoned.query import ALL, MINE, NOBODY, OPEN, YES, LetterQuery
from effaced.console.current import me
from effaced.console.words import label
from effaced.deadletters.read import (
    DeadLetterFilter,
    DeadLetterGroup,
    DeadLetterLine,
    count_dead_letters,
    facets,
    groups,
    list_dead_letters,
)
from effaced.deadletters.rules import OPEN as OPEN_STATUSES
from effaced.model import DeadLetterDomain, DeadLetterStatus

SHOWN = 6
EXPANDED = 5
_BETWEEN = "|"


@dataclass(frozen=True, slots=True)
class Value:
    """One value: a link to the list it would make, and how long that list is.

    A chosen one that can be taken away again `clears`; of the states there is always one.
    """

    words: str
    count: int
    url: str
    chosen: bool
    clears: bool = False

    @property
    def key(self) -> str:
        """Names the value within its facet, in letters that an id may have."""
        return sha256(self.words.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Facet:
    """A filter with its values; all but the first few are collapsed."""

    name: str
    values: tuple[Value, ...]

    @property
    def first(self) -> tuple[Value, ...]:
        return tuple(each for n, each in enumerate(self.values) if n < SHOWN or each.chosen)

    @property
    def rest(self) -> tuple[Value, ...]:
        return tuple(each for n, each in enumerate(self.values) if n >= SHOWN and not each.chosen)


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group, the first of its letters if it is expanded, and the list of all of them."""

    group: DeadLetterGroup
    query: LetterQuery
    toggle_url: str
    expanded: bool
    rows: tuple[DeadLetterLine, ...] = ()


def facet_rows(session: Session, query: LetterQuery, which: DeadLetterFilter) -> list[Facet]:
    """Each facet counts under all filters but its own, so that another of its values can be chosen."""
    found = facets(session, which)
    return [
        Facet("State", _states(query, found.status)),
        Facet(
            "Where", _facet_values(query, "domain", found.domain, lambda each: label(DeadLetterDomain(each)))
        ),
        Facet("System", _facet_values(query, "resolver", found.resolver, str)),
        Facet("Error", _facet_values(query, "error", found.error, str)),
        Facet("Attention", _marks(session, query, which)),
    ]


def _states(query: LetterQuery, counts: Mapping[str, int]) -> tuple[Value, ...]:
    opened = sum(counts.get(each.value, 0) for each in OPEN_STATUSES)
    values = [
        (OPEN, "Waiting for a person", opened),
        *((each.value, label(each), counts.get(each.value, 0)) for each in DeadLetterStatus),
        (ALL, "Any state", sum(counts.values())),
    ]
    return tuple(
        Value(words, count, replace(query, status=word).url(), query.status == word)
        for word, words, count in values
        if count or word in (OPEN, query.status)
    )


def _facet_values(
    query: LetterQuery, field: str, counts: Mapping[str, int], words: Callable[[str], str]
) -> tuple[Value, ...]:
    """One link per value of the field. The link of the selected value removes the filter."""
    chosen = getattr(query, field)
    known = dict(counts) if not chosen or chosen in counts else {**counts, chosen: 0}
    return tuple(
        Value(
            words(each),
            count,
            replace(query, **{field: "" if each == chosen else each}).url(),
            each == chosen,
            each == chosen,
        )
        for each, count in known.items()
    )


def _marks(session: Session, query: LetterQuery, which: DeadLetterFilter) -> tuple[Value, ...]:
    def value(words: str, narrowed: LetterQuery, cleared: LetterQuery, filter_: DeadLetterFilter) -> Value:
        chosen = narrowed == query
        count = count_dead_letters(session, filter_)
        return Value(words, count, (cleared if chosen else narrowed).url(), chosen, chosen)

    anybody = replace(which, assigned_to=None, unassigned=False)
    expired = value(
        "Past their retention",
        replace(query, expired=YES),
        replace(query, expired=""),
        replace(which, expired=True),
    )
    return (
        value(
            "Waiting too long", replace(query, late=YES), replace(query, late=""), replace(which, late=True)
        ),
        value(
            "Assigned to me",
            replace(query, whose=MINE),
            replace(query, whose=""),
            replace(anybody, assigned_to=me().id),
        ),
        value(
            "Assigned to nobody",
            replace(query, whose=NOBODY),
            replace(query, whose=""),
            replace(anybody, unassigned=True),
        ),
        # Only applications that embed effaced give dead letters an end.
        *([expired] if expired.count or expired.chosen else []),
    )


def group_views(
    session: Session, query: LetterQuery, which: DeadLetterFilter, expand: str
) -> list[GroupView]:
    """The biggest groups; of the one that is expanded, its oldest letters."""
    views = []
    for group in groups(session, which):
        key = _BETWEEN.join((group.domain.value, group.resolver or "", group.failure_type))
        mine = replace(
            query, domain=group.domain.value, resolver=group.resolver or "", error=group.failure_type
        )
        rows = list_dead_letters(session, mine.filter(session), limit=EXPANDED).items if key == expand else ()
        toggle = query.url(expand="" if key == expand else key)
        views.append(GroupView(group, mine, toggle, key == expand, rows))
    return views
