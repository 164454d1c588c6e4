"""A part of the map: found by any name, with its way to the people, under the whole map's hash."""

from __future__ import annotations

from pathlib import Path

import pytest

from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.show.subset import find_tables, restrict_to_tables

MAP = """
version: 1
subject: {table: people, key: id}
tables:
  people: {columns: {id: not_personal, name: delete}}
  orders: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete}}
  lines: {link: {to: orders, on: {order_id: id}}, columns: {order_id: delete, Engraving: delete}}
  visits:
    mentions: {to: people, on: {guest: id}, columns: {guest: {anonymise: null}}}
    columns: {guest: not_personal}
not_personal: [countries, products]
"""


@pytest.fixture
def whole(tmp_path: Path) -> DataMap:
    path = tmp_path / "datamap.yaml"
    path.write_text(MAP)
    return load_map(path)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("ORDER", ["orders", "lines"]),
        ("engrav", ["lines"]),
        ("ount", ["countries"]),
        ("nowhere", []),
    ],
)
def test_names_of_tables_and_columns_are_looked_at_in_any_case(
    whole: DataMap, word: str, expected: list[str]
) -> None:
    assert expected == find_tables(whole, word)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["lines"], ["people", "orders", "lines"]),
        (["visits", "countries"], ["people", "visits"]),
        (["countries"], []),
    ],
)
def test_what_is_on_the_way_to_the_people_is_there_too(
    whole: DataMap, names: list[str], expected: list[str]
) -> None:
    assert expected == list(restrict_to_tables(whole, names).tables)


def test_a_part_goes_by_the_hash_of_the_whole(whole: DataMap) -> None:
    assert restrict_to_tables(whole, ["orders"]).hash == whole.hash
