"""Every error that the API answers is explained on the page that it links to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from effaced.api.openapi.errors import FIELD_CODES, PROBLEM_TYPES
from effaced.api.operations import problems, validation
from effaced.api.operations.problems import Kind

PACKAGE = Path(__file__).parents[3] / "effaced"
KINDS = [each for each in vars(problems).values() if isinstance(each, Kind)]
KINDS += [kind for kind, _ in problems._BY_STATUS.values()]


def codes_in(path: Path) -> Iterator[str]:
    """The codes that a module gives to problems: as `code=`, or in the context of an error of pydantic."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            values: list[ast.expr] = []
            if node.func.id == "Problem":
                values = [each.value for each in node.keywords if each.arg == "code"]
            elif node.func.id in ("PydanticCustomError", "_wrong_value"):
                values = [part for each in node.args for part in contents(each)]
            for value in values:
                if isinstance(value, ast.Constant) and isinstance(value.value, str) and is_code(value.value):
                    yield value.value.replace("-", "_")


def contents(value: ast.expr) -> list[ast.expr]:
    return value.values if isinstance(value, ast.Dict) else [value]


def is_code(text: str) -> bool:
    return text != "value" and text.replace("_", "").replace("-", "").isalpha() and text.islower()


def test_every_code_of_a_field_is_explained() -> None:
    used = {code for path in PACKAGE.rglob("*.py") for code in codes_in(path)}
    used |= {code for code, _ in validation._WORDS.values()} | {"invalid"}
    assert {"erased", "too_large", "missing_scope"} <= used, "they are found"
    assert used == set(FIELD_CODES), "explain them in effaced/api/openapi/errors.py"


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.slug)
def test_every_type_of_problem_is_explained(kind: Kind) -> None:
    assert [each.kind for each in PROBLEM_TYPES].count(kind) == 1


def test_codes_are_in_the_order_of_the_alphabet() -> None:
    assert list(FIELD_CODES) == sorted(FIELD_CODES)
