"""Worlds: a schema with every kind of link and content, rows in it, and what a data map says of them.

Every map is made so that `check` accepts it: what the generator knows of the rules is in `draw_world`.
"""

from __future__ import annotations

from typing import Any

from world import SCHEMA, Pointer, Row, Table, World
from world_content import IDENTIFIERS, KEEPS, KINDS, NULLS, Column, Pick, draw_content, draw_rule, draw_value
from world_links import Wiring, is_cut_off, let_go_of_the_cut_off

TABLE_NAMES = (
    ("people", "orders", "lines", "notes", "logs", "others"),
    ("People", "select", 'odd "name" %s', "a.b:c (d)", "ÄÖÜ x", "group"),
)
COLUMN_NAMES = (("c0", "c1", "c2", "c3"), ("Na me", "where", "100%(x)s", 'q"u:o.te'))


def draw_world(pick: Pick, dialect: str) -> World:
    names, columns = pick.one(TABLE_NAMES), pick.one(COLUMN_NAMES)
    count = 2 + pick.upto(3)
    subjects = [0, 1] if pick.once_in(3) else [0]
    world = World(dialect, [], subjects, ["alt"])
    for number in range(count):
        world.tables.append(_table(pick, world, names[number], number))
    if pick.once_in(3):
        world.tables.append(_table(pick, world, names[5], count, plain=True))
    if pick.upto(3) or world.tables[0].partitioned:
        world.subject_key = world.tables[0].key
    Wiring(pick, world).draw()
    for number, table in enumerate(world.tables):
        _columns(pick, world, number, table, columns)
    let_go_of_the_cut_off(world)
    for number, table in enumerate(world.tables):
        _mentioned_content(pick, world, number, table)
        _until(pick, world, number, table)
    _rows(pick, world)
    return world


def _table(pick: Pick, world: World, name: str, number: int, *, plain: bool = False) -> Table:
    """With its key. A plain one is nobody's: it has mentions only, or nothing personal at all."""
    postgres = world.dialect == "postgresql"
    keys = [f"k{each}" for each in range(pick.one([1, 1, 1, 2]))]
    table = Table(name, keys, {}, stays=pick.one([False, True]))
    for key in keys:
        kind = pick.one(["number", "number", "text", "uuid"])
        table.columns[key] = Column(key, kind, _key_type(kind, world.dialect), rule="not_personal")
    table.columns["kind"] = Column("kind", *pick.one(_discriminators(postgres)), nullable=True)
    table.schema = SCHEMA if postgres and pick.once_in(6) else None
    table.partitioned = postgres and pick.once_in(8)
    table.viewed = pick.once_in(6)
    unique = not table.partitioned
    table.columns["alt"] = Column("alt", "text", "varchar(60)", unique=unique, length=60, rule="not_personal")
    if plain:
        table.stays, table.owned = True, False
        table.declared = pick.one([True, False])
        table.columns["kind"].rule = "not_personal"
        return table
    keeps = KEEPS if table.stays else ("not_personal", "delete")
    for key in keys:
        table.columns[key].rule = pick.one(keeps)
    changed = [{"anonymise": "random_unique"}] if unique and table.stays else []
    table.columns["alt"].rule = pick.one([*keeps, *changed])
    table.columns["kind"].rule = pick.one(["not_personal", "not_personal", "delete"])
    return table


def _key_type(kind: str, dialect: str) -> str:
    return {"number": "integer", "text": "varchar(20)", "uuid": KINDS["uuid"].types[dialect][0]}[kind]


def _discriminators(postgres: bool) -> list[tuple[str, str]]:
    """The columns that conditions are about."""
    return [("word", "varchar(5)"), ("word", "varchar(5)"), ("digit", "integer"), ("truth", "boolean")] + (
        [("enum", "mood")] if postgres else []
    )


KIND_VALUES: dict[str, tuple[Any, ...]] = {
    "word": ("x", "x", "y", None),
    "digit": (1, 2, 3, None),
    "truth": (True, False, None),
    "enum": ("new", "gone", "other", None),
}


