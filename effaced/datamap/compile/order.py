"""The order in which an erasure's statements run, and whose rows must be looked up before the first of them.

Two things restrict the order. A row that others point at can be deleted only after those were deleted or
their pointers set to NULL. And rows that are found through other rows must be dealt with while those still
tell whose they are. Where the two contradict each other, the rows are looked up beforehand: their table is
`captured`.
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
    """A statement: of a table's own rows, of one of its mentions, or to detach pointers that form a cycle."""

    table: str
    mention: int = -1
    detaches: tuple[str, ...] = ()

    @property
    def is_main(self) -> bool:
        return self.mention < 0 and not self.detaches


@dataclass(frozen=True, slots=True)
class Order:
    """The statements in order; or, if there is none, the tables whose pointers form a cycle."""

    statements: tuple[Statement, ...]
    captured: frozenset[str] = frozenset()
    cycle: tuple[str, ...] = ()
    needed_later: frozenset[str] = frozenset()
    """The captured tables, and those through which their rows are found."""
    evaluated_late: frozenset[Statement] = frozenset()
    """The statements that find rows by captured ones, when their turn has come."""


def find_order(schema: LiveSchema, data_map: DataMap) -> Order:
    """For a map whose links all lead to a person and form no cycle."""
    search = _Search(schema, data_map, detaching=self_references_to_clear(schema, data_map))
    hopeless: set[str] = set()
    while not hopeless and (stuck := search.sort()):
        ahead = [{statement.table for statement in stuck}]
        # Circle by cycle: to look at everything again for each of them takes long where there are many.
        while ahead:
            edges = search.edges(ahead.pop())
            for cycle in edges.cycles():
                tables = {statement.table for statement in cycle}
                if search.capture(edges, cycle) or search.detach_pointer(edges, cycle):
                    ahead.append(tables)
                else:
                    hopeless |= tables
    if hopeless:
        return Order((), cycle=tuple(sorted(hopeless)))
    return search.order()


def is_direct(data_map: DataMap, link: Link) -> bool:
    """Whether the linked row holds the subject's key itself, so that no other row need be read."""
    return not link.back and link.to == data_map.subject and sorted(link.targets) == sorted(data_map.key)


def own_columns(data_map: DataMap, table: str) -> set[str]:
    """The columns that tell whose a row of the table is."""
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
    """The numbers of the mentions that set this foreign key to NULL in other people's rows."""
    for number, mention in enumerate(rule.mentions if rule else ()):
        link = mention.link
        if (
            link.to == key.to
            and not link.where
            and set(link.on) <= set(key.on)
            and mention.clears(key.columns)
        ):
            yield number


_Waiting = dict[Statement, set[Statement]]
"""Per statement those that have to wait for it."""


@dataclass(frozen=True, slots=True)
class _Edges:
    """Which statement waits for which: `hard` by foreign keys, `soft` because rows are found that way."""

    hard: _Waiting
    soft: _Waiting

    @property
    def both(self) -> _Waiting:
        return {statement: hard | self.soft[statement] for statement, hard in self.hard.items()}

    def cycles(self) -> list[set[Statement]]:
        """Groups of statements that depend on each other."""
        return sorted((set(each) for each in strongly_connected(self.both)), key=min)


