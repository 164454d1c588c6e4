"""Whatever a company calls its tables and columns, the draft speaks of each of them once."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from quick_database import open_quickly

from effaced.draft.draft import draft_map

NOUNS = [
    "customer",
    "users",
    "Kunde",
    "order",
    "invoice",
    "address",
    "note",
    "team",
    "file",
    "log",
    "on",
    "x y",
    "a:b",
]
COLUMNS = [
    "id",
    "email",
    "name",
    "customer_id",
    "userId",
    "KundenNr",
    "parent_id",
    "owner_type",
    "owner_id",
    "created_by",
    "address_id",
    "note",
    "content_type_id",
    "object_id",
    "iban",
    "data",
    "yes",
    "é#",
    "'",
    "order_id",
    "team_id",
]
TYPES = ["integer", "varchar(40)", "text", "date", "json", "boolean", "numeric(8, 2)", "blob", ""]

tables = st.dictionaries(
    st.sampled_from(NOUNS),
    st.dictionaries(
        st.sampled_from(COLUMNS), st.tuples(st.sampled_from(TYPES), st.booleans(), st.booleans()), min_size=1
    ),
    min_size=1,
)
values = st.lists(
    st.sampled_from([None, 1, 2, "Customer", "a@b.example", '{"name": "x"}', "order"]), max_size=3
)


class _Plain(yaml.SafeLoader):
    """Every scalar is the text that stands there."""


_Plain.yaml_implicit_resolvers = {}


@pytest.mark.property
@settings(
    max_examples=int(os.environ.get("EFFACED_EXAMPLES", "25")), suppress_health_check=[HealthCheck.too_slow]
)
@given(schema=tables, rows=values)
def test_every_table_and_column_is_spoken_of_once(schema, rows):
    subject = next(iter(schema))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "company.db"
        _create(path, schema, rows, subject)
        database = open_quickly(f"sqlite:///{path}")
        with database.read() as session:
            told = yaml.load(draft_map(session.connection(), subjects=[subject]).text, _Plain)
        database.dispose()
    tables, rest = told["tables"], [*told.get("review", {}), *told.get("not_personal", [])]
    assert sorted([*tables, *rest]) == sorted(schema)
    assert {name: list(table["columns"]) for name, table in tables.items()} == {
        name: [*schema[name], *(["key"] if name == subject else [])] for name in tables
    }


def _create(path: Path, schema, rows, subject: str) -> None:
    connection = sqlite3.connect(path)
    for name, columns in schema.items():
        parts = [
            f'"{column}" {kind}{" NOT NULL" if needed else ""}{" UNIQUE" if unique else ""}'
            for column, (kind, needed, unique) in columns.items()
        ]
        parts += ["key integer PRIMARY KEY"] if name == subject else []
        connection.execute(f'CREATE TABLE "{name}" ({", ".join(parts)})')
        for value in rows:
            cells = [value] * len(columns) + ([None] if name == subject else [])
            marks = ", ".join("?" * len(cells))
            connection.execute(f'INSERT OR IGNORE INTO "{name}" VALUES ({marks})', cells)
    connection.commit()
    connection.close()
