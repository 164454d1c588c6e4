"""Codes are for programs: each is listed with its meaning, and what is listed is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from pydantic_core.core_schema import ErrorType

import effaced
from effaced.api.operations.codes import CODES
from effaced.api.operations.validation import _WORDS
from effaced.core.strict import code_of
from effaced.retention.begin import _WHY_NOT

PACKAGE = Path(effaced.__file__).parent
PYDANTIC = get_args(ErrorType)


def literals(node: ast.AST) -> Iterator[str]:
    """The texts that this expression can be, as far as it says so itself."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from literals(node.body)
        yield from literals(node.orelse)


def codes_in(path: Path) -> Iterator[tuple[str, str]]:
    """The codes that a module gives to problems, and where."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in ("Problem", "_conflict", "_wrong_value"):
            last = node.args[1:2] if name == "_wrong_value" else node.args[2:3]
            given = [each.value for each in node.keywords if each.arg == "code"] + last
            for each in given:
                yield from ((code, f"{path.relative_to(PACKAGE)}:{node.lineno}") for code in literals(each))


@cache
def used() -> dict[str, str]:
    found = {code: place for path in PACKAGE.rglob("*.py") for code, place in codes_in(path)}
    found |= {state.value: "retention/begin.py" for state in _WHY_NOT}
    found |= {code_of(kind): f"pydantic's {kind}" for kind in PYDANTIC}
    return found


def test_every_code_that_is_given_is_listed() -> None:
    assert {code: place for code, place in used().items() if code not in CODES} == {}


def test_every_code_that_is_listed_is_given() -> None:
    assert {"erased", "too_large", "missing_scope"} <= used().keys(), "they are found"
    assert [code for code in CODES if code not in used()] == []


def test_codes_are_words_of_one_form_with_a_sentence_each() -> None:
    assert [code for code in CODES if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == []
    assert [code for code, meaning in CODES.items() if not re.fullmatch(r"[A-Z].*\.", meaning)] == []


@pytest.mark.parametrize("kind", sorted(_WORDS))
def test_what_has_words_of_its_own_is_an_error_of_pydantic_and_has_a_code_of_its_own(kind: str) -> None:
    assert kind in PYDANTIC
    assert code_of(kind) != "invalid"
