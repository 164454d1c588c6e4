"""What a data map says, in words: the same on the command line, in the picture and in the console."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from effaced.core import clock
from effaced.datamap.model.data_map import Action, ColumnRule, DataMap, Link, Strategy, TableRule
from effaced.datamap.model.json_paths import show_path
from effaced.datamap.model.last_day import Until

ROW_ACTIONS = {
    Action.DELETED: "deleted",
    Action.ANONYMISED: "anonymised",
    Action.PSEUDONYMISED: "pseudonymised",
    Action.RETAINED: "retained",
    Action.DETACHED: "detached",
}
"""What happens to rows. `detached`: they are somebody else's, and stop mentioning the person."""

ONLY_MENTIONS = "not a person's"


@dataclass(frozen=True, slots=True)
class Treatment:
    """Columns of one table that are treated alike: the strategy's word, and the details in brackets."""

    strategy: Strategy
    word: str
    detail: str
    columns: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"{self.word} ({self.detail})" if self.detail else self.word


def group_by_treatment(columns: Mapping[str, ColumnRule]) -> list[Treatment]:
    """The columns grouped by what happens to them, in the order of the strategies."""
    found: dict[tuple[int, str, str], list[str]] = {}
    for name, rule in columns.items():
        key = (list(Strategy).index(rule.strategy), _word(rule), _detail(rule))
        found.setdefault(key, []).append(name)
    return [
        Treatment(list(Strategy)[place], word, detail, tuple(names))
        for (place, word, detail), names in sorted(found.items())
    ]


def describe_rule(rule: ColumnRule) -> str:
    """`anonymise (truncated_date to year)`, `retain (tax law; until 2031-12-31; then delete)`, `delete`."""
    return f"{_word(rule)} ({detail})" if (detail := _detail(rule)) else _word(rule)


def _word(rule: ColumnRule) -> str:
    # A keyed hash is no anonymisation, and is not to be read as one.
    return "pseudonymise" if rule.surrogate and rule.pseudonymises else rule.strategy.replace("_", " ")


def _detail(rule: ColumnRule) -> str:
    if rule.surrogate:
        written = rule.text if rule.text is not None else rule.value
        more = f" '{written}'" if written is not None else f" to {rule.to}" if rule.to else ""
        return f"{rule.surrogate}{more}"
    if rule.strategy is Strategy.SCRUB:
        return ", ".join(rule.names) or "all identifiers"
    if rule.paths:
        return "; ".join(f"{show_path(path)}: {describe_rule(each)}" for path, each in rule.paths)
    return rule.reason or f"{rule.basis or ''}{_end(rule)}"


def _end(rule: ColumnRule) -> str:
    if rule.until is None or rule.then is None:
        return ""
    over = ", which is over" if is_over(rule.until) else ""
    return f"; until {rule.until}{over}; then {describe_rule(rule.then)}"


def is_over(until: Until) -> bool:
    """Whether the retention has ended for every row. One that is counted row by row never has."""
    return until.day is not None and until.day < clock.now().date()


def describe_rows(rule: TableRule) -> str:
    """What happens to the person's rows of a table, or that it has no rows of people."""
    return ROW_ACTIONS[rule.action] if rule.owned else ONLY_MENTIONS


def pairs(link: Link) -> str:
    """`customer_id = id`: the table's own column first."""
    return ", ".join(f"{own} = {other}" for own, other in link.on)


def conditions(link: Link) -> list[str]:
    """The link's conditions besides its pairs of columns."""
    parts = [f"{column} is {_any_of(values)}" for column, values in link.where]
    return [*parts, *(["compared as texts"] if link.as_text else [])]


def describe_link(link: Link) -> str:
    """One link as part of a sentence: `to customers by owner_id = id, where owner_type is Customer`."""
    where = f", where {' and '.join(conditions(link))}" if conditions(link) else ""
    if link.back:
        return f"from {link.to} by {pairs(link)}, unless somebody else's row points at it too{where}"
    return f"to {link.to} by {pairs(link)}{where}"


def describe_people(data_map: DataMap, table: str) -> str:
    """`the people: customer` for a subject table; an empty text for any other."""
    kinds = [each.name for each in data_map.people if each.table == table]
    named = [name for name in kinds if name != table]
    return f"the people: {', '.join(named)}" if named else "the people" if kinds else ""


def describe_links(data_map: DataMap, rule: TableRule) -> list[str]:
    """How rows of a table belong to a person, one line per way."""
    keys = [
        f"one row per {'person' if each.name == each.table else each.name}, named by {', '.join(each.key)}"
        for each in data_map.people
        if each.table == rule.name
    ]
    mentions = (f"{describe_link(each.link)}; {describe_columns(each.columns)}" for each in rule.mentions)
    return [*keys, *map(describe_link, rule.links), *(f"mentions people: {each}" for each in mentions)]


def describe_columns(columns: Mapping[str, ColumnRule]) -> str:
    """`referred_by: anonymise (null)`."""
    return "; ".join(f"{', '.join(each.columns)}: {each.words}" for each in group_by_treatment(columns))


def _any_of(values: Iterable[object]) -> str:
    return " or ".join("empty" if value is None else str(value) for value in values)
