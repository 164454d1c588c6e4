"""What is retained of a person, until when, and the statements that end a retention.

Made once from the erasure's plan. A row is deleted when all its retained cells have come due and nothing
else keeps it; a row that stays gets the `then` of each cell that has. A row that another one still points at
has to wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import (
    ColumnElement,
    Date,
    Delete,
    FromClause,
    Select,
    Update,
    and_,
    bindparam,
    case,
    exists,
    false,
    func,
    literal_column,
    not_,
    null,
    or_,
    select,
    true,
    type_coerce,
)
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.datamap.compile.batches import batch_statement
from effaced.datamap.compile.last_day_sql import last_day
from effaced.datamap.compile.order import find_order
from effaced.datamap.compile.ownership import Ownership
from effaced.datamap.compile.retention_groups import (
    after_retention,
    ending_columns,
    ends_at_once,
    is_findable,
    map_after_retention,
)
from effaced.datamap.model.data_map import Action, DataMap, Link, Retained, TableRule
from effaced.datamap.model.last_day import Until
from effaced.datamap.plan.erasure import ErasurePlan, current_plan
from effaced.datamap.surrogates.expressions import replacement, still_personal

TODAY = "effaced_today"
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What is still there of one person in one table. `undated` rows have an end that can't be computed."""

    table: str
    rows: int
    undated: int
    first_due: date | None
    """The first day on which some of it need not be kept any more."""
    by_rule: Mapping[str, date] = field(default_factory=dict)
    """The same for each `until`, by its text."""


@dataclass(frozen=True, slots=True)
class DueRows:
    """How many rows of one table are to be deleted or changed now, or wait for rows that point at them."""

    deleted: int = 0
    changed: int = 0
    waiting: int = 0

    @property
    def rows(self) -> int:
        return self.deleted + self.changed


@dataclass(frozen=True, slots=True)
class TableRetention:
    """A table that retains something, and its statements. They take the person's key, and `TODAY`.

    Those that change something change as many rows as `batches.limited_to` says. Of rows that point at each
    other the last ones go first, so one of them may be needed several times.
    """

    table: str
    retained: tuple[Retained, ...]
    untils: tuple[Until, ...]
    count_kept: Select[*tuple[Any, ...]]
    count_due: Select[*tuple[Any, ...]]
    delete: Delete | Update | None
    change: Delete | Update | None

    def read_counts(self, row: Sequence[Any]) -> KeptRows:
        """The counts in a row of `count_kept`."""
        rows, undated, *days = row
        ends = [day for day in days if day is not None]
        firsts = {str(until): _day_after(day) for until, day in zip(self.untils, days, strict=False) if day}
        return KeptRows(self.table, rows, undated, _day_after(min(ends)) if ends else None, firsts)


@dataclass(frozen=True)
class RetentionPlan:
    """The tables that retain something under the map in force, children before parents."""

    plan: ErasurePlan
    zone: ZoneInfo
    tables: Mapping[str, TableRetention]
    others: Mapping[str, RetentionPlan] = field(default_factory=dict)
    """The plans for the map's other kinds of people, by their names."""

    def for_people(self, people: str | None) -> RetentionPlan:
        """The plan for this kind of people; None means the map's first."""
        mine = self.plan.for_people(people)
        return self if mine is self.plan else self.others[mine.data_map.people[0].name]

    @property
    def data_map(self) -> DataMap:
        return self.plan.data_map

    @property
    def today(self) -> date:
        return clock.now().astimezone(self.zone).date()

    @cached_property
    def count_reused_key(self) -> Select[int] | None:
        """Counts the person's own rows that an erasure would change, None if it changes none.

        If there are any, somebody has that key again.
        """
        step = next(
            each
            for each in self.plan.reported_steps
            if each.name == self.data_map.subject and each.action is not Action.DETACHED
        )
        return step.count_affected if step.change is not None else None


