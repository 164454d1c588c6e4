"""Paths into JSON documents: how they are read, shown and compared."""

from __future__ import annotations

import pytest

from effaced.datamap.model.data_map import ColumnRule, JsonPath, Strategy
from effaced.datamap.model.json_paths import as_tree, overlap, parse_path, show_path

PATHS: list[tuple[str, JsonPath]] = [
    ("$.name", ("name",)),
    ("$.address.city", ("address", "city")),
    ("$.list[*].x", ("list", None, "x")),
    ("$.list[0]", ("list", 0)),
    ('$["a name"]', ("a name",)),
    ("""$['say "hi"']""", ('say "hi"',)),
]


@pytest.mark.parametrize(("text", "path"), PATHS)
def test_a_path_is_read_and_shown_as_it_is_written(text: str, path: JsonPath) -> None:
    assert parse_path(text) == path
    assert show_path(path) == text


@pytest.mark.parametrize("text", ["", "$", "name", "$.", "$..name", "$.list[-1]", "$.list[01]", "$.a b"])
def test_what_is_no_path_or_means_the_whole_document_is_refused(text: str) -> None:
    assert parse_path(text) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("$.name", "$.name", True),
        ("$.name", "$.name.first", True),
        ("$.list[*].x", "$.list[0].y", True),
        ("$.list[0]", "$.list[1]", False),
        ("$.name", "$.email", False),
        ("$.a[*]", "$.a.b", False),
    ],
)
def test_paths_overlap_when_one_value_can_be_at_both(one: str, other: str, expected: bool) -> None:
    first, second = parse_path(one), parse_path(other)
    assert first is not None
    assert second is not None

    assert overlap(first, second) is overlap(second, first) is expected


def test_the_tree_holds_each_rule_at_the_end_of_its_path() -> None:
    name, item = ColumnRule(Strategy.DELETE, line=1), ColumnRule(Strategy.DELETE, line=2)
    tree = as_tree([(("person", "name"), name), (("list", None, "x"), item)])

    assert tree.members["person"].members["name"].rule is name
    assert tree.members["list"].in_arrays
    every = tree.members["list"].every
    assert every is not None
    assert every.members["x"].rule is item
