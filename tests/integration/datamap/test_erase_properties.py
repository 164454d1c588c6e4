"""Whatever the schema and the data: erasing Alice does what the map says of her, and nothing else."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import (
    Column,
    Date,
    DateTime,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
    select,
    text,
    type_coerce,
    types,
)
from sqlalchemy.orm import Session

from effaced.datamap.erase import count_reachable, dry_run, erase
from effaced.datamap.key import join_id
from effaced.datamap.load import load_map
from effaced.datamap.plan import plan_erasure
from effaced.datamap.subject import find_subject
from effaced.db import Database

PEOPLE = ["alice", "bob", "carol"]
NOBODY = "nobody"
TABLE_NAMES = [
    ["people", "orders", "lines", "notes", "logs"],
    ["People", "select", 'odd "name" %s', "a.b:c (d)", "ÄÖÜ x"],
]
COLUMN_NAMES = [["c0", "c1", "c2", "c3"], ["Na me", "where", "100%(x)s", 'q"u:o.te']]
Rows = dict[tuple[Any, ...], dict[str, Any]]
RANDOM = re.compile(r"erased-[0-9a-f]{16,32}")


@dataclass
class ColumnSpec:
    name: str
    kind: str  # int | text | date | datetime
    rule: dict[str, Any] | str = "delete"
    nullable: bool = False
    unique: bool = False
    length: int | None = None

    @property
    def strategy(self) -> str:
        return self.rule if isinstance(self.rule, str) else next(iter(self.rule))

    @property
    def surrogate(self) -> str | None:
        """What is written when the row stays; None if the cell is left alone."""
        if self.strategy == "delete":
            return "null"
        if isinstance(self.rule, dict) and "anonymise" in self.rule:
            return self.rule["anonymise"] or "null"
        return None


@dataclass
class LinkSpec:
    to: TableSpec
    pairs: list[tuple[str, str]]
    foreign_key: str | None  # None, or its ON DELETE


@dataclass
class TableSpec:
    name: str
    key: list[str]
    columns: dict[str, ColumnSpec]
    links: list[LinkSpec] = field(default_factory=list)
    stays: bool = False
    rows: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # (owner, cells)

    def key_of(self, cells: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(cells[name] for name in self.key)


# --- schemas and their maps --------------------------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn) -> list[TableSpec]:
    """One to five tables, the first of which is the subject's, with data for several people."""
    names = draw(st.sampled_from(TABLE_NAMES))[: draw(st.integers(1, 5))]
    column_names = draw(st.sampled_from(COLUMN_NAMES))
    tables: list[TableSpec] = []
    for name in names:
        table = draw_table(draw, name, tables)
        draw_columns(draw, table, column_names)
        tables.append(table)
    for table in tables:
        draw_rows(draw, table, is_subject=table is tables[0])
    return tables


def draw_table(draw: st.DrawFn, name: str, earlier: list[TableSpec]) -> TableSpec:
    keys = [f"k{i}" for i in range(draw(st.sampled_from([1, 1, 2])))]
    columns = {key: ColumnSpec(key, draw(st.sampled_from(["int", "text"]))) for key in keys}
    columns["alt"] = ColumnSpec("alt", "text", unique=True)
    table = TableSpec(name, keys, columns, stays=draw(st.booleans()))
    if earlier:
        parents = st.lists(st.sampled_from(range(len(earlier))), min_size=1, max_size=2, unique=True)
        for number, index in enumerate(draw(parents)):
            table.links.append(draw_link(draw, table, earlier[index], number))
    return table


def draw_link(draw: st.DrawFn, table: TableSpec, parent: TableSpec, number: int) -> LinkSpec:
    targets = draw(st.sampled_from([parent.key, parent.key, ["alt"]]))
    pairs = []
    for target in targets:
        own = f"l{number}_{target}"
        table.columns[own] = ColumnSpec(own, parent.columns[target].kind, nullable=draw(st.booleans()))
        pairs.append((own, target))
    return LinkSpec(parent, pairs, draw(st.sampled_from([None, None, "NO ACTION", "CASCADE"])))


def draw_columns(draw: st.DrawFn, table: TableSpec, names: list[str]) -> None:
    """More columns, and a rule for each that the map's checks allow."""
    must_cut = [link for link in table.links if table.stays and loses(link)]
    for link in table.links:
        for own, _ in link.pairs:
            table.columns[own].rule = draw(untouched(table.stays))
        if link in must_cut or (table.stays and draw(st.booleans())):
            table.columns[link.pairs[0][0]].nullable = True
            table.columns[link.pairs[0][0]].rule = draw(st.sampled_from(["delete", {"anonymise": None}]))
    for key in table.key:
        table.columns[key].rule = draw(untouched(table.stays))
    alt = st.one_of(untouched(table.stays), st.just({"anonymise": "random_unique"}))
    table.columns["alt"].rule = draw(alt if table.stays else untouched(stays=False))
    for name in names[: draw(st.integers(1, 4))]:
        column = ColumnSpec(
            name,
            draw(st.sampled_from(["int", "text", "text", "date", "datetime"])),
            nullable=draw(st.booleans()),
            unique=draw(st.booleans()),
            length=draw(st.sampled_from([None, 23, 30, 60])),
        )
        column.rule = draw(fitting(column) if table.stays else st.sampled_from(["delete", "not_personal"]))
        table.columns[name] = column
    # Something must say what happens to the rows.
    last = table.columns[name]
    if table.stays and not any(keeps(column) for column in table.columns.values()):
        last.rule = {"retain": {"basis": "tax law"}}
    elif not table.stays and all(column.rule == "not_personal" for column in table.columns.values()):
        last.rule = "delete"


