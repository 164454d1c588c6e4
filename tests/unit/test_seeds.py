"""The page of the seeds says where everything that they name is, and the code keeps their signatures."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from named_in_docs import dotted_names, resolve
from seed_names import FIELDS, OTHERS, SIGNATURES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "seeds.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]


def words(text: str) -> set[str]:
    """The words of all that is set as code."""
    return {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", code)}


SEED_WORDS = words("\n".join(seed for seed, *_ in ROWS))


def parameters(name: str) -> list[inspect.Parameter]:
    found = resolve(name)
    assert found is not None
    takes: Any = found[2]
    return [each for each in inspect.signature(takes).parameters.values() if each.name != "self"]


def test_every_name_that_seed_items_have_here_is_in_the_code() -> None:
    names = dotted_names("\n".join(here for _seed, here, *_why in ROWS))
    assert len(names) > 150, "the table names what each seed item is called here"
    packages = {path.stem for path in (ROOT / "effaced").iterdir()}
    names += [each for each in dotted_names(PAGE) if each.partition(".")[0] in packages]
    assert [each for each in names if resolve(each) is None] == []


@pytest.mark.parametrize("document", OTHERS)
def test_the_page_names_everything_of_each_document(document: str) -> None:
    assert [each for each in OTHERS[document].split() if each not in SEED_WORDS] == []


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_page_names_each_method_with_its_parameters(name: str) -> None:
    named = (name.rpartition(".")[2], *SIGNATURES[name].split())
    assert [each for each in named if each not in SEED_WORDS] == []


@pytest.mark.parametrize("name", FIELDS)
def test_the_page_names_each_field(name: str) -> None:
    assert [each for each in FIELDS[name].split() if each not in SEED_WORDS] == []


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_of_a_seed_keep_their_names_and_order(name: str) -> None:
    seed = SIGNATURES[name].split()
    here = parameters(name)
    assert [each.name for each in here if each.name in seed] == seed
    required = [each.name for each in here if each.name not in seed and each.default is each.empty]
    assert [each for each in required if each not in words(PAGE)] == [], (
        "the page says what is needed besides"
    )


@pytest.mark.parametrize("name", FIELDS)
def test_fields_of_a_seed_keep_their_names(name: str) -> None:
    assert [each for each in FIELDS[name].split() if resolve(f"{name}.{each}") is None] == []
