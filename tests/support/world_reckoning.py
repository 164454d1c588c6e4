"""What must come of an erasure, worked out a second time: sets of rows, and cell by cell, in plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from world import Link, Mention, Pointer, Row, Table, World
from world_cells import Fits, Person, fate, person_of, text
from world_content import Column
from world_database import Rows, Seen

Key = tuple[Any, ...]
Keys = frozenset[Key]


class Whose:
    """Which rows are one person's."""

    def __init__(self, world: World, rows: Seen, subject: int, person: Key) -> None:
        self.world, self.rows, self.subject, self.person = world, rows, subject, person
        self._known: dict[tuple[int, frozenset[int]], Keys] = {}

    def rows_of(self, table: int, but_through: frozenset[int] = frozenset()) -> Keys:
        """`but_through` are tables that are just being told apart and can't be asked themselves."""
        asked = (table, but_through)
        if asked not in self._known:
            self._known[asked] = self._find(table, but_through)
        return self._known[asked]

    def _find(self, table: int, but_through: frozenset[int]) -> Keys:
        spec, rows = self.world.tables[table], self.rows[table]
        if table == self.subject:
            names = self.world.key_of_subject(table)
            return frozenset(key for key, row in rows.items() if tuple(row[n] for n in names) == self.person)
        if not spec.owned or table in self.world.subjects:
            return frozenset()
        found: set[Key] = set()
        for link in spec.links:
            other = link.pointer.table if link.back else link.pointer.to
            if other not in (table, *but_through):
                found |= {key for key in rows if self._linked(table, key, link, other, but_through)}
        within = [link for link in spec.links if link.pointer.table == link.pointer.to == table]
        while True:
            below = {
                key
                for key, row in rows.items()
                for link in within
                if meets(row, link.where) and any(self.points(link.pointer, row, rows[up]) for up in found)
            }
            if below <= found:
                return frozenset(found)
            found |= below

    def _linked(self, table: int, key: Key, link: Link, other: int, but_through: frozenset[int]) -> bool:
        row = self.rows[table][key]
        if not meets(row, link.where):
            return False
        theirs = self.rows_of(other, but_through)
        if not link.back:
            return self.holds_key(link.pointer, row) or any(
                self.points(link.pointer, row, self.rows[other][each]) for each in theirs
            )
        pointed = any(self.points(link.pointer, self.rows[other][each], row) for each in theirs)
        return pointed and self._alone(table, key, but_through | {table})

    def holds_key(self, pointer: Pointer, row: Row) -> bool:
        """A row with the person's own key is theirs even if the person has gone."""
        names = self.world.key_of_subject(pointer.to) if pointer.to == self.subject else []
        if sorted(names) != sorted(target for _, target in pointer.pairs):
            return False
        key = dict(zip(names, self.person, strict=True))
        return self.points(pointer, row, key)

    def points(self, pointer: Pointer, row: Row, at: Row) -> bool:
        return all(
            row[own] is not None and at[target] is not None and text(row[own]) == text(at[target])
            for own, target in pointer.pairs
        )

    def _alone(self, table: int, key: Key, but_through: frozenset[int]) -> bool:
        """Whether nobody else's row points at this one, by a link back or by a foreign key."""
        links = [(n, link) for n, each in enumerate(self.world.tables) for link in each.links]
        backs = [link.pointer for n, link in links if n == table and link.back]
        # Rows that follow by a plain link are the person's because of this one, whatever else it asks for.
        followers = [link.pointer for _, link in links if not link.back and link.pointer.to == table]
        for pointer in self.world.pointers:
            held = pointer.to == table and pointer.foreign_key is not None and pointer not in followers
            if pointer not in backs and not held:
                continue
            mine = Keys() if pointer.table in but_through else self.rows_of(pointer.table, but_through)
            for other, row in self.rows[pointer.table].items():
                if other not in mine and self.points(pointer, row, self.rows[table][key]):
                    return False
        return True


def meets(row: Row, where: dict[str, Any] | None) -> bool:
    for name, wanted in (where or {}).items():
        allowed = wanted if isinstance(wanted, list) else [wanted]
        if not any(_same(row[name], each) for each in allowed):
            return False
    return True


def _same(cell: Any, wanted: Any) -> bool:
    if cell is None or wanted is None:
        return cell is wanted
    if isinstance(wanted, bool):
        return text(cell) in (("true", "1") if wanted else ("false", "0"))
    return text(cell) == text(wanted)


@dataclass
class Told:
    """What is to be reported of one table, or of one mention."""

    action: str
    rows: int = 0
    scrubbed: dict[str, int] = field(default_factory=dict)
    retained: list[tuple[str, str, str | None]] = field(default_factory=list)