@dataclass
class _Search:
    """The search for an order: what has been captured and detached so far."""

    schema: LiveSchema
    data_map: DataMap
    captured: set[str] = field(default_factory=set)
    detaching: dict[str, set[str]] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)
    known_columns: dict[str, set[str]] = field(default_factory=dict)
    done: list[Statement] = field(default_factory=list)

    def sort(self) -> list[Statement]:
        """Sort topologically; the statements that are left over if there is a cycle."""
        ways = self.edges(self.data_map.tables).both
        waits = Counter(later for others in ways.values() for later in others)
        self.done = []
        free = [(self._preference(statement), statement) for statement in ways if not waits[statement]]
        heapify(free)
        while free:
            _, statement = heappop(free)
            self.done.append(statement)
            for later in ways[statement]:
                waits[later] -= 1
                if not waits[later]:
                    heappush(free, (self._preference(later), later))
        return [statement for statement in ways if waits[statement]]

    def edges(self, tables: Collection[str]) -> _Edges:
        """Which of these tables' statements have to wait for which."""
        of_table = {name: list(self._statements(name)) for name in sorted(tables)}
        hard: _Waiting = {statement: set() for statements in of_table.values() for statement in statements}
        for name in of_table:
            for key in self.schema.keys_of(name):
                if key.to in of_table:
                    for statement in self._before_pointers_go(key):
                        hard[statement].add(Statement(key.to))
        soft = {
            reader: {
                statement
                for table, columns in self._columns_read(reader).items()
                for statement in of_table.get(table, ())
                if statement != reader
                and self._overwrites(statement, columns)
                and not self._is_of_others(statement, reader)
            }
            for reader in hard
        }
        return _Edges(hard, soft)

    def order(self) -> Order:
        captured, self.captured = self.captured, set()
        found: dict[str, set[str]] = {}
        for name in captured:
            self._add_reads(name, found, set())
        by_captured = [
            statement
            for statement in (self.done if captured else ())
            if not captured.isdisjoint((*self._tables_evaluated(statement), *self._columns_read(statement)))
        ]
        return Order(
            tuple(self.done),
            frozenset(captured),
            needed_later=frozenset(captured | set(found)),
            evaluated_late=frozenset(by_captured),
        )

    def capture(self, edges: _Edges, cycle: set[Statement]) -> bool:
        """Break a cycle by looking up a table's rows beforehand. False if no table would help."""
        late = {
            each
            for earlier in cycle
            for later in edges.soft[earlier] & cycle
            for each in self._capture_candidates(earlier, later)
            if each[1] not in self.captured
        }
        if late:
            self.captured.add(min(late)[1])
        return bool(late)

    def _capture_candidates(self, reader: Statement, later: Statement) -> Iterator[tuple[bool, str]]:
        """Tables to look up so that `reader` need not run before `later`; False marks the better choice.

        Where rows are found by the primary key of others, knowing those is enough, and they are fewer.
        """
        parent = self.schema.tables[later.table].primary
        for name in self._tables_evaluated(reader):
            for link in self.data_map.tables[name].links:
                if link.to == later.table and not link.back and link.targets == parent:
                    yield False, later.table
            yield True, name

    def detach_pointer(self, edges: _Edges, cycle: set[Statement]) -> bool:
        """Break a cycle by setting a pointer to NULL first. False if no pointer may be NULL."""
        names = sorted({statement.table for statement in cycle})
        for key in sorted((key for name in names for key in self.schema.keys_of(name)), key=str):
            child, parent = Statement(key.table), Statement(key.to)
            goes = child in cycle and not self.data_map.tables[key.table].stays
            if not goes or parent not in edges.hard[child] & cycle:
                continue
            columns = self.schema.tables[key.table].columns
            column = next((name for name in key.columns if columns[name].nullable), None)
            # Detaching the same column again is no help: another pointer of those rows is in the way.
            if column and column not in self.detaching.setdefault(key.table, set()):
                self.detaching[key.table].add(column)
                return True
        return False

    def _statements(self, name: str) -> Iterator[Statement]:
        rule = self.data_map.tables[name]
        if rule.owned:
            yield Statement(name)
        for number in range(len(rule.mentions)):
            yield Statement(name, number)
        if columns := self.detaching.get(name):
            yield Statement(name, detaches=tuple(sorted(columns)))

    def _before_pointers_go(self, key: ForeignKey) -> Iterator[Statement]:
        """The statements after which rows of the key's table no longer point at rows that go."""
        parent, child = self.data_map.tables[key.to], self.data_map.tables[key.table]
        if not any(parent.loses(column) for _, column in key.on):
            return
        for number in releasing_mentions(child, key):
            yield Statement(key.table, number)
        detached = self.detaching.get(key.table, set())
        if detached & set(key.columns):
            yield Statement(key.table, detaches=tuple(sorted(detached)))
        elif child is parent or not child.owned:
            return
        elif not child.stays or any(child.clears(column) for column in key.columns):
            yield Statement(key.table)

    def _overwrites(self, statement: Statement, columns: set[str]) -> bool:
        """Whether a statement deletes or changes what another one reads in these columns."""
        rule = self.data_map.tables[statement.table]
        if statement.is_main:
            return not rule.stays or not columns.isdisjoint(rule.changed)
        return not columns.isdisjoint(statement.detaches or rule.mentions[statement.mention].columns)

    def _is_of_others(self, statement: Statement, reader: Statement) -> bool:
        """Whether a mention changes only rows of the same table that `reader` leaves alone."""
        if not reader.is_main or statement.mention < 0 or statement.table != reader.table:
            return False
        rule = self.data_map.tables[statement.table]
        conditions = {column for link in rule.links for column, _ in link.where}
        return not conditions & set(rule.mentions[statement.mention].columns)

    def _tables_evaluated(self, statement: Statement) -> list[str]:
        """The tables of which the statement has to know which rows are the person's."""
        rule = self.data_map.tables[statement.table]
        names = [rule.mentions[statement.mention].link.to] if statement.mention >= 0 else []
        return [*names, statement.table] if rule.owned else names

    def _columns_read(self, statement: Statement) -> dict[str, set[str]]:
        """The columns, by table, that the statement reads to find its rows."""
        found: dict[str, set[str]] = {}
        rule = self.data_map.tables[statement.table]
        if statement.mention >= 0:
            self._add_link_reads(rule.mentions[statement.mention].link, found, set())
        if rule.owned:
            self._add_reads(statement.table, found, set())
            # Its own cells it reads as it writes, unless something has been written to them before. A mention
            # tells by them whose rows are not the person's.
            if not statement.detaches and statement.table not in self.captured:
                found.setdefault(statement.table, set()).update(self._own_columns(statement.table))
        return found

    def _own_columns(self, table: str) -> set[str]:
        if table not in self.known_columns:
            self.known_columns[table] = own_columns(self.data_map, table)
        return self.known_columns[table]

    def _add_reads(self, table: str, found: dict[str, set[str]], seen: set[str]) -> None:
        if table in self.captured or table in seen:
            return
        seen.add(table)
        for link in self.data_map.tables[table].links:
            if link.to != table:
                self._add_link_reads(link, found, seen)
            if link.back:
                for name, pairs, _ in pointers(self.schema, self.data_map, table):
                    if name in self.data_map.tables and self.data_map.tables[name].owned and name != table:
                        found.setdefault(name, set()).update(pointer for pointer, _ in pairs)
                        found[name] |= self._own_columns(name)
                        self._add_reads(name, found, seen)

    def _add_link_reads(self, link: Link, found: dict[str, set[str]], seen: set[str]) -> None:
        if is_direct(self.data_map, link):
            return
        if link.to in self.captured:
            if link.targets != self.schema.tables[link.to].primary:
                found.setdefault(link.to, set()).update(link.targets, self.schema.tables[link.to].primary)
            return
        found.setdefault(link.to, set()).update(link.targets, self._own_columns(link.to))
        self._add_reads(link.to, found, seen)

    def _preference(self, statement: Statement) -> tuple[int, int]:
        """Distant tables first and the subject's last, so that the order reads like the map."""
        return (-self._depth(statement.table, ()), int(statement.is_main))

    def _depth(self, table: str, trail: tuple[str, ...]) -> int:
        if table not in self.depths:
            links = self.data_map.tables[table].links
            onward = [link.to for link in links if link.to != table and link.to not in trail]
            self.depths[table] = 1 + min((self._depth(to, (*trail, table)) for to in onward), default=-1)
        return self.depths[table]
