"""Editing a JSON text by paths, as it is done on SQLite."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effaced.datamap.model.data_map import ColumnRule, Strategy
from effaced.datamap.model.json_paths import as_tree, parse_path
from effaced.datamap.surrogates.json_edit import REMOVED, edit

RULE = ColumnRule(Strategy.DELETE)


def change(text: str, *paths: str, to: Any = REMOVED) -> str:
    tree = as_tree((path, RULE) for each in paths if (path := parse_path(each)))
    return edit(text, tree, lambda _, value: value if value == to else to)


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ('{"a": 1, "b": 2}', "$.a", '{"b": 2}'),
        ('{"a": 1, "b": 2}', "$.b", '{"a": 1}'),
        ('{"a": 1}', "$.a", "{}"),
        ('{"a": 1, "a": 2, "b": 3}', "$.a", '{"b": 3}'),
        ('{"\\u0061": 1}', "$.a", "{}"),
        ('{"x": {"a": {"deep": [1]}, "b": 1.50}}', "$.x.a", '{"x": {"b": 1.50}}'),
        ('[{"a": 1}, {"b": 2}, 3]', "$[*].a", '[{}, {"b": 2}, 3]'),
        ('{"l": [[{"a": 1}], [{"a": 2, "c": null}]]}', "$.l[*][*].a", '{"l": [[{}], [{"c": null}]]}'),
        ('{"l": ["x", "y"]}', "$.l[*]", '{"l": []}'),
        ('[{"a": 1}, {"a": 2}]', "$[1].a", '[{"a": 1}, {}]'),
        ('{"n": 12345678901234567890123.10, "a": 1}', "$.a", '{"n": 12345678901234567890123.10}'),
        ('{"n": "\\u00fc\\ud83d\\ude00", "a": 1}', "$.a", '{"n": "\\u00fc\\ud83d\\ude00"}'),
        ('{"n": ' + "9" * 5000 + ', "a": 1}', "$.a", '{"n": ' + "9" * 5000 + "}"),
    ],
)
def test_what_a_path_leads_to_goes_and_the_rest_is_as_written(text, path, left):
    assert left == change(text, path)


@pytest.mark.parametrize(
    "text",
    [
        ' { "b" : 1 , "c":[ ] } ',
        '{"x": "a"}',
        "[]",
        "{}",
        "null",
        '"a"',
        "17",
        '{"x": [{"a": 1}]}',
        '{"x": null}',
    ],
)
def test_a_document_without_the_path_stays_byte_for_byte(text):
    assert text == change(text, "$.a", "$.x.a")


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a" 1}', '{"a": 1,}', "[1 2]", "{a: 1}", '{"a": NaN}', "{} {}", "[1,]", "nul", "[" * 9000],
)
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        change(text, "$.a", "$[*].a")


def test_a_value_is_replaced_by_another():
    left = change('{"a": {"any": "thing"}, "b": [1, null]}', "$.a", "$.b[*]", to="erased")
    assert left == '{"a": "erased", "b": ["erased", "erased"]}'


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=20,
)


def without(value: Any, path: tuple[Any, ...]) -> Any:
    """The same in the plainest way, on parsed documents."""
    step, *rest = path
    if isinstance(value, dict) and step in value:
        if not rest:
            return {name: each for name, each in value.items() if name != step}
        return {name: without(each, tuple(rest)) if name == step else each for name, each in value.items()}
    if isinstance(value, list) and step is None:
        return [without(each, tuple(rest)) for each in value] if rest else []
    return value


@given(document=documents, path=st.sampled_from(["$.a", "$[*].a", "$.a.b", "$.b[*].c", "$[*][*]", "$.a[*]"]))
def test_editing_the_text_is_editing_the_document(document, path):
    steps = parse_path(path)
    assert steps is not None
    assert without(document, steps) == json.loads(change(json.dumps(document, indent=1), path))
