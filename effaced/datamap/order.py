"""In which order the statements of an erasure run, and whose rows must be known before the first of them.

Two things bind the order. A row that others point at can go only after they have let go. And rows that are
found through other rows must be dealt with while those still tell whose they are. Where the two stand
against each other, the rows in question are looked up beforehand: their table is `captured`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from effaced.datamap.model import DataMap, Link, TableRule
from effaced.datamap.schema import ForeignKey, LiveSchema


@dataclass(frozen=True, slots=True, order=True)
class Unit:
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

    units: tuple[Unit, ...]
    captured: frozenset[str] = frozenset()
    circle: tuple[str, ...] = ()
    needed_later: frozenset[str] = frozenset()
    """The captured tables, and those through which their rows are found."""


def find_order(schema: LiveSchema, data_map: DataMap) -> Order:
    """For a map whose links lead somewhere and run in no circle."""
    search = _Search(schema, data_map)
    while True:
        stuck = search.attempt()
        if not stuck:
            return Order(tuple(search.done), frozenset(search.captured), needed_later=search.needed_later())
        if not search.capture(stuck) and not search.let_go(stuck):
            return Order((), circle=tuple(sorted({unit.table for unit in stuck})))


def is_direct(data_map: DataMap, link: Link) -> bool:
    """Whether the row holds the subject's key itself, so that nobody else need be looked at."""
    return not link.back and link.to == data_map.subject and sorted(link.targets) == sorted(data_map.key)


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
    for key in schema.foreign_keys:
        child = data_map.tables.get(key.table)
        follows = child is not None and any(
            link.to == table and not link.back and set(link.on) <= set(key.on) for link in child.links
        )
        if key.to == table and not follows:
            found.add((key.table, tuple(sorted(key.on)), False))
    yield from sorted(found)


def covers(rule: TableRule | None, key: ForeignKey) -> Iterator[int]:
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


