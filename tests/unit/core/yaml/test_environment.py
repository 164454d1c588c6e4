"""`${NAME}` becomes the value of an environment variable; what is missing is named, never shown."""

from __future__ import annotations

from typing import Any

import pytest

from effaced.core.yaml.environment import fill_in
from effaced.core.yaml.file import Place


def filled(value: Any, **environ: str) -> tuple[Any, list[tuple[Place, str]]]:
    complaints: list[tuple[Place, str]] = []
    return fill_in(value, environ, lambda *each: complaints.append(each)), complaints


def test_variables_are_replaced_at_any_depth_and_within_a_text() -> None:
    value = {"a": ["x-${NAME}-y", {"b": "${NAME}"}], "c": 3, "d": None}
    assert filled(value, NAME="v") == ({"a": ["x-v-y", {"b": "v"}], "c": 3, "d": None}, [])


def test_a_variable_that_is_not_set_or_empty_is_named_with_its_place() -> None:
    _, complaints = filled({"a": ["${GONE}", "${EMPTY}"]}, EMPTY="")
    assert complaints == [
        (("a", 0), "the environment variable GONE is not set or is empty"),
        (("a", 1), "the environment variable EMPTY is not set or is empty"),
    ]


@pytest.mark.parametrize("text", ["${}", "${1A}", "${A-B}", "${A"])
def test_a_malformed_name_is_a_complaint(text: str) -> None:
    _, complaints = filled(text, A="v")
    assert [message for _, message in complaints] == [
        "expected ${NAME} with letters, digits and underscores in the name"
    ]
