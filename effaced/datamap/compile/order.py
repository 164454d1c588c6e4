"""In which order the statements of an erasure run, and whose rows must be known before the first of them.

Two things bind the order. A row that others point at can go only after they have let go. And rows that are
found through other rows must be dealt with while those still tell whose they are. Where the two stand
against each other, the rows in question are looked up beforehand: their table is `captured`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from effaced.datamap.compile.cycles import strongly_connected
from effaced.datamap.compile.sqlite_actions import self_references_to_clear
from effaced.datamap.model.data_map import DataMap, Link, TableRule
from effaced.datamap.schema.tables import ForeignKey, LiveSchema


class Statement(NamedTuple):
    """One statement: a table's own, one of its mentions, or letting go of pointers that run in a circle."""

    table: str
    mention: int = -1
    let_go: tuple[str, ...] = ()

    @property
    def is_main(self) -> bool:
        return self.mention < 0 and not self.let_go


@dataclass(frozen=True, slots=True)
class Order:
    """The statements in turn; or, if there is no order, the tables whose pointers run in a circle."""

    units: tuple[Statement, ...]
    captured: frozenset[str] = frozenset()
    circle: tuple[str, ...] = ()
    needed_later: frozenset[str] = frozenset()
    """The captured tables, and those through which their rows are found."""
    by_captured: frozenset[Statement] = frozenset()
    """The statements that find rows by captured ones, when their turn has come."""


def find_order(schema: LiveSchema, data_map: DataMap) -> Order:
    """For a map whose links lead somewhere and run in no circle."""
    search = _Search(schema, data_map, letting_go=self_references_to_clear(schema, data_map))
    hopeless: set[str] = set()
    while not hopeless and (stuck := search.attempt()):
        ahead = [{unit.table for unit in stuck}]
        # Circle by circle: to look at everything again for each of them takes long where there are many.
        while ahead:
            edges = search.edges(ahead.pop())
            for circle in edges.circles():
                tables = {unit.table for unit in circle}
                if search.capture(edges, circle) or search.let_go(edges, circle):
                    ahead.append(tables)
                else:
                    hopeless |= tables
    if hopeless:
        return Order((), circle=tuple(sorted(hopeless)))
    return search.order()


def is_direct(data_map: DataMap, link: Link) -> bool:
    """Whether the row holds the subject's key itself, so that nobody else need be looked at."""
    return not link.back and link.to == data_map.subject and sorted(link.targets) == sorted(data_map.key)


def own_columns(data_map: DataMap, table: str) -> set[str]:
    """The columns of a table that tell whose its rows are."""
    columns = set(data_map.key) if table == data_map.subject else set()
    for link in data_map.tables[table].links:
        columns |= {*link.columns, *(column for column, _ in link.where)}
    return columns


def pointers(
    schema: LiveSchema, data_map: DataMap, table: str
) -> Iterator[tuple[str, tuple[tuple[str, str], ...], bool]]:
    """Who can point at rows of a table that is linked `from` others.

    Each as (pointing table, (pointer, own column), whether they are compared as texts). By those links and by
    foreign keys. Rows that are the person's because of this table don't count: they go with it.
    """
    # Those of other kinds of people count, too.
    rule = (data_map.whole or data_map).tables[table]
    found = {
        (link.to, tuple(sorted((other, own) for own, other in link.on)), link.as_text)
        for link in rule.links
        if link.back
    }
    for key in schema.keys_to(table):
        child = data_map.tables.get(key.table)
        follows = child is not None and any(
            link.to == table and not link.back and set(link.on) <= set(key.on) for link in child.links
        )
        if not follows:
            found.add((key.table, tuple(sorted(key.on)), False))
    yield from sorted(found)


def releasing_mentions(rule: TableRule | None, key: ForeignKey) -> Iterator[int]:
    """The mentions by which rows that point at somebody's rows let go of them."""
    for number, mention in enumerate(rule.mentions if rule else ()):
        link = mention.link
        if (
            link.to == key.to
            and not link.where
            and set(link.on) <= set(key.on)
            and mention.nulls(key.columns)
        ):
            yield number


_Waiting = dict[Statement, set[Statement]]
"""Per statement those that have to wait for it."""


