"""The names of the parameters for what is scrubbed."""

from __future__ import annotations

from effaced.datamap.compile.parameters import scrub_name
from effaced.datamap.model.rules import ColumnRule, Strategy


def scrub(*names: str) -> str:
    return scrub_name(ColumnRule(Strategy.SCRUB, names=names))


def test_columns_scrubbed_of_the_same_names_share_a_parameter() -> None:
    assert scrub("email", "name") == scrub("name", "email")
    assert len({scrub(), scrub("email"), scrub("email", "name")}) == 3


def test_a_parameter_can_not_be_taken_for_a_company_s_column() -> None:
    assert scrub("email").startswith("effaced_scrub_")
