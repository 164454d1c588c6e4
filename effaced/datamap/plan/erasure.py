"""The plan of an erasure: one statement per table, in a working order. Made once, used for every person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Connection,
    Delete,
    Select,
    TableClause,
    Update,
    and_,
    delete,
    func,
    null,
    or_,
    select,
    true,
    types,
)
from sqlalchemy.orm import Session

from effaced.core.crypto import Keyring
from effaced.core.errors import ConfigurationError, Problem, Refused
from effaced.core.gc_pause import gc_paused
from effaced.datamap.check.data_map import check
from effaced.datamap.compile.batches import count_early_rows, early_steps
from effaced.datamap.compile.key import KeyColumns
from effaced.datamap.compile.locks import lock_statements
from effaced.datamap.compile.order import Order, Statement
from effaced.datamap.compile.ownership import Ownership
from effaced.datamap.compile.step import Step, safe_update
from effaced.datamap.load.reader import one_of
from effaced.datamap.model.data_map import Action, ColumnRule, DataMap, Strategy, TableRule
from effaced.datamap.schema.fingerprint import (
    Fingerprint,
    SchemaChanged,
    read_fingerprint,
    require_schema,
)
from effaced.datamap.schema.read import read_schema
from effaced.datamap.schema.tables import LiveSchema
from effaced.datamap.surrogates.expressions import still_personal, surrogate
from effaced.datamap.surrogates.shapes import Hashing

_ALL = func.count()


class MissingRights(ConfigurationError):
    """The map fits, but the role that effaced connects as lacks rights, which somebody can grant."""


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """The steps in order, and what else is needed to deal with one person."""

    data_map: DataMap
    steps: tuple[Step, ...]
    subject: TableClause
    key: KeyColumns
    schema: LiveSchema
    count_affected: Select[*tuple[int, ...]]
    """How many rows each reported step would change, in one row."""
    count_remaining: Select[*tuple[int, ...]]
    """The same afterwards: what has not changed, even if nothing points at it any more."""
    locks: Mapping[str, Select[int]]
    """By table, the rows to lock before anything is read; see `lock_statements`."""
    captures: Mapping[str, Select[*tuple[object, ...]]]
    """By captured table, the rows that must be looked up before the first step."""
    early: tuple[Step, ...]
    """The steps whose rows can be changed in batches beforehand."""
    count_early: Select[*tuple[int, ...]] | None
    """Per early step the person's rows, counted up to a limit: see `batches`."""
    count_scrubbed: Select[*tuple[int, ...]] | None = None
    """In how many rows each scrubbed column has something to scrub, in one row; None if there is none."""
    hashing: Hashing | None = None
    """What keyed hashes are made with, if the map has any."""
    fingerprint: Fingerprint | None = None
    """The schema it is for; None if it was made without a database."""
    others: Mapping[str, ErasurePlan] = field(default_factory=dict)
    """The plans for the map's other kinds of people, by their names."""

    def for_people(self, people: str | None) -> ErasurePlan:
        """The plan for this kind of people; None means the map's first."""
        if people is None or people == self.data_map.people[0].name:
            return self
        if people in self.others:
            return self.others[people]
        known = one_of([self.data_map.people[0].name, *self.others])
        raise Refused(
            "The subject is not known.",
            problems=[Problem("subject.type", f"must be {known}", code="not_allowed")],
        )

    def hash_input(self, subject_id: str) -> str:
        """What a person's keyed hash is made from, so that customer 7 is not employee 7.

        The map's first kind of people go by the id alone, as they do where there is no other kind.
        """
        whole = self.data_map.whole
        mine = self.data_map.people[0]
        return subject_id if whole is None or whole.people[0] == mine else f"{mine.name}\x1f{subject_id}"

    @property
    def reported_steps(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.reported)

    def rows_of_person(self, table: str) -> ColumnElement[bool]:
        """Which rows of the table are the person's. The key's values are the statement's parameters."""
        return Ownership(self.schema, self.data_map, self.key).rows(table)

    def is_padded(self, column: str) -> bool:
        """Whether the database pads this column of the subject table with blanks."""
        return self.key.dialect == "postgresql" and isinstance(self.subject.c[column].type, types.CHAR)


def plan_erasure(
    connection: Connection,
    data_map: DataMap,
    keyring: Keyring | None = None,
    *,
    hashing: Hashing | None = None,
) -> ErasurePlan:
    """Plan for this database: for the map's first kind of people, with the plans for the others in it.

    Raises ConfigurationError with every problem if the map does not fit the database. A map with keyed
    hashes needs the keyring, or what else to make them with.
    """
    fingerprint = read_fingerprint(connection, data_map)
    schema = read_schema(connection, data_map.schemas)
    checked = check(connection, schema, data_map)
    if problems := checked.problems:
        count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
        wrong = MissingRights if checked.only_rights else ConfigurationError
        raise wrong(f"The data map does not fit the database; {count}:", problems=problems)
    hashing = hashing or _hashing(data_map, keyring)
    first, *others = (
        replace(plan_for(schema, view, order, hashing), fingerprint=fingerprint)
        for view, order in checked.orders
    )
    return replace(first, others={each.data_map.people[0].name: each for each in others})


