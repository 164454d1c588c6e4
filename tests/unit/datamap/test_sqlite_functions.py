"""The functions that SQLite lacks, called in SQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from effaced.datamap.model.json_paths import parse_path
from effaced.datamap.model.rules import ColumnRule, Strategy, Surrogate
from effaced.datamap.surrogates.json_sql import paths_as_json
from effaced.datamap.surrogates.shapes import Hashing
from effaced.datamap.surrogates.sqlite_functions import register

Call = Callable[..., Any]


@pytest.fixture
def call() -> Iterator[Call]:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        register(connection)

        def run(function: str, *arguments: Any) -> Any:
            places = ", ".join(f":p{number}" for number in range(len(arguments)))
            values = {f"p{number}": each for number, each in enumerate(arguments)}
            return connection.execute(text(f"SELECT {function}({places})"), values).scalar()

        yield run
    engine.dispose()


def paths(**rules: ColumnRule) -> str:
    found = tuple((parse_path(f"$.{name}") or (), rule) for name, rule in rules.items())
    return paths_as_json(ColumnRule(Strategy.JSON, paths=found))


def test_a_hash_is_made_of_the_cell_s_text_and_null_stays_null(call: Call) -> None:
    hashing = Hashing.of("k1", b"secret")
    keys = (hashing.inner, hashing.outer, hashing.label)

    assert call("effaced_hash", 7, *keys) == hashing.hash("7")
    assert call("effaced_hash", None, *keys) is None


@pytest.mark.parametrize(("cell", "expected"), [("from Ada", "from [erased]"), (7, 7), (None, None)])
def test_only_texts_are_scrubbed(call: Call, cell: Any, expected: Any) -> None:
    assert call("effaced_scrub", cell, "Ada") == expected


def test_a_document_is_changed_at_its_paths_and_nowhere_else(call: Call) -> None:
    rules = paths(name=ColumnRule(Strategy.DELETE), mail=ColumnRule(Strategy.ANONYMISE, Surrogate.NULL))

    edited = call("effaced_json", '{"name": "Ada", "mail": "a@b", "n": 1.50}', None, None, rules)

    assert edited == '{"mail": null, "n": 1.50}'


def test_what_is_no_json_or_gets_too_long_goes_as_a_whole(call: Call) -> None:
    rules = paths(name=ColumnRule(Strategy.ANONYMISE, Surrogate.FIXED_TEXT, text="a very long text"))

    assert call("effaced_json", "{no json", "{}", None, rules) == "{}"
    assert call("effaced_json", '{"name": "Ada"}', None, 20, rules) is None


def test_doing_it_again_changes_nothing(call: Call) -> None:
    rules = paths(name=ColumnRule(Strategy.ANONYMISE, Surrogate.RANDOM_UNIQUE))

    once = call("effaced_json", '{"name": "Ada"}', None, None, rules)

    assert json.loads(once)["name"].startswith("erased-")
    assert call("effaced_json", once, None, None, rules) == once
