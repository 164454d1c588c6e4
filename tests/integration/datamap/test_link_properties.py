"""Whatever points at what: links, pointers back, conditions, trees and mentions, on untidy data.

What must come of an erasure is worked out here a second time, in sets of row numbers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.orm import Session

from effaced.datamap.erase import dry_run, erase, erase_and_look
from effaced.datamap.load import load_map
from effaced.datamap.model import Action
from effaced.datamap.plan import plan_erasure
from effaced.db import Database

Ids = frozenset[int]
NAMES = ["people", "a", "b", "c", "d"]
ALICE = 0


@dataclass
class Pointer:
    """A column of `table` that holds ids of `to`."""

    table: int
    to: int
    foreign_key: bool

    @property
    def name(self) -> str:
        return f"p_{NAMES[self.table]}_{NAMES[self.to]}"


@dataclass
class Link:
    pointer: Pointer
    back: bool = False
    where: str | None = None


@dataclass
class World:
    tables: int
    stays: list[bool]
    pointers: list[Pointer] = field(default_factory=list)
    links: dict[int, list[Link]] = field(default_factory=dict)
    rows: dict[int, dict[int, dict[str, Any]]] = field(default_factory=dict)

    def of(self, table: int) -> list[Pointer]:
        return [each for each in self.pointers if each.table == table]

    def mentions(self) -> list[Pointer]:
        """Pointers at rows that may go, from rows that no plain link makes the person's."""
        plain = [
            each.pointer
            for links in self.links.values()
            for each in links
            if not each.back and not each.where
        ]
        return [each for each in self.pointers if each not in plain]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(2, 5))
    world = World(count, [draw(st.booleans()) for _ in range(count)])

    def pointer(table: int, to: int) -> Pointer:
        found = [each for each in world.pointers if (each.table, each.to) == (table, to)]
        if not found:
            found = [Pointer(table, to, draw(st.booleans()))]
            world.pointers += found
        return found[0]

    for table in range(1, count):
        links = []
        for other in draw(st.lists(st.integers(0, table - 1), min_size=1, max_size=2, unique=True)):
            back = draw(st.booleans())
            where = draw(st.sampled_from([None, None, "x"]))
            ends = (other, table) if back else (table, other)
            links.append(Link(pointer(*ends), back, where))
        if draw(st.integers(0, 4)) == 0 and not all(each.back for each in links):
            links.append(Link(pointer(table, table)))
        world.links[table] = links
    for _ in range(draw(st.integers(0, 2))):
        pointer(draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1)))
    for table in range(count):
        numbers = range(3 if table == 0 else draw(st.integers(0, 5)))
        world.rows[table] = {number: {} for number in numbers}
    for table, rows in world.rows.items():
        for row in rows.values():
            row["kind"] = draw(st.sampled_from(["x", "x", "y", None]))
            row["note"] = draw(st.sampled_from(["note", None]))
            for each in world.of(table):
                row[each.name] = draw(st.sampled_from([None, *world.rows[each.to]]))
    return world


# --- what must come of it, in sets --------------------------------------------------------------------


def person(world: World, table: int, but_through: Ids = frozenset()) -> Ids:
    """The rows of the table that are Alice's."""
    if table == 0:
        return frozenset({ALICE})
    found: set[int] = set()
    for link in world.links[table]:
        other = link.pointer.table if link.back else link.pointer.to
        if other == table or other in but_through:
            continue
        theirs = person(world, other, but_through)
        for number, row in world.rows[table].items():
            if link.where and row["kind"] != link.where:
                continue
            if not link.back and row[link.pointer.name] in theirs:
                found.add(number)
            pointed_at = link.back and any(
                world.rows[other][each][link.pointer.name] == number for each in theirs
            )
            if pointed_at and alone(world, table, number, but_through | {table}):
                found.add(number)
    within = [link for link in world.links[table] if link.pointer.to == link.pointer.table == table]
    while within:
        below = {n for n, row in world.rows[table].items() if row[within[0].pointer.name] in found} - found
        if not below:
            break
        found |= below
    return frozenset(found)


def alone(world: World, table: int, number: int, but_through: Ids) -> bool:
    """Whether nobody else's row points at this one, by a link back or by a foreign key."""
    backs = [link.pointer for link in world.links[table] if link.back]
    # A plain link goes by it: such rows are Alice's because of this one, whatever else the link asks for.
    followers = [
        each.pointer
        for links in world.links.values()
        for each in links
        if not each.back and each.pointer.to == table
    ]
    for pointer in world.pointers:
        points = pointer in backs or (
            pointer.to == table and pointer.foreign_key and pointer not in followers
        )
        if not points:
            continue
        known = pointer.table not in but_through
        mine = person(world, pointer.table, but_through) if known else frozenset()
        for other, row in world.rows[pointer.table].items():
            if row[pointer.name] == number and other not in mine:
                return False
    return True