def _columns(pick: Pick, world: World, number: int, table: Table, names: tuple[str, ...]) -> None:
    """Content of every kind, with whatever rule fits."""
    names = names[: 1 + pick.upto(3)]
    if number in world.subjects:
        for kind in IDENTIFIERS[0]:
            column = Column(kind, "text", "text", nullable=pick.one([True, False]), identifier=kind)
            column.rule = draw_rule(pick, column, stays=table.stays)
            table.columns[kind] = column
    for name in names:
        unique = not table.partitioned
        column = draw_content(pick, name, world.dialect, stays=table.stays, may_be_unique=unique)
        if not table.owned:
            column.rule = "not_personal"
        table.columns[name] = column
    last = table.columns[name]
    if not table.owned:
        return
    if table.stays and not any(column.keeps_row for column in table.columns.values()):
        last.rule = KEEPS[1]
    elif not table.stays and all(column.rule == "not_personal" for column in table.columns.values()):
        last.rule = "delete"
    if last.kind in ("text", "mail") and pick.once_in(3):
        made = Column("made", "length", "integer", nullable=True, rule="derived", made_from=name)
        table.columns["made"] = made
    elif not table.partitioned and table.columns["alt"].rule != "not_personal" and pick.once_in(4):
        table.uniques.append(["alt", name] if last.kind in ("text", "number", "uuid") else ["alt", "kind"])
    if table.uniques and not table.columns["alt"].changes:
        table.uniques = [each for each in table.uniques if not table.columns[each[1]].changes]


def _mentioned_content(pick: Pick, world: World, number: int, table: Table) -> None:
    """Some mentions change another cell of the row, too."""
    free = [
        column
        for column in table.columns.values()
        if column.kind in KINDS and column.name not in (*table.key, "alt", "kind") and not column.unique
        and not column.made_from and not column.name.startswith("p") and not column.identifier
        and not any(column.name in each for each in table.uniques)
    ]  # fmt: skip
    for mention in table.mentions:
        if free and pick.once_in(3):
            column = free.pop(0)
            rules = [*KINDS[column.kind].rules(pick, column), *(NULLS if column.nullable else ())]
            if rules:
                mention.columns[column.name] = pick.one(rules)


def _until(pick: Pick, world: World, number: int, table: Table) -> None:
    """Some retentions end: then the cell goes, and the row stays."""
    if not table.owned or not table.stays or is_cut_off(world, number) or pick.upto(1):
        return
    days = [
        column.name
        for column in table.columns.values()
        if column.kind in ("date", "moment") and column.rule in KEEPS
    ]
    kept = [
        column
        for column in table.columns.values()
        if column.rule == KEEPS[1] and column.nullable and column.kind in KINDS and column.name not in days
        and not column.name.startswith("p") and column.name != "kind"
    ]  # fmt: skip
    for column in kept:
        untils = ["2099-12-31", *(f"{day} + 10 years" for day in days)]
        untils += [f"end of year of {day} + 6 months" for day in days]
        column.rule = {"retain": {"basis": "tax law", "until": pick.one(untils), "then": {"anonymise": None}}}


# --- rows ----------------------------------------------------------------------------------------------


def _rows(pick: Pick, world: World) -> None:
    for number, table in enumerate(world.tables):
        needs = [
            each.to
            for each in world.of(number)
            if each.to != number and not all(table.columns[own].nullable for own in each.columns)
        ]
        count = 3 if number in world.subjects else pick.upto(4)
        if any(not world.tables[to].rows for to in needs):
            count = 0
        table.rows = [_keys(table, number, row) for row in range(count)]
    for number, table in enumerate(world.tables):
        for place, row in enumerate(table.rows):
            row["kind"] = pick.one(KIND_VALUES[table.columns["kind"].kind])
            for pointer in world.of(number):
                row |= _pointed(pick, world, pointer)
            for name, column in table.columns.items():
                if column.identifier is not None:
                    person = place + 3 * world.subjects.index(number)
                    value = IDENTIFIERS[person][column.identifier][0]
                    row[name] = None if column.nullable and pick.once_in(5) else value
                elif name not in row and not column.made_from:
                    row[name] = draw_value(pick, column, place)


def _keys(table: Table, number: int, row: int) -> Row:
    """Composite keys agree in their first part, so that only the whole key tells people apart."""
    cells: Row = {"alt": f"a'{number}-{row}"}
    for part, name in enumerate(table.key):
        value = 7 if len(table.key) > 1 and part == 0 else row
        made = {
            "number": value,
            "text": f"k|\\ü'{value}",
            "uuid": f"0000000{number}-0000-4000-8000-{value:012d}",
        }
        cells[name] = made[table.columns[name].kind]
    return cells


def _pointed(pick: Pick, world: World, pointer: Pointer) -> Row:
    here, there = world.tables[pointer.table], world.tables[pointer.to]
    optional = [own for own in pointer.columns if here.columns[own].nullable]
    row = pick.one([*there.rows, None]) if optional else pick.one(there.rows)
    if row is None:
        return dict.fromkeys(optional) | {
            own: _lost(here.columns[own]) for own in pointer.columns if own not in optional
        }
    texts = pointer.as_text
    return {
        own: str(row[target]) if texts and here.columns[own].kind == "text" else row[target]
        for own, target in pointer.pairs
    }


def _lost(column: Column) -> Any:
    return {"number": 99, "text": "lost", "uuid": "0000000f-0000-4000-8000-000000000000"}[column.kind]