@dataclass(frozen=True, slots=True)
class _Edges:
    """Who waits for whom: because the database wants it, and because rows are found that way."""

    hard: _Waiting
    soft: _Waiting

    @property
    def both(self) -> _Waiting:
        return {unit: hard | self.soft[unit] for unit, hard in self.hard.items()}

    def circles(self) -> list[set[Statement]]:
        """Statements that all wait for each other, the first by name first."""
        return sorted((set(each) for each in strongly_connected(self.both)), key=min)


@dataclass
class _Search:
    schema: LiveSchema
    data_map: DataMap
    captured: set[str] = field(default_factory=set)
    letting_go: dict[str, set[str]] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)
    told_by: dict[str, set[str]] = field(default_factory=dict)
    done: list[Statement] = field(default_factory=list)

    def attempt(self) -> list[Statement]:
        """Put the statements in order; what is left over if that can't be done."""
        ways = self.edges(self.data_map.tables).both
        waits = Counter(later for others in ways.values() for later in others)
        self.done = []
        free = [(self._preference(unit), unit) for unit in ways if not waits[unit]]
        heapify(free)
        while free:
            _, unit = heappop(free)
            self.done.append(unit)
            for later in ways[unit]:
                waits[later] -= 1
                if not waits[later]:
                    heappush(free, (self._preference(later), later))
        return [unit for unit in ways if waits[unit]]

    def edges(self, tables: Collection[str]) -> _Edges:
        """Between the statements of these tables."""
        of_table = {name: list(self._units(name)) for name in sorted(tables)}
        hard: _Waiting = {unit: set() for units in of_table.values() for unit in units}
        for name in of_table:
            for key in self.schema.keys_of(name):
                if key.to in of_table:
                    for unit in self._before_pointers_go(key):
                        hard[unit].add(Statement(key.to))
        soft = {
            reader: {
                unit
                for table, columns in self._reads(reader).items()
                for unit in of_table.get(table, ())
                if unit != reader and self._disturbs(unit, columns) and not self._is_of_others(unit, reader)
            }
            for reader in hard
        }
        return _Edges(hard, soft)

    def order(self) -> Order:
        captured, self.captured = self.captured, set()
        found: dict[str, set[str]] = {}
        for name in captured:
            self._read(name, found, set())
        by_captured = [
            unit
            for unit in (self.done if captured else ())
            if not captured.isdisjoint((*self._evaluated(unit), *self._reads(unit)))
        ]
        return Order(
            tuple(self.done),
            frozenset(captured),
            needed_later=frozenset(captured | set(found)),
            by_captured=frozenset(by_captured),
        )

    def capture(self, edges: _Edges, circle: set[Statement]) -> bool:
        """Look up beforehand the rows of a table whose statement would come too late to find them."""
        late = {
            each
            for earlier in circle
            for later in edges.soft[earlier] & circle
            for each in self._helpful(earlier, later)
            if each[1] not in self.captured
        }
        if late:
            self.captured.add(min(late)[1])
        return bool(late)

    def _helpful(self, reader: Statement, later: Statement) -> Iterator[tuple[bool, str]]:
        """Whose rows to look up so that one statement need not wait for another; the better choice first.

        Where rows are found by the primary key of others, knowing those is enough, and they are fewer.
        """
        parent = self.schema.tables[later.table].primary
        for name in self._evaluated(reader):
            for link in self.data_map.tables[name].links:
                if link.to == later.table and not link.back and link.targets == parent:
                    yield False, later.table
            yield True, name

    def let_go(self, edges: _Edges, circle: set[Statement]) -> bool:
        """Empty a pointer first, where rows that all go point at each other in a circle."""
        names = sorted({unit.table for unit in circle})
        for key in sorted((key for name in names for key in self.schema.keys_of(name)), key=str):
            child, parent = Statement(key.table), Statement(key.to)
            goes = child in circle and not self.data_map.tables[key.table].stays
            if not goes or parent not in edges.hard[child] & circle:
                continue
            columns = self.schema.tables[key.table].columns
            column = next((name for name in key.columns if columns[name].nullable), None)
            # One that is let go of already is no help: another pointer of the same rows holds on.
            if column and column not in self.letting_go.setdefault(key.table, set()):
                self.letting_go[key.table].add(column)
                return True
        return False

    def _units(self, name: str) -> Iterator[Statement]:
        rule = self.data_map.tables[name]
        if rule.owned:
            yield Statement(name)
        for number in range(len(rule.mentions)):
            yield Statement(name, number)
        if columns := self.letting_go.get(name):
            yield Statement(name, let_go=tuple(sorted(columns)))

    def _before_pointers_go(self, key: ForeignKey) -> Iterator[Statement]:
        """Those that let go of rows, which then can go themselves."""
        parent, child = self.data_map.tables[key.to], self.data_map.tables[key.table]
        if not any(parent.loses(column) for _, column in key.on):
            return
        for number in releasing_mentions(child, key):
            yield Statement(key.table, number)
        let_go = self.letting_go.get(key.table, set())
        if let_go & set(key.columns):
            yield Statement(key.table, let_go=tuple(sorted(let_go)))
        elif child is parent or not child.owned:
            return
        elif not child.stays or any(child.nulls(column) for column in key.columns):
            yield Statement(key.table)

    def _disturbs(self, unit: Statement, columns: set[str]) -> bool:
        """Whether a statement takes away what another one reads in these columns."""
        rule = self.data_map.tables[unit.table]
        if unit.is_main:
            return not rule.stays or not columns.isdisjoint(rule.changed)
        return not columns.isdisjoint(unit.let_go or rule.mentions[unit.mention].columns)

    def _is_of_others(self, unit: Statement, reader: Statement) -> bool:
        """Whether it empties pointers in the very rows that the other statement leaves out."""
        if not reader.is_main or unit.mention < 0 or unit.table != reader.table:
            return False
        rule = self.data_map.tables[unit.table]
        conditions = {column for link in rule.links for column, _ in link.where}
        return not conditions & set(rule.mentions[unit.mention].columns)

    def _evaluated(self, unit: Statement) -> list[str]:
        """The tables whose person's rows the statement has to tell from others."""
        rule = self.data_map.tables[unit.table]
        names = [rule.mentions[unit.mention].link.to] if unit.mention >= 0 else []
        return [*names, unit.table] if rule.owned else names

    def _reads(self, unit: Statement) -> dict[str, set[str]]:
        """Which columns of which other tables tell the statement its rows."""
        found: dict[str, set[str]] = {}
        rule = self.data_map.tables[unit.table]
        if unit.mention >= 0:
            self._read_link(rule.mentions[unit.mention].link, found, set())
        if rule.owned:
            self._read(unit.table, found, set())
            # Its own cells it reads as it writes, unless something has been written to them before. A mention
            # tells by them whose rows are not the person's.
            if not unit.let_go and unit.table not in self.captured:
                found.setdefault(unit.table, set()).update(self._own_columns(unit.table))
        return found

    def _own_columns(self, table: str) -> set[str]:
        if table not in self.told_by:
            self.told_by[table] = own_columns(self.data_map, table)
        return self.told_by[table]

    def _read(self, table: str, found: dict[str, set[str]], seen: set[str]) -> None:
        if table in self.captured or table in seen:
            return
        seen.add(table)
        for link in self.data_map.tables[table].links:
            if link.to != table:
                self._read_link(link, found, seen)
            if link.back:
                for name, pairs, _ in pointers(self.schema, self.data_map, table):
                    if name in self.data_map.tables and self.data_map.tables[name].owned and name != table:
                        found.setdefault(name, set()).update(pointer for pointer, _ in pairs)
                        found[name] |= self._own_columns(name)
                        self._read(name, found, seen)

    def _read_link(self, link: Link, found: dict[str, set[str]], seen: set[str]) -> None:
        if is_direct(self.data_map, link):
            return
        if link.to in self.captured:
            if link.targets != self.schema.tables[link.to].primary:
                found.setdefault(link.to, set()).update(link.targets, self.schema.tables[link.to].primary)
            return
        found.setdefault(link.to, set()).update(link.targets, self._own_columns(link.to))
        self._read(link.to, found, seen)

    def _preference(self, unit: Statement) -> tuple[int, int]:
        """Far tables first and the subject's last, so that the order reads like the map."""
        return (-self._depth(unit.table, ()), int(unit.is_main))

    def _depth(self, table: str, trail: tuple[str, ...]) -> int:
        if table not in self.depths:
            links = self.data_map.tables[table].links
            onward = [link.to for link in links if link.to != table and link.to not in trail]
            self.depths[table] = 1 + min((self._depth(to, (*trail, table)) for to in onward), default=-1)
        return self.depths[table]
