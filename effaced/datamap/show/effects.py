"""What an erasure leaves of a cell, so that two maps can be compared by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from effaced.datamap.model.data_map import ColumnRule, Mention, Strategy, Surrogate, TableRule
from effaced.datamap.model.json_paths import show_path
from effaced.datamap.model.wording import describe_rule


class Strength(IntEnum):
    """How much of a cell is erased."""

    NONE = 0
    PART = 1
    WHOLE = 2


@dataclass(frozen=True, slots=True)
class Cell:
    """`effect` is equal where two rules do the same to a cell; `words` describe it."""

    strength: Strength
    effect: tuple[object, ...]
    words: str
    paths: Mapping[str, Cell] = field(default_factory=dict, compare=False)
    """What becomes of each path in a document."""


UNTOUCHED = Cell(Strength.NONE, (), "left as it is")
# The year of a birthday is a part of it; a hash can be recognised again.
_LEAVE_A_PART = (Surrogate.TRUNCATED_DATE, Surrogate.KEYED_HASH)


def cells_of(table: TableRule) -> dict[str, Cell]:
    """What happens to each column in the person's rows."""
    return _cells(table.columns, row_goes=not table.stays)


def mentioned_cells(mention: Mention) -> dict[str, Cell]:
    """What happens to each column in other people's rows."""
    return _cells(mention.columns, row_goes=False)


def _cells(columns: Mapping[str, ColumnRule], *, row_goes: bool) -> dict[str, Cell]:
    return {name: _cell(rule, row_goes=row_goes) for name, rule in columns.items()}


def _cell(rule: ColumnRule, *, row_goes: bool) -> Cell:
    if row_goes:
        return Cell(Strength.WHOLE, ("row",), "deleted with its row")
    if rule.strategy is Strategy.RETAIN:
        return Cell(Strength.NONE, (Strategy.RETAIN, rule.basis, rule.until, rule.then), describe_rule(rule))
    if not rule.changes:
        return Cell(Strength.NONE, (rule.strategy,), describe_rule(rule))
    if rule.paths:
        paths = {show_path(path): _cell(each, row_goes=False) for path, each in rule.paths}
        inner = frozenset((path, each.effect) for path, each in paths.items())
        return Cell(Strength.PART, (rule.strategy, inner), describe_rule(rule), paths)
    partly = rule.strategy is Strategy.SCRUB or rule.written in _LEAVE_A_PART
    strength = Strength.PART if partly else Strength.WHOLE
    effect = (rule.written, rule.text, rule.to, rule.value, frozenset(rule.names))
    return Cell(strength, effect, describe_rule(rule))
