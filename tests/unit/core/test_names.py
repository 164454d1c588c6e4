"""Names that a database can store and people can read; nothing else becomes a resolver's name."""

from __future__ import annotations

import pytest

from effaced.core.errors import ConfigurationError
from effaced.core.names import LONGEST, name_problem, raise_problem, resolver_name_problem


@pytest.mark.parametrize("name", ["crm", "CRM 2", "Ünïcode", "x" * LONGEST])
def test_a_printable_name_is_fine(name: str) -> None:
    assert resolver_name_problem(name) is None


@pytest.mark.parametrize("name", ["", "  ", "bad\nname", "nul\0", "x" * (LONGEST + 1)])
def test_an_empty_unprintable_or_long_name_is_a_problem(name: str) -> None:
    assert resolver_name_problem(name) == (
        "A resolver's name must have 1 to 246 characters, all of them printable."
    )


def test_a_star_stands_for_all_resolvers() -> None:
    assert resolver_name_problem("*") == "A resolver can't be named '*': that stands for all of them."


def test_the_longest_length_can_be_given() -> None:
    assert name_problem("A kind", "abc", 2) == "A kind must have 1 to 2 characters, all of them printable."


def test_a_problem_is_raised_and_none_is_not() -> None:
    raise_problem(None)
    with pytest.raises(ConfigurationError, match="too long"):
        raise_problem("too long")
