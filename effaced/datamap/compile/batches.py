"""Deleting and changing a person's many rows in batches, before the erasure itself.

Each batch is a transaction of its own, so no statement runs for minutes and no lock is held that long. Only
steps at the head of the plan qualify, up to the person's own row or the first rows that later steps are
found through: whatever happens in between, the person can still be found, and so can the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile
from typing import Any

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Delete,
    Integer,
    Select,
    Update,
    and_,
    any_,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)

from effaced.datamap.compile.step import Step, safe_update
from effaced.datamap.model.data_map import Action
from effaced.datamap.schema.tables import LiveSchema

_LIMIT = "effaced_limit"


def early_steps(steps: Iterable[Step], needed_later: Collection[str]) -> tuple[Step, ...]:
    """The steps before the first one that changes what later steps find their rows by."""
    head = takewhile(lambda step: step.reported and step.name not in needed_later, steps)
    return tuple(step for step in head if step.action is not Action.RETAINED)


def count_early_rows(schema: LiveSchema, early: Iterable[Step]) -> Select[*tuple[int, ...]] | None:
    """A SELECT of each early step's rows, counted up to the limit; None if there is no such step."""
    counts = [
        select(func.count())
        .select_from(
            select(literal_column("1"))
            .select_from(schema.table(step.name))
            .where(step.owned)
            .limit(_limit())
            .subquery()
        )
        .scalar_subquery()
        for step in early
    ]
    return select(*counts) if counts else None


def batch_statement(
    schema: LiveSchema,
    name: str,
    where: ColumnElement[bool],
    written: Mapping[ColumnClause[Any], ColumnElement[Any]],
) -> Delete | Update:
    """Write to at most as many of these rows as the limit says; delete them if nothing is to be written."""
    table = schema.table(name)
    primary = schema.tables[name].primary
    if schema.dialect != "sqlite":
        # By their place, which costs nothing to find again. A row that has moved waits for the next batch.
        place: ColumnElement[Any] = literal_column("ctid")
        places = select(place).select_from(table).where(where).limit(_limit()).correlate(None)
        rows = place == any_(func.array(places.scalar_subquery()))
        # IS TRUE keeps indexes out of it: a plan for the average person would go through all that the person
        # has left for each batch, and compare each row with every place.
        where = where.is_(true())
    else:
        named: list[ColumnElement[Any]] = [table.c[column] for column in primary]
        cells = named or [literal_column("rowid")]
        some = select(*cells).select_from(table).where(where).limit(_limit()).correlate(None)
        rows = cells[0].in_(some) if len(cells) == 1 else tuple_(*cells).in_(some)
        # SQLite lets NULL into a primary key; such rows are in no list, and few.
        if len(named) > 1 or not all(isinstance(cell.type, Integer) for cell in named):
            rows = or_(rows, *(cell.is_(None) for cell in named))
    # Looked at again: places are a partition's own, and rows may have changed hands.
    rows = and_(rows, where)
    return safe_update(table).where(rows).values(dict(written)) if written else delete(table).where(rows)


def limited_to(rows: int) -> dict[str, int]:
    """The parameter for the limit."""
    return {_LIMIT: rows}


def _limit() -> ColumnElement[int]:
    return bindparam(_LIMIT, type_=Integer())
