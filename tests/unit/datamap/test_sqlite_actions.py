"""Pointers within a table that SQLite would act on by itself."""

from __future__ import annotations

import pytest
from live_tables import live_schema, live_table, read_map

from effaced.datamap.compile.sqlite_actions import self_references_to_clear

MAP = """
    subject: {table: people, key: id}
    tables: {people: {columns: {id: RULE, boss: delete}}}
    """


@pytest.mark.parametrize(
    ("dialect", "key", "rule", "expected"),
    [
        ("sqlite", "people.boss -> people.id cascade", "delete", {"people": {"boss"}}),
        ("sqlite", "people.boss -> people.id", "delete", {}),
        ("sqlite", "people.boss -> people.id cascade", "{retain: tax law}", {}),
        ("postgresql", "people.boss -> people.id cascade", "delete", {}),
    ],
)
def test_only_pointers_that_sqlite_acts_on_are_cleared_first(
    dialect: str, key: str, rule: str, expected: dict[str, set[str]]
) -> None:
    schema = live_schema(live_table("people", "id:int boss:int?"), keys=(key,), dialect=dialect)

    assert self_references_to_clear(schema, read_map(MAP.replace("RULE", rule))) == expected