def plan_retention(plan: ErasurePlan, zone: ZoneInfo) -> RetentionPlan:
    """For the map's first kind of people, with the plans for the others in it."""
    statements, data_map = _Statements(plan, zone), plan.data_map
    order = find_order(plan.schema, map_after_retention(data_map))
    tables = [statement.table for statement in order.statements if statement.is_main]
    names = [each for each in tables if data_map.tables[each].retained and is_findable(data_map, each)]
    keeps = {name: statements.for_table(name) for name in names}
    others = {name: plan_retention(each, zone) for name, each in plan.others.items()}
    return RetentionPlan(plan, zone, keeps, others)


def current_retention(session: Session, plan: RetentionPlan) -> RetentionPlan:
    """The same plan while it fits the schema that this transaction sees, else a new one: `current_plan`."""
    current = current_plan(session, plan.plan)
    return plan if current is plan.plan else plan_retention(current, plan.zone)


@dataclass(frozen=True, slots=True)
class _Statements:
    plan: ErasurePlan
    zone: ZoneInfo

    def for_table(self, name: str) -> TableRetention:
        """The statements that count, delete and change what is retained in this table."""
        rule, schema = self.plan.data_map.tables[name], self.plan.schema
        table, dialect, theirs = schema.table(name), schema.dialect, self.plan.rows_of_person(name)
        untils = tuple(dict.fromkeys(each.until for each in ending_columns(rule).values() if each.until))
        writes = {
            table.c[column]: (self._due(table, each.until), each.then)
            for column, each in ending_columns(rule).items()
            if each.until and each.then
        }
        over = {c: and_(due, still_personal(c, then, dialect)) for c, (due, then) in writes.items()}
        whole = self._all_due(name, table)
        changes = and_(or_(false(), *over.values()), not_(whole))
        values = {
            c: case((over[c], replacement(c, then, dialect)), else_=c) for c, (_, then) in writes.items()
        }
        partly = bool(writes) and not (self._may_go(name) and ends_at_once(rule))
        return TableRetention(
            table=name,
            retained=rule.retained,
            untils=untils,
            count_kept=self._look(rule, table, untils).where(theirs),
            count_due=self._counted(name, table, changes),
            delete=batch_statement(schema, name, and_(theirs, self._goes(name, table, strictly=True)), {})
            if self._may_go(name)
            else None,
            change=batch_statement(schema, name, and_(theirs, changes), values) if partly else None,
        )

    def _look(self, rule: TableRule, table: FromClause, untils: Sequence[Until]) -> Select[*tuple[Any, ...]]:
        """Rows, rows without a known end, the earliest end by each rule, and the earliest of whole rows."""
        dialect, goes = self.plan.schema.dialect, self._may_go(rule.name)
        ends = {until: last_day(table, until, dialect, self.zone) for until in untils}
        held = {
            until: or_(
                *(
                    still_personal(table.c[name], each.then, dialect)
                    for name, each in ending_columns(rule).items()
                    if each.until == until and each.then
                )
            )
            for until in untils
        }
        endless = [table.c[each.column].is_not(None) for each in rule.retained if each.until is None]
        kept = true() if goes else or_(false(), *held.values(), *endless)
        unknown = [
            ends[until].is_(None) if goes else and_(held[until], ends[until].is_(None)) for until in untils
        ]
        earliest = [func.min(case((held[until], ends[until]))) for until in untils]
        if goes:
            latest = ends[untils[0]] if len(untils) == 1 else _latest(list(ends.values()), dialect)
            earliest.append(func.min(latest))
        return select(
            func.count(case((kept, 1))),
            func.count(case((or_(false(), *unknown), 1))),
            *(type_coerce(each, Date()) for each in earliest),
        ).select_from(table)

    def _counted(
        self, name: str, table: FromClause, changes: ColumnElement[bool]
    ) -> Select[*tuple[Any, ...]]:
        """Rows to delete, rows to change, and rows that have come due and must wait."""
        whole = self._all_due(name, table)
        free = and_(true(), *self._not_held(name, table)) if self._may_go(name) else false()
        # OFFSET keeps PostgreSQL from working each of them out again wherever it is spoken of.
        cells = {"whole": whole, "free": case((whole, free), else_=false()), "changes": changes}
        rows = select(*(each.label(word) for word, each in cells.items())).where(
            self.plan.rows_of_person(name)
        )
        seen = rows.offset(0).subquery()
        waits = and_(seen.c.whole, not_(seen.c.free))
        return select(*(func.count(case((each, 1))) for each in (seen.c.free, seen.c.changes, waits)))

    def _may_go(self, name: str) -> bool:
        """Whether rows of the table are deleted once everything in them has come due."""
        rule = self.plan.data_map.tables.get(name)
        return rule is not None and rule.stays and after_retention(rule).action is Action.DELETED

    def _due(self, rows: FromClause, until: Until | None) -> ColumnElement[bool]:
        """Whether the day has passed. Never NULL, so that it can be negated."""
        assert until is not None
        end = last_day(rows, until, self.plan.schema.dialect, self.zone)
        return func.coalesce(end < bindparam(TODAY, type_=Date()), false())

    def _all_due(self, name: str, rows: FromClause) -> ColumnElement[bool]:
        if not self._may_go(name):
            return false()
        rules = ending_columns(self.plan.data_map.tables[name]).values()
        return and_(*(self._due(rows, until) for until in dict.fromkeys(each.until for each in rules)))

    def _goes(
        self, name: str, rows: FromClause, trail: tuple[str, ...] = (), *, strictly: bool = False
    ) -> ColumnElement[bool]:
        """Due as a whole, with no pointer from a row that stays; `strictly`: with no pointer at all."""
        if not self._may_go(name):
            return false()
        return and_(self._all_due(name, rows), *self._not_held(name, rows, trail, strictly=strictly))

    def _not_held(
        self, name: str, rows: FromClause, trail: tuple[str, ...] = (), *, strictly: bool = False
    ) -> Iterator[ColumnElement[bool]]:
        for child, link, pairs in self._pointing(name):
            other = self.plan.schema.table(child).alias()
            if link is None:
                points = [other.c[own] == rows.c[target] for own, target in pairs]
            else:
                points = [self._belonging.points(other, child, link, rows)]
            if child == name:
                points.append(or_(*(other.c[target] != rows.c[target] for _, target in pairs)))
            if child not in (name, *trail) and not strictly:
                points.append(not_(self._goes(child, other, (*trail, name))))
            held = exists(select(literal_column("1")).select_from(other).where(*points).correlate(rows))
            yield not_(held)

    @property
    def _belonging(self) -> Ownership:
        return Ownership(self.plan.schema, self.plan.data_map, self.plan.key)

    def _pointing(self, name: str) -> list[tuple[str, Link | None, Pairs]]:
        """The tables with a link or foreign key to the table, and the (own, other) columns of each."""
        tables = self.plan.data_map.tables
        found: list[tuple[str, Link | None, Pairs]] = []
        for table in tables.values():
            found += [
                (table.name, each, each.on) for each in table.links if each.to == name and not each.back
            ]
        for link in tables[name].links:
            if link.back:
                found.append((link.to, None, tuple((other, own) for own, other in link.on)))
        found += [(key.table, None, key.on) for key in self.plan.schema.foreign_keys if key.to == name]
        return list(dict.fromkeys(found))


def _latest(ends: Sequence[ColumnElement[date]], dialect: str) -> ColumnElement[Any]:
    largest = (func.max if dialect == "sqlite" else func.greatest)(*ends)
    return case((or_(*(end.is_(None) for end in ends)), null()), else_=largest)


def _day_after(day: date) -> date:
    return day + timedelta(days=1)
