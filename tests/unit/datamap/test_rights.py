"""Which columns a role must be able to read and change."""

from __future__ import annotations

import pytest
from live_tables import live_schema, live_table, read_map

from effaced.datamap.compile.rights import (
    columns_pointing_at_shared_rows,
    columns_read,
    columns_written,
    needs_delete,
)

MAP = read_map(
    """
    subject: {table: people, key: id}
    identifiers: {email: email}
    tables:
      people:
        columns: {id: not_personal, email: {anonymise: null}, home: not_personal, points: not_personal}
      homes: {link: {from: people, on: {id: home}}, columns: {id: delete, street: delete}}
      orders:
        link: {to: people, on: {person: id}}
        columns:
          person: not_personal
          issued: not_personal
          total: {retain: {basis: tax law, until: issued + 10 years}}
    rectify: {street: homes.street}
    """
)
SCHEMA = live_schema(
    live_table("people", "id:int email home:int? points:int"),
    live_table("homes", "id:int street"),
    live_table("orders", "person:int issued:date total:int", primary=()),
)


@pytest.mark.parametrize(
    ("table", "read", "written", "deleted"),
    [
        ("people", {"id", "email", "home"}, {"email"}, False),
        ("homes", {"id", "street"}, {"street"}, True),
        ("orders", {"person", "issued", "total"}, set(), True),
    ],
)
def test_a_role_needs_what_the_statements_use_and_no_more(
    table: str, read: set[str], written: set[str], deleted: bool
) -> None:
    rule = MAP.tables[table]

    assert columns_read(SCHEMA, MAP, rule) == read
    assert columns_written(MAP, rule) == written
    assert needs_delete(rule) is deleted


def test_a_table_that_points_at_shared_rows_is_read_for_it() -> None:
    assert columns_pointing_at_shared_rows(SCHEMA, MAP, "people") == {"home"}
    assert columns_pointing_at_shared_rows(SCHEMA, MAP, "orders") == set()
