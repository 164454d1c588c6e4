"""Who points at whom in a generated world, and what becomes of the pointers, so that `check` accepts it."""

from __future__ import annotations

from typing import Any

from world import Link, Mention, Pointer, Table, World
from world_content import KEEPS, NULLS, Column, Pick

CONDITIONS: dict[str, tuple[Any, ...]] = {
    "word": ("x", ["x", None], ["y", "z"]),
    "digit": (1, [1, 2], [None, 2]),
    "truth": (True, False),
    "enum": ("new", ["new", "gone"]),
}


class Wiring:
    """Who points at whom, by what, and what the map says about it."""

    def __init__(self, pick: Pick, world: World) -> None:
        self.pick, self.world = pick, world

    def draw(self) -> None:
        pick, world = self.pick, self.world
        owned = [n for n, table in enumerate(world.tables) if table.owned]
        for number in owned:
            if number not in world.subjects:
                self._links(number)
        for _ in range(pick.upto(2)):
            self._pointer(pick.one(owned), pick.one(range(len(world.tables))))
        for number, table in enumerate(world.tables):
            if not table.owned and table.declared:
                self._pointer(number, pick.one(owned), mentioned=True)
            elif not table.declared and pick.upto(1):
                self._pointer(number, pick.one(owned), loose=True)
        for pointer in world.pointers:
            self._foreign_key(pointer)
        for pointer in world.pointers:
            self._decide(pointer)

    def _links(self, number: int) -> None:
        pick, world = self.pick, self.world
        table = world.tables[number]
        for other in pick.some(range(number), 2) or [pick.upto(number - 1)]:
            back = pick.one([False, False, False, True, True])
            ends = (other, number) if back else (number, other)
            where = pick.one([None, None, None, {"kind": pick.one(CONDITIONS[table.columns["kind"].kind])}])
            table.links.append(Link(self._pointer(*ends, linked=True), back, where))
        if pick.once_in(4) and not all(each.back for each in table.links):
            pointer = self._pointer(number, number, linked=True)
            table.links.append(Link(pointer, where=pick.one([None, None, table.links[0].where])))

    def _pointer(
        self, table: int, to: int, *, linked: bool = False, mentioned: bool = False, loose: bool = False
    ) -> Pointer:
        """The pointer from one table to the other, made when first asked for."""
        pick, world = self.pick, self.world
        found = [each for each in world.pointers if (each.table, each.to) == (table, to)]
        if found:
            return found[0]
        here, there = world.tables[table], world.tables[to]
        targets = there.key if there.partitioned or pick.upto(2) else ["alt"]
        pairs = [(f"p{to}_{target}", target) for target in targets]
        pointer = Pointer(table, to, pairs)
        # A link in a tree compares alike, and a foreign key does.
        pointer.as_text = table != to and pick.once_in(6)
        # Rows that must point somewhere point at an earlier table, so that no circle is without a way out.
        needed = to < table and linked and pick.once_in(3)
        for own, target in pairs:
            kind = there.columns[target].kind
            column = Column(own, kind, there.columns[target].type, nullable=not needed)
            if pointer.as_text and kind != "text":
                column.kind, column.type = "text", "varchar(60)"
            here.columns[own] = column
        world.pointers.append(pointer)
        return pointer

    def _foreign_key(self, pointer: Pointer) -> None:
        pick, world = self.pick, self.world
        there, here = world.tables[pointer.to], world.tables[pointer.table]
        loses = any(there.loses(target) for _, target in pointer.pairs)
        if pointer.as_text or pick.one([False, True]) or (loses and not here.declared):
            return
        actions = ["", "", " ON DELETE CASCADE", " DEFERRABLE INITIALLY DEFERRED"]
        nullable = all(here.columns[own].nullable for own in pointer.columns)
        actions += [" ON DELETE SET NULL"] if nullable else [" ON DELETE RESTRICT"]
        # Within one table the database would act on rows in the middle of the statement that takes them.
        pointer.foreign_key = pick.one(actions[:2] if pointer.table == pointer.to else actions)

    def _decide(self, pointer: Pointer) -> None:
        """What becomes of the pointer in the person's own rows, and in those of others."""
        pick, world = self.pick, self.world
        here, there = world.tables[pointer.table], world.tables[pointer.to]
        mine = [own for own in pointer.columns if here.columns[own].nullable]
        linking = [link for table in world.tables for link in table.links if link.pointer is pointer]
        loses = any(there.loses(target) for _, target in pointer.pairs)
        goes = there.owned and not there.stays
        cut = here.stays and (
            (loses and pointer.foreign_key is not None)
            or (goes and bool(linking) and pointer.table != pointer.to)
        )
        if here.owned and here.stays and cut and not mine:
            # It can't let go, so it goes too, unless what it points at may stay.
            here.columns[pointer.columns[0]].nullable = True
            mine = [pointer.columns[0]]
        for own in pointer.columns:
            here.columns[own].rule = pick.one(KEEPS if here.stays else ("not_personal", "delete"))
            if not here.owned:
                here.columns[own].rule = "not_personal"
        if here.owned and here.stays and mine and (cut or pick.upto(1)):
            here.columns[mine[0]].rule = pick.one(NULLS)
        if not there.owned:
            return
        plain = any(not link.back and not link.where for link in linking)
        # Within one table, a link does not do where values change.
        plain = plain and not (pointer.table == pointer.to and here.stays)
        needed = pointer.foreign_key is not None and loses and not plain
        alone = not here.owned and here.declared
        if needed and not mine:
            here.columns[pointer.columns[0]].nullable = True
            mine = [pointer.columns[0]]
        if here.declared and (alone or needed or (mine and not plain and pick.upto(1))):
            if not mine:
                here.columns[pointer.columns[0]].nullable = True
                mine = [pointer.columns[0]]
            where = None if needed else pick.one([None, None, self._condition(here)])
            here.mentions.append(Mention(pointer, {mine[0]: pick.one(NULLS)}, where))

    def _condition(self, table: Table) -> dict[str, Any]:
        return {"kind": self.pick.one(CONDITIONS[table.columns["kind"].kind])}


def let_go_of_the_cut_off(world: World) -> None:
    """Rows that are nobody's afterwards may not go on mentioning the person."""
    kept: Any = True
    while kept:
        kept = [
            table.columns[next(iter(mention.columns))]
            for number, table in enumerate(world.tables)
            for mention in table.mentions
            if table.owned and table.stays and is_cut_off(world, number)
        ]
        kept = [column for column in kept if not column.nulls]
        for column in kept:
            column.rule = {"anonymise": None}


def is_cut_off(world: World, number: int) -> bool:
    """Whether the erasure itself takes away by what the rows are found again."""
    table = world.tables[number]
    if number in world.subjects:
        return any(table.loses(name) for name in world.key_of_subject(number))
    for link in table.links:
        own = [other if link.back else mine for mine, other in link.pointer.pairs]
        theirs = [mine if link.back else other for mine, other in link.pointer.pairs]
        other = link.pointer.table if link.back else link.pointer.to
        if any(table.loses(name) for name in [*own, *(link.where or ())]):
            return True
        if not link.back and other in world.subjects and theirs == world.key_of_subject(other):
            continue
        if any(world.tables[other].loses(name) for name in theirs):
            return True
        if other != number and other not in world.subjects and is_cut_off(world, other):
            return True
    return False