@dataclass
class _Search:
    schema: LiveSchema
    data_map: DataMap
    captured: set[str] = field(default_factory=set)
    letting_go: dict[str, set[str]] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)
    done: list[Unit] = field(default_factory=list)
    hard: set[tuple[Unit, Unit]] = field(default_factory=set)
    soft: set[tuple[Unit, Unit]] = field(default_factory=set)

    def attempt(self) -> list[Unit]:
        """Put the statements in order; what is left over if that can't be done."""
        units = self._units()
        of_table: dict[str, list[Unit]] = {}
        for unit in units:
            of_table.setdefault(unit.table, []).append(unit)
        self.hard = set(self._before_pointers_go())
        self.soft = {
            (reader, unit)
            for reader in units
            for table, columns in self._reads(reader).items()
            for unit in of_table.get(table, ())
            if unit != reader and self._disturbs(unit, columns) and not self._is_of_others(unit, reader)
        }
        waits: dict[Unit, set[Unit]] = {unit: set() for unit in units}
        lets: dict[Unit, set[Unit]] = {unit: set() for unit in units}
        for earlier, later in self.hard | self.soft:
            waits[later].add(earlier)
            lets[earlier].add(later)
        self.done = []
        free = [(self._preference(unit), unit) for unit in units if not waits[unit]]
        heapify(free)
        while free:
            _, unit = heappop(free)
            self.done.append(unit)
            for later in lets[unit]:
                waits[later].remove(unit)
                if not waits[later]:
                    heappush(free, (self._preference(later), later))
        done = set(self.done)
        return [unit for unit in units if unit not in done]

    def needed_later(self) -> frozenset[str]:
        captured, self.captured = self.captured, set()
        found: dict[str, set[str]] = {}
        for name in captured:
            self._read(name, found, ())
        self.captured = captured
        return frozenset(captured | set(found))

    def capture(self, stuck: list[Unit]) -> bool:
        """Look up beforehand the rows of a table whose statement would come too late to find them."""
        among = set(stuck)
        late: set[tuple[bool, str]] = set()
        for earlier, later in self.soft:
            if earlier in among and later in among and self._reaches(later, earlier, among):
                late |= set(self._helpful(earlier, later))
        late = {(last, name) for last, name in late if name not in self.captured}
        if late:
            self.captured.add(min(late)[1])
        return bool(late)

    def _helpful(self, reader: Unit, later: Unit) -> Iterator[tuple[bool, str]]:
        """Whose rows to look up so that one statement need not wait for another; the better choice first.

        Where rows are found by the primary key of others, knowing those is enough, and they are fewer.
        """
        parent = self.schema.tables[later.table].primary
        for name in self._evaluated(reader):
            for link in self.data_map.tables[name].links:
                if link.to == later.table and not link.back and link.targets == parent:
                    yield False, later.table
            yield True, name

    def let_go(self, stuck: list[Unit]) -> bool:
        """Empty a pointer first, where rows that all go point at each other in a circle."""
        among = set(stuck)
        for key in self.schema.foreign_keys:
            child, live = self.data_map.tables.get(key.table), self.schema.tables.get(key.table)
            ends = Unit(key.table), Unit(key.to)
            if not child or not live or child.stays or ends not in self.hard or not set(ends) <= among:
                continue
            column = next((name for name in key.columns if live.columns[name].nullable), None)
            if column and self._reaches(ends[1], ends[0], among):
                self.letting_go.setdefault(key.table, set()).add(column)
                return True
        return False

    def _units(self) -> list[Unit]:
        units = []
        for name, rule in sorted(self.data_map.tables.items()):
            units += [Unit(name)] if rule.owned else []
            units += [Unit(name, number) for number in range(len(rule.mentions))]
            units += [
                Unit(name, let_go=tuple(sorted(columns)))
                for columns in [self.letting_go.get(name)]
                if columns
            ]
        return units

    def _before_pointers_go(self) -> Iterator[tuple[Unit, Unit]]:
        tables = self.data_map.tables
        for key in self.schema.foreign_keys:
            parent, child = tables.get(key.to), tables.get(key.table)
            if not parent or not child or not any(parent.loses(column) for _, column in key.on):
                continue
            for number in covers(child, key):
                yield Unit(key.table, number), Unit(key.to)
            if child is parent or not child.owned:
                continue
            let_go = self.letting_go.get(key.table, set())
            if let_go & set(key.columns):
                yield Unit(key.table, let_go=tuple(sorted(let_go))), Unit(key.to)
            elif not child.stays or any(child.nulls(column) for column in key.columns):
                yield Unit(key.table), Unit(key.to)

    def _disturbs(self, unit: Unit, columns: set[str]) -> bool:
        """Whether a statement takes away what another one reads in these columns."""
        rule = self.data_map.tables[unit.table]
        if unit.is_main:
            return not rule.stays or bool(columns & set(rule.changed))
        return bool(columns & set(unit.let_go or rule.mentions[unit.mention].columns))

    def _is_of_others(self, unit: Unit, reader: Unit) -> bool:
        """Whether it empties pointers in the very rows that the other statement leaves out."""
        if not reader.is_main or unit.mention < 0 or unit.table != reader.table:
            return False
        rule = self.data_map.tables[unit.table]
        conditions = {column for link in rule.links for column, _ in link.where}
        return not conditions & set(rule.mentions[unit.mention].columns)

    def _evaluated(self, unit: Unit) -> list[str]:
        """The tables whose person's rows the statement has to tell from others."""
        rule = self.data_map.tables[unit.table]
        names = [rule.mentions[unit.mention].link.to] if unit.mention >= 0 else []
        return [*names, unit.table] if rule.owned else names

    def _reads(self, unit: Unit) -> dict[str, set[str]]:
        """Which columns of which other tables tell the statement its rows."""
        found: dict[str, set[str]] = {}
        if unit.mention >= 0:
            link = self.data_map.tables[unit.table].mentions[unit.mention].link
            self._read_link(link, found, ())
        if self.data_map.tables[unit.table].owned:
            self._read(unit.table, found, ())
            # Its own cells it reads as it writes, unless something has been written to them before. A mention
            # tells by them whose rows are not the person's.
            if not unit.let_go and unit.table not in self.captured:
                found.setdefault(unit.table, set()).update(self._own_columns(unit.table))
        return found

    def _own_columns(self, table: str) -> set[str]:
        columns = set(self.data_map.key) if table == self.data_map.subject else set()
        for link in self.data_map.tables[table].links:
            columns |= {*link.columns, *(column for column, _ in link.where)}
        return columns

    def _read(self, table: str, found: dict[str, set[str]], trail: tuple[str, ...]) -> None:
        if table in self.captured or table in trail:
            return
        for link in self.data_map.tables[table].links:
            self._read_link(link, found, (*trail, table))
            if link.back:
                for name, pairs, _ in pointers(self.schema, self.data_map, table):
                    if name in self.data_map.tables and self.data_map.tables[name].owned and name != table:
                        found.setdefault(name, set()).update(pointer for pointer, _ in pairs)
                        found[name] |= self._own_columns(name)
                        self._read(name, found, (*trail, table))

    def _read_link(self, link: Link, found: dict[str, set[str]], trail: tuple[str, ...]) -> None:
        if is_direct(self.data_map, link):
            return
        if link.to in self.captured:
            if link.targets != self.schema.tables[link.to].primary:
                found.setdefault(link.to, set()).update(link.targets, self.schema.tables[link.to].primary)
            return
        if link.to in trail:
            return
        found.setdefault(link.to, set()).update(link.targets, self._own_columns(link.to))
        self._read(link.to, found, trail)

    def _reaches(self, start: Unit, end: Unit, among: set[Unit]) -> bool:
        """Whether `end` has to wait for `start`, over others if need be."""
        edges = self.hard | self.soft
        seen, ahead = set(), [start]
        while ahead:
            unit = ahead.pop()
            if unit == end:
                return True
            if unit not in seen:
                seen.add(unit)
                ahead += [later for earlier, later in edges if earlier == unit and later in among]
        return False

    def _preference(self, unit: Unit) -> tuple[int, int]:
        """Far tables first and the subject's last, so that the order reads like the map."""
        return (-self._depth(unit.table, ()), int(unit.is_main))

    def _depth(self, table: str, trail: tuple[str, ...]) -> int:
        if table not in self.depths:
            links = self.data_map.tables[table].links
            onward = [link.to for link in links if link.to != table and link.to not in trail]
            self.depths[table] = 1 + min((self._depth(to, (*trail, table)) for to in onward), default=-1)
        return self.depths[table]