def loses(link: LinkSpec) -> bool:
    """Whether a row that stays would be left pointing at nothing, against the rules."""
    if not link.to.stays:
        return True
    changed = any(link.to.columns[target].surrogate for _, target in link.pairs)
    return changed and link.foreign_key is not None


def keeps(column: ColumnSpec) -> bool:
    return column.strategy in ("retain", "anonymise")


def untouched(stays: bool) -> st.SearchStrategy[Any]:
    retain = {"retain": {"basis": "tax law"}}
    return st.sampled_from(["not_personal", retain if stays else "delete"])


def fitting(column: ColumnSpec) -> st.SearchStrategy[Any]:
    rules: list[Any] = ["not_personal", {"retain": "tax law, ten years"}]
    if column.nullable:
        rules += ["delete", {"anonymise": "null"}, {"anonymise": None}]
    if column.kind == "text":
        rules += [{"anonymise": "random_unique"}]
        rules += [] if column.unique else [{"anonymise": "fixed_text", "text": "gone"}]
    if column.kind in ("date", "datetime") and not column.unique:
        rules += [{"anonymise": "truncated_date", "to": to} for to in ("year", "month")]
    return st.sampled_from(rules)


# --- data --------------------------------------------------------------------------------------------


def draw_rows(draw: st.DrawFn, table: TableSpec, *, is_subject: bool) -> None:
    owners = PEOPLE if is_subject else draw(st.lists(st.sampled_from(["alice", *PEOPLE, NOBODY]), max_size=8))
    for number, owner in enumerate(owners):
        links = draw_parents(draw, table, owner)
        if links is None:
            continue
        cells = {name: cell(draw, column, number) for name, column in table.columns.items()}
        # Composite keys agree in their first part, so that only the whole key tells people apart.
        for part, name in enumerate(table.key):
            same = len(table.key) > 1 and part == 0
            value = 7 if same else number
            cells[name] = value if table.columns[name].kind == "int" else f"k|\\ü'{value}"
        cells["alt"] = f"{table.name[:3]}-{number}"
        table.rows.append((owner, cells | links))


def draw_parents(draw: st.DrawFn, table: TableSpec, owner: str) -> dict[str, Any] | None:
    """Link cells that lead to rows of the owner; None if the row would not be theirs.

    Where a link's column may be NULL, some rows hang on their other link only, or on none: nobody's.
    """
    cells: dict[str, Any] = {}
    held = False
    for link in table.links:
        theirs = [row for name, row in link.to.rows if name == owner]
        nullable = [own for own, _ in link.pairs if table.columns[own].nullable]
        if theirs and not (nullable and draw(st.booleans())):
            parent = draw(st.sampled_from(theirs))
            cells |= {own: parent[target] for own, target in link.pairs}
            held = True
        elif nullable:
            cells |= {own: "lost" if table.columns[own].kind == "text" else 7 for own, _ in link.pairs}
            cells |= dict.fromkeys(nullable)
        else:
            return None
    return cells if held or not table.links or owner == NOBODY else None


def cell(draw: st.DrawFn, column: ColumnSpec, number: int) -> Any:
    if column.nullable and draw(st.integers(0, 3)) == 0:
        return None
    if column.kind == "int":
        return number if column.unique else draw(st.integers(0, 9))
    if column.kind == "text":
        start = draw(st.sampled_from(["x", "gone", "erased-", "Ünï%_'", ""]))
        return f"{start}{number}" if column.unique else start
    day = date(1980, 1, 1) + timedelta(days=number if column.unique else draw(st.sampled_from([0, 31, 45])))
    if column.kind == "date":
        return day
    return datetime.combine(day, time(draw(st.sampled_from([0, 13]))))


# --- the database ------------------------------------------------------------------------------------


KINDS = {"int": Integer, "date": Date, "datetime": DateTime}


def create(session: Session, world: list[TableSpec]) -> dict[str, Table]:
    metadata = MetaData()
    for spec in world:
        columns = [
            Column(c.name, String(c.length) if c.kind == "text" else KINDS[c.kind](), nullable=c.nullable)
            for c in spec.columns.values()
        ]
        unique = [UniqueConstraint(c.name) for c in spec.columns.values() if c.unique]
        pointing = [
            ForeignKeyConstraint(
                [own for own, _ in link.pairs],
                [metadata.tables[link.to.name].c[target] for _, target in link.pairs],
                ondelete=link.foreign_key,
            )
            for link in spec.links
            if link.foreign_key
        ]
        Table(spec.name, metadata, *columns, PrimaryKeyConstraint(*spec.key), *unique, *pointing)
    metadata.create_all(session.connection(), checkfirst=False)
    for spec in world:
        for _, cells in spec.rows:
            session.execute(metadata.tables[spec.name].insert().values(cells))
    return dict(metadata.tables)