def expected(world: World) -> tuple[dict[int, dict[int, dict[str, Any]]], dict[str, int]]:
    """The rows afterwards, and how many were touched under which name."""
    mine = {table: person(world, table) for table in range(world.tables)}
    after: dict[int, dict[int, dict[str, Any]]] = {}
    counts: dict[str, int] = {}
    for table in range(world.tables):
        after[table] = {}
        emptied = [each.name for each in world.of(table)]
        touched = 0
        for number, row in world.rows[table].items():
            new = dict(row)
            if number in mine[table]:
                if not world.stays[table]:
                    touched += 1
                    continue
                new |= dict.fromkeys([*emptied, "note"])
                touched += new != row
            else:
                for each in world.mentions():
                    if each.table == table and row[each.name] in mine[each.to] and row[each.name] is not None:
                        new[each.name] = None
                        counts[f"{NAMES[table]} (detached)"] = counts.get(f"{NAMES[table]} (detached)", 0) + 1
            after[table][number] = new
        counts[NAMES[table]] = touched
    return after, counts


# --- the database and the map -------------------------------------------------------------------------


def declared(world: World, table: int) -> dict[str, Any]:
    stays = world.stays[table]
    columns: dict[str, Any] = {"id": "not_personal", "kind": "not_personal"}
    columns["note"] = {"anonymise": None} if stays else "delete"
    columns |= {each.name: "delete" for each in world.of(table)}
    said: dict[str, Any] = {"columns": columns}
    if table:
        said["link"] = [
            {
                ("from" if link.back else "to"): NAMES[link.pointer.table if link.back else link.pointer.to],
                "on": {"id": link.pointer.name} if link.back else {link.pointer.name: "id"},
                **({"where": {"kind": link.where}} if link.where else {}),
            }
            for link in world.links[table]
        ]
    mentions = [
        {"to": NAMES[each.to], "on": {each.name: "id"}, "columns": {each.name: "delete"}}
        for each in world.mentions()
        if each.table == table
    ]
    return said | ({"mentions": mentions} if mentions else {})


def create(session: Session, world: World) -> None:
    sqlite = session.connection().dialect.name == "sqlite"
    for table in range(world.tables):
        pointers = "".join(
            f", {each.name} integer"
            + (f" REFERENCES {NAMES[each.to]}" if each.foreign_key and sqlite else "")
            for each in world.of(table)
        )
        session.execute(
            text(
                f"CREATE TABLE {NAMES[table]} (id integer PRIMARY KEY, kind varchar(5), note text{pointers})"
            )
        )
    for table, rows in world.rows.items():
        for number, row in rows.items():
            plain = {name: value for name, value in row.items() if not name.startswith("p_")}
            names = ", ".join(plain)
            values = ", ".join(f":{name}" for name in plain)
            session.execute(
                text(f"INSERT INTO {NAMES[table]} (id, {names}) VALUES ({number}, {values})"), plain
            )
    for each in world.pointers:
        for number, row in world.rows[each.table].items():
            session.execute(
                text(f"UPDATE {NAMES[each.table]} SET {each.name} = :to WHERE id = {number}"),
                {"to": row[each.name]},
            )
        if each.foreign_key and not sqlite:
            to = NAMES[each.to]
            session.execute(
                text(f"ALTER TABLE {NAMES[each.table]} ADD FOREIGN KEY ({each.name}) REFERENCES {to}")
            )


def look(session: Session, world: World) -> dict[int, dict[int, dict[str, Any]]]:
    return {
        table: {
            row["id"]: {name: value for name, value in row.items() if name != "id"}
            for row in session.execute(text(f"SELECT * FROM {NAMES[table]}")).mappings()
        }
        for table in range(world.tables)
    }


@pytest.mark.property
@settings(
    max_examples=int(os.environ.get("EFFACED_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(world=worlds())
def test_an_erasure_does_what_the_links_say_and_nothing_else(
    company_database: Database, tmp_path: Path, world: World
) -> None:
    tables = {NAMES[table]: declared(world, table) for table in range(world.tables)}
    said = {"version": 1, "subject": {"table": "people", "key": "id"}, "tables": tables}
    (tmp_path / "datamap.yaml").write_text(yaml.safe_dump(said))
    with company_database.sessions() as session:  # never committed: each example leaves the database empty
        create(session, world)
        assert look(session, world) == world.rows
        plan = plan_erasure(session.connection(), load_map(tmp_path / "datamap.yaml"))
        after, counts = expected(world)
        foreseen = dry_run(session, plan, str(ALICE))
        assert look(session, world) == world.rows
        erased = erase_and_look(session, plan, str(ALICE))
        done, left = erased.effects, erased.left
        assert foreseen == done
        assert left == {}
        told: dict[str, int] = {}
        for effect in done:
            rows = 0 if effect.action is Action.RETAINED else effect.rows
            told[effect.label] = told.get(effect.label, 0) + rows
        assert after == look(session, world)
        assert {name: rows for name, rows in counts.items() if rows} == {n: r for n, r in told.items() if r}
        assert all(effect.changed == 0 for effect in erase(session, plan, str(ALICE)))
        assert after == look(session, world)
