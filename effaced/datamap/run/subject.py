"""The person a request is about: how people and external systems know them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Select, TableClause, select, type_coerce, types
from sqlalchemy.orm import Session

from effaced.core.db.pipeline import run_statement
from effaced.datamap.compile.key import cell_as_text, join_id
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.surrogates.expressions import is_surrogate

# By the table of a plan, which no other plan has.
_queries: WeakKeyDictionary[TableClause, Select[*tuple[Any, ...]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Subject:
    """One person, read once. Everything here is personal data, so its repr shows nothing of it."""

    subject_id: str = field(repr=False)
    identifiers: dict[str, str] = field(repr=False)
    refs: dict[str, str] = field(repr=False)


def find_subject(session: Session, plan: ErasurePlan, subject_id: str) -> Subject | None:
    """The person with that key, or None. One SELECT.

    The `subject_id` in the answer is spelled as the database has it, so that one person always has one.
    Identifiers and refs whose columns are NULL, empty or erased already are left out.
    """
    values = plan.key.values(subject_id)
    if values is None:
        return None
    found = run_statement(session, subject_query(plan), values)
    return read_subject(plan, found.rows[0] if found.rows else None)


def subject_query(plan: ErasurePlan) -> Select[*tuple[Any, ...]]:
    """The person's cells that `read_subject` wants; the key's values are the parameters."""
    # Kept, so that it is compiled once.
    if plan.subject not in _queries:
        _queries[plan.subject] = _subject_query(plan)
    return _queries[plan.subject]


def _subject_query(plan: ErasurePlan) -> Select[*tuple[Any, ...]]:
    table, data_map = plan.subject, plan.data_map
    # As the driver gives it: a text in a column of unknown type must not be taken for a number.
    columns = [type_coerce(table.c[name], types.NullType()).label(None) for name in _names(data_map)]
    return select(*columns).where(*(table.c[name] == plan.key.parameter(name) for name in data_map.key))


def read_subject(plan: ErasurePlan, row: Sequence[Any] | None) -> Subject | None:
    """The person in a row of `subject_query`."""
    if row is None:
        return None
    data_map = plan.data_map
    cells = {name: cell_as_text(value) for name, value in zip(_names(data_map), row, strict=True)}
    cells |= {name: text.rstrip(" ") for name, text in cells.items() if text and plan.is_padded(name)}
    subject_id = join_id(cells[name] for name in data_map.key)
    rules = data_map.tables[data_map.subject].columns
    cells |= {name: None for name, text in cells.items() if text and is_surrogate(text, rules[name])}
    refs = {rule.kind: rule.fill(cells) for rule in data_map.refs}
    return Subject(
        subject_id=subject_id,
        identifiers={rule.kind: cell for rule in data_map.identifiers if (cell := cells[rule.column])},
        refs={kind: ref for kind, ref in refs.items() if ref},
    )


def _names(data_map: DataMap) -> list[str]:
    names = dict.fromkeys(data_map.key)
    names |= dict.fromkeys(rule.column for rule in data_map.identifiers)
    names |= dict.fromkeys(column for rule in data_map.refs for column in rule.columns)
    return list(names)