def snapshot(session: Session, world: list[TableSpec], tables: dict[str, Table]) -> dict[str, Rows]:
    """Every cell as the driver gives it, by table and key."""
    seen = {}
    for spec in world:
        names = list(spec.columns)
        raw = [type_coerce(tables[spec.name].c[name], types.NullType()).label(None) for name in names]
        rows = [dict(zip(names, row, strict=True)) for row in session.execute(select(*raw))]
        seen[spec.name] = {spec.key_of(row): row for row in rows}
    return seen


def write_map(world: list[TableSpec], path: Path) -> None:
    subject = world[0]
    path.write_text(
        yaml.safe_dump(
            {
                "version": 1,
                "subject": {"table": subject.name, "key": subject.key},
                "identifiers": {"other": "alt"},
                "refs": {"folder": {"template": "x/{alt}/"}},
                "tables": {spec.name: declared(spec) for spec in world},
            }
        )
    )


def declared(spec: TableSpec) -> dict[str, Any]:
    links = [{"to": link.to.name, "on": dict(link.pairs)} for link in spec.links]
    columns = {name: column.rule for name, column in spec.columns.items()}
    return {"link": links, "columns": columns} if links else {"columns": columns}


# --- what must come of it ----------------------------------------------------------------------------


def is_final(column: ColumnSpec, before: Any) -> bool:
    """Whether a cell of a row that stays already is as it shall be."""
    if before is None or column.surrogate is None:
        return True
    match column.surrogate:
        case "fixed_text":
            return bool(before == "gone")
        case "truncated_date":
            return as_expected(column, before, before)
    return False


def as_expected(column: ColumnSpec, before: Any, after: Any) -> bool:
    """Whether the cell of a row that stays is what the map says."""
    if column.surrogate is None or before is None:
        return bool(after == before)
    match column.surrogate:
        case "null":
            return after is None
        case "fixed_text":
            return bool(after == "gone")
        case "random_unique":
            return RANDOM.fullmatch(after) is not None and len(after) <= (column.length or 39)
        case _:
            assert isinstance(column.rule, dict)
            day = f"{str(before)[:4]}-01-01" if column.rule["to"] == "year" else f"{str(before)[:7]}-01"
            return str(after) == (day if column.kind == "date" else f"{day} 00:00:00")


def expected_counts(spec: TableSpec, before: Rows, owner: str) -> int:
    rows = [before[spec.key_of(cells)] for name, cells in spec.rows if name == owner]
    if spec.stays and any(column.surrogate for column in spec.columns.values()):
        return sum(any(not is_final(c, row[n]) for n, c in spec.columns.items()) for row in rows)
    return len(rows)


@pytest.mark.property
@settings(
    max_examples=int(os.environ.get("EFFACED_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(world=worlds())
def test_erasing_alice_does_what_the_map_says_and_touches_nothing_else(
    company_database: Database, tmp_path: Path, world: list[TableSpec]
) -> None:
    write_map(world, tmp_path / "datamap.yaml")
    with company_database.sessions() as session:  # never committed: each example leaves the database empty
        tables = create(session, world)
        plan = plan_erasure(session.connection(), load_map(tmp_path / "datamap.yaml"))
        before = snapshot(session, world, tables)
        alice = join_id(world[0].key_of(world[0].rows[0][1]))
        subject = find_subject(session, plan, alice)
        assert subject is not None
        assert alice == subject.subject_id

        foreseen = dry_run(session, plan, alice)
        assert before == snapshot(session, world, tables)
        assert {s.name: expected_counts(s, before[s.name], "alice") for s in world} == {
            effect.table: effect.rows for effect in foreseen
        }
        assert foreseen == erase(session, plan, alice)

        after = snapshot(session, world, tables)
        for spec in world:
            check_rows(spec, before[spec.name], after[spec.name])
        assert count_reachable(session, plan, alice) == {}
        assert all(effect.changed == 0 for effect in erase(session, plan, alice))
        assert after == snapshot(session, world, tables)
        check_foreign_keys(session)


def check_rows(spec: TableSpec, before: Rows, after: Rows) -> None:
    expected = Counter(before)
    for owner, cells in spec.rows:
        key = spec.key_of(cells)
        if owner != "alice":
            assert before[key] == after[key], f"{spec.name}: a row of {owner} changed"
        elif not spec.stays:
            del expected[key]
        else:
            for name, column in spec.columns.items():
                assert as_expected(column, before[key][name], after[key][name]), f"{spec.name}.{name}"
    assert set(expected) == set(after), f"{spec.name}: the wrong rows are there"


def check_foreign_keys(session: Session) -> None:
    if session.connection().dialect.name == "sqlite":
        assert session.execute(text("PRAGMA foreign_key_check")).all() == []
