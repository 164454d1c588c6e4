"""What the map says about one column: what happens to it, and what it holds after an erasure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from effaced.datamap.model.last_day import Until


class Strategy(StrEnum):
    """What happens to a column of the person's rows."""

    DELETE = "delete"
    ANONYMISE = "anonymise"
    JSON = "json"
    """Only what is at the named paths of the document changes."""
    SCRUB = "scrub"
    """Only what names the person is taken out of the text."""
    RETAIN = "retain"
    NOT_PERSONAL = "not_personal"
    DERIVED = "derived"
    """The database makes it from other columns, so it changes with them."""
    REVIEW = "review"
    """Nobody has decided yet; until then the map is refused."""


class Surrogate(StrEnum):
    """What an anonymised cell holds afterwards. A cell that is NULL stays NULL."""

    NULL = "null"
    FIXED_TEXT = "fixed_text"
    FIXED = "fixed"
    RANDOM_UNIQUE = "random_unique"
    RANDOM_EMAIL = "random_email"
    RANDOM_NUMBER = "random_number"
    RANDOM_UUID = "random_uuid"
    TRUNCATED_DATE = "truncated_date"
    EMPTY = "empty"
    KEYED_HASH = "keyed_hash"
    """Who has the key can recognise a value again: pseudonymisation, not anonymisation."""


_NEVER_TWICE = (
    Surrogate.RANDOM_UNIQUE,
    Surrogate.RANDOM_EMAIL,
    Surrogate.RANDOM_NUMBER,
    Surrogate.RANDOM_UUID,
)


class DatePart(StrEnum):
    """What is left of a truncated date."""

    YEAR = "year"
    MONTH = "month"


JsonPath = tuple[str | int | None, ...]
"""Steps into a document: a member's name, an element's number, or None for every element."""


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """What the map says about one column, or about one path in a JSON column."""

    strategy: Strategy
    surrogate: Surrogate | None = None
    text: str | None = None
    to: DatePart | None = None
    basis: str | None = None
    until: Until | None = None
    then: ColumnRule | None = None
    """What happens when the retention has ended; set where `until` is."""
    value: str | None = None
    """What `fixed` writes, as it stands in the map; as JSON text if it is for a path."""
    paths: tuple[tuple[JsonPath, ColumnRule], ...] = ()
    names: tuple[str, ...] = ()
    """What `scrub` looks for: identifiers or columns of the subject table; none for all identifiers."""
    reason: str | None = None
    line: int = field(default=0, compare=False)

    @property
    def keeps_row(self) -> bool:
        """Whether the rule makes the row stay."""
        return self.strategy in (Strategy.ANONYMISE, Strategy.JSON, Strategy.SCRUB, Strategy.RETAIN)

    @property
    def changes(self) -> bool:
        """Whether a cell in a row that stays is written to."""
        return self.strategy in (Strategy.DELETE, Strategy.ANONYMISE, Strategy.JSON, Strategy.SCRUB)

    @property
    def decides_row(self) -> bool:
        """Whether the rule helps to decide if the row stays or is deleted."""
        return self.strategy not in (Strategy.NOT_PERSONAL, Strategy.DERIVED)

    @property
    def written(self) -> Surrogate | None:
        """What is written into a cell of a row that stays; `delete` writes NULL there."""
        return Surrogate.NULL if self.strategy is Strategy.DELETE else self.surrogate

    @property
    def word(self) -> str:
        """The map's word for what happens to the cell: the surrogate, or else the strategy."""
        return self.surrogate or self.strategy

    @property
    def can_repeat(self) -> bool:
        """Whether the cells of two people can end up with the same value other than NULL."""
        return self.changes and self.written is not Surrogate.NULL and self.written not in _NEVER_TWICE

    @property
    def pseudonymises(self) -> bool:
        inner = [rule for _, rule in self.paths] + ([self.then] if self.then else [])
        return self.surrogate is Surrogate.KEYED_HASH or any(rule.pseudonymises for rule in inner)

    @property
    def leaf_rules(self) -> tuple[ColumnRule, ...]:
        """The rules of its paths, or, without paths, the rule itself."""
        return tuple(rule for _, rule in self.paths) or (self,)


def canonical_column(rule: ColumnRule) -> list[Any]:
    """What the rule says, in a form for the map's hash."""
    until = str(rule.until) if rule.until else None
    unusual = rule.then is not None and rule.then != ColumnRule(Strategy.DELETE)
    then = [canonical_column(rule.then)] if rule.then and unusual else []
    optional = {
        "value": rule.value,
        "paths": sorted([json.dumps(path), canonical_column(each)] for path, each in rule.paths),
        "names": sorted(rule.names),
        "reason": rule.reason,
    }
    stated = {name: each for name, each in optional.items() if each not in (None, [])}
    # Left out where there is none, or the usual, so that a map from before them keeps its hash.
    rest = [*then, *([stated] if stated else [])]
    return [rule.strategy, rule.surrogate, rule.text, rule.to, rule.basis, until, *rest]
