"""Pointers that no name tells of: numbers of invoices, cards or receipts that are found in another table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from effaced.datamap.schema.tables import LiveColumn, LiveSchema, LiveTable
from effaced.datamap.vocabulary.names import concept_in
from effaced.draft.find_pointers import SURE, comparable
from effaced.draft.roles import by_values_alone
from effaced.draft.samples import Samples, is_random
from effaced.draft.sketch import Edge

# Fewer different values, or shorter ones, may meet by chance.
_VALUES, _LENGTH = 5, 5
# Somebody's name too: `kunde` may hold a customer's number.
_MAY_BE_A_NUMBER = {"number", "state", "name", "full_name"}


def find_by_value(schema: LiveSchema, samples: Samples, known: Iterable[Edge]) -> Iterator[Edge]:
    """Texts that hold nothing but what another table tells its rows apart by."""
    known = list(known)
    bound = {(edge.table, name) for edge in known for name in edge.columns}
    joined = {(edge.table, edge.to) for edge in known}
    targets = [
        (table, column)
        for table in schema.tables.values()
        for column in table.columns.values()
        if table.determines([column.name]) and _distinctive(samples, table, column)
    ]
    for table in schema.tables.values():
        for column in table.columns.values():
            free = (table.name, column.name) not in bound and not table.determines([column.name])
            if free and _distinctive(samples, table, column):
                ends = [pair for pair in targets if (table.name, pair[0].name) not in joined]
                yield from _edges(samples, table, column, ends)


def _edges(
    samples: Samples, table: LiveTable, column: LiveColumn, targets: list[tuple[LiveTable, LiveColumn]]
) -> Iterator[Edge]:
    mine = set(samples.values(table.name, column.name))
    found = []
    for target, other in targets:
        if target is table or not comparable(column, other):
            continue
        if mine.isdisjoint(samples.values(target.name, other.name)):
            continue
        share = samples.share(table.name, target.name, ((column.name, other.name),))
        if share and share.part >= SURE:
            found.append((target, other, share))
    if len(found) != 1:
        return
    target, other, share = found[0]
    reason = f"holds values of {target.name}.{other.name}, {share}"
    edge = Edge(table.name, target.name, ((column.name, other.name),), reason)
    yield edge if is_random(list(mine)) else replace(edge, doubt=by_values_alone(edge))


def _distinctive(samples: Samples, table: LiveTable, column: LiveColumn) -> bool:
    """Whether it holds texts such as RE24-0001: long enough, each with a digit, and with no other meaning."""
    if column.family != "text" or column.generated:
        return False
    concept = concept_in(table, column)
    if concept is not None and concept.word not in _MAY_BE_A_NUMBER:
        return False
    values = [value for value in samples.values(table.name, column.name) if value != ""]
    return len(set(values)) >= _VALUES and all(_is_numbered(value) for value in values)


def _is_numbered(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= _LENGTH and bool(re.search(r"\d", value))