@dataclass
class Reckoning:
    """Per table the rows that stay with what each cell must be, and what is to be reported."""

    stay: list[dict[Key, dict[str, Fits]]] = field(default_factory=list)
    told: dict[str, list[Told]] = field(default_factory=dict)

    def mistakes(self, world: World, after: Seen) -> Iterator[str]:
        for table, expected, rows in zip(world.tables, self.stay, after, strict=True):
            if expected.keys() != rows.keys():
                yield f"{table.name}: the rows {sorted(expected.keys() ^ rows.keys(), key=str)} are wrong"
            for key in expected.keys() & rows.keys():
                for name, fits in expected[key].items():
                    if not fits(rows[key][name]):
                        yield f"{table.name}.{name} of {key} is {rows[key][name]!r}"
                for name, column in table.columns.items():
                    base = rows[key][column.made_from] if column.made_from else None
                    made = None if base is None else len(base)
                    if column.made_from and text(rows[key][name]) != text(made):
                        yield f"{table.name}.{name} of {key} was not made anew"


def reckon(world: World, before: Seen, subject: int, key: Key) -> Reckoning:
    """What an erasure of this person must do to these rows."""
    whose = Whose(world, before, subject, key)
    own = next(iter(whose.rows_of(subject)), None)
    person = person_of(before[subject][own] if own is not None else None)
    reached = _reached(world, subject)
    result = Reckoning()
    for number, table in enumerate(world.tables):
        rows = before[number]
        mine = whose.rows_of(number)
        stay = {each: _unchanged(table, row) for each, row in rows.items()}
        told = result.told.setdefault(table.full_name, []) if number in reached or table.mentions else []
        if number in reached:
            told.append(_own(table, rows, mine, stay, person))
        for mention in table.mentions:
            if mention.pointer.to in reached:
                theirs = whose.rows_of(mention.pointer.to)
                pointing = [
                    each
                    for each, row in rows.items()
                    if each not in mine
                    and meets(row, mention.where)
                    and (
                        whose.holds_key(mention.pointer, row)
                        or any(
                            whose.points(mention.pointer, row, before[mention.pointer.to][o]) for o in theirs
                        )
                    )
                ]
                told.append(_mentioned(table, mention, rows, pointing, stay, person))
        result.stay.append(stay)
    result.told = {name: told for name, told in result.told.items() if told}
    return result


def _reached(world: World, subject: int) -> set[int]:
    """The tables from which links lead to this kind of people."""
    reached = {subject}
    while True:
        more = {
            number
            for number, table in enumerate(world.tables)
            for link in table.links
            if (link.pointer.table if link.back else link.pointer.to) in reached - {number}
        }
        if more <= reached:
            return reached
        reached |= more


def _unchanged(table: Table, row: Row) -> dict[str, Fits]:
    return {
        name: (lambda after, cell=row[name]: after == cell and type(after) is type(cell))
        for name, column in table.columns.items()
        if not column.made_from
    }


def _own(table: Table, rows: Rows, mine: Keys, stay: dict[Key, dict[str, Fits]], person: Person) -> Told:
    changing = {name: each for name, each in table.columns.items() if each.changes}
    hashed = any("keyed_hash" in str(each.rule) for each in changing.values())
    action = "deleted" if not table.stays else "pseudonymised" if hashed else "anonymised" if changing else ""
    told = Told(action or "retained")
    if table.stays:
        told.retained = sorted(
            _retained(each) for each in table.columns.values() if each.strategy == "retain"
        )
        told.scrubbed = {name: 0 for name, each in changing.items() if "scrub" in str(each.rule)}
    for key in mine:
        if not table.stays:
            del stay[key]
            told.rows += 1
            continue
        changes = not changing
        for name, column in changing.items():
            becomes = fate(column, column.rule, rows[key][name], person)
            stay[key][name] = becomes.fits
            changes |= becomes.changes
            if name in told.scrubbed:
                told.scrubbed[name] += becomes.found
        told.rows += changes
    return told


def _retained(column: Column) -> tuple[str, str, str | None]:
    said = column.rule["retain"]
    return (column.name, said, None) if isinstance(said, str) else (column.name, said["basis"], said["until"])


def _mentioned(
    table: Table,
    mention: Mention,
    rows: Rows,
    keys: list[Key],
    stay: dict[Key, dict[str, Fits]],
    person: Person,
) -> Told:
    told = Told(
        "detached", scrubbed={name: 0 for name, each in mention.columns.items() if "scrub" in str(each)}
    )
    for key in keys:
        changes = False
        for name, rule in mention.columns.items():
            becomes = fate(table.columns[name], rule, rows[key][name], person)
            stay[key][name] = becomes.fits
            changes |= becomes.changes
            if name in told.scrubbed:
                told.scrubbed[name] += becomes.found
        told.rows += changes
    return told