def current_plan(session: Session, plan: ErasurePlan) -> ErasurePlan:
    """The same plan while it fits the schema that this transaction sees; else one made anew.

    Raises ConfigurationError with every problem if the map does not fit the schema any more. The schema may
    still change before the erasure: whatever changes rows by a plan asks once more, after its last statement.
    """
    try:
        require_schema(session, plan.fingerprint)
    except SchemaChanged:
        data_map = plan.data_map.whole or plan.data_map
        return plan_erasure(session.connection(), data_map, hashing=plan.hashing)
    return plan


def _hashing(data_map: DataMap, keyring: Keyring | None) -> Hashing | None:
    if not data_map.pseudonymises:
        return None
    if keyring is None:
        raise ConfigurationError("The data map has keyed_hash columns, which need a key (EFFACED_KEYS).")
    return Hashing.under(keyring)


@gc_paused()
def plan_for(
    schema: LiveSchema, data_map: DataMap, order: Order, hashing: Hashing | None = None
) -> ErasurePlan:
    """Plan for one kind of people, by a map without problems."""
    columns = schema.tables[data_map.subject].columns
    key = KeyColumns(tuple(columns[name] for name in data_map.key), schema.dialect)
    now = Ownership(schema, data_map, key)
    later = Ownership(schema, data_map, key, order.captured) if order.captured else now
    steps = tuple(
        _step(statement, now, later if statement in order.evaluated_late else now)
        for statement in order.statements
    )
    reported = [step for step in steps if step.reported]
    counts = select(*(step.count_affected.scalar_subquery() for step in reported))
    scrubbed = [each.scalar_subquery() for step in reported for each in step.scrubbed.values()]
    left = (
        select(*(step.count_remaining.scalar_subquery() for step in reported)) if order.captured else counts
    )
    captures = {name: now.primary_keys(name) for name in sorted(order.captured)}
    early = early_steps(steps, {data_map.subject, *order.needed_later})
    return ErasurePlan(
        data_map=data_map,
        steps=steps,
        subject=schema.table(data_map.subject),
        key=key,
        schema=schema,
        count_affected=counts,
        count_remaining=left,
        locks=lock_statements(now),
        captures=captures,
        early=early,
        count_early=count_early_rows(schema, early),
        count_scrubbed=select(*scrubbed) if scrubbed else None,
        hashing=hashing,
    )


def _step(statement: Statement, now: Ownership, later: Ownership) -> Step:
    """`now` finds the person's rows before anything has changed, `later` when the step's turn has come."""
    rule, dialect = now.data_map.tables[statement.table], now.schema.dialect
    table = now.schema.table(statement.table)
    action, cells = _effect(statement, rule)
    rules = [(table.c[name], each) for name, each in cells.items()]
    personal = [still_personal(cell, each, dialect) for cell, each in rules]
    written: dict[ColumnClause[Any], ColumnElement[Any]] = {
        cell: surrogate(cell, each, dialect, is_personal)
        for (cell, each), is_personal in zip(rules, personal, strict=True)
    }
    written |= {table.c[name]: null() for name in statement.detaches}
    any_personal = [or_(*personal)] if personal else []
    owned = _rows(statement, now)
    where = and_(owned, *any_personal)
    found = where if later is now else and_(_rows(statement, later), *any_personal)
    affected = _count(table, where)
    return Step(
        statement.table,
        action,
        rule.retained if statement.is_main else (),
        count_affected=affected,
        count_remaining=affected if later is now else _count(table, found),
        change=_change(table, action, found, written),
        owned=owned,
        where=where,
        written=written,
        scrubbed={
            cell.name: _count(table, and_(owned, still_personal(cell, scrubbing, dialect)))
            for cell, each in rules
            if (scrubbing := _scrubbing(each)) is not None
        },
        reported=not statement.detaches,
    )


def _effect(statement: Statement, rule: TableRule) -> tuple[Action, Mapping[str, ColumnRule]]:
    """What the statement does with its rows, and which cells it writes to."""
    if statement.detaches:
        return Action.DETACHED, {}
    if statement.mention >= 0:
        return Action.DETACHED, rule.mentions[statement.mention].columns
    return rule.action, rule.changed if rule.stays else {}


def _change(
    table: TableClause,
    action: Action,
    rows: ColumnElement[bool],
    written: Mapping[ColumnClause[Any], ColumnElement[Any]],
) -> Delete | Update | None:
    if action is Action.DELETED:
        return delete(table).where(rows)
    return safe_update(table).where(rows).values(dict(written)) if written else None


def _rows(statement: Statement, belonging: Ownership) -> ColumnElement[bool]:
    own = belonging.rows(statement.table)
    if statement.mention < 0:
        return own
    link = belonging.data_map.tables[statement.table].mentions[statement.mention].link
    # The person's own rows are the table's own step's.
    return and_(belonging.linked(statement.table, link), own.is_not(true()))


def _count(table: TableClause, rows: ColumnElement[bool]) -> Select[int]:
    return select(_ALL).select_from(table).where(rows)


def _scrubbing(rule: ColumnRule) -> ColumnRule | None:
    """The rule if it scrubs, or the part of it that scrubs paths of a document."""
    if rule.strategy is not Strategy.JSON:
        return rule if rule.strategy is Strategy.SCRUB else None
    paths = tuple(each for each in rule.paths if each[1].strategy is Strategy.SCRUB)
    return replace(rule, paths=paths) if paths else None
