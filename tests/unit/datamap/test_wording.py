"""Words for what a map says."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from effaced.core import clock
from effaced.datamap.model.data_map import Action, ColumnRule, DatePart, Strategy, Surrogate
from effaced.datamap.model.last_day import Unit, Until
from effaced.datamap.model.wording import ROW_ACTIONS, describe_rule, group_by_treatment

DELETE = ColumnRule(Strategy.DELETE)


def test_every_action_has_a_word() -> None:
    assert [action for action in Action if action not in ROW_ACTIONS] == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (DELETE, "delete"),
        (ColumnRule(Strategy.NOT_PERSONAL), "not personal"),
        (ColumnRule(Strategy.ANONYMISE, Surrogate.NULL), "anonymise (null)"),
        (ColumnRule(Strategy.ANONYMISE, Surrogate.FIXED_TEXT, text=""), "anonymise (fixed_text '')"),
        (
            ColumnRule(Strategy.ANONYMISE, Surrogate.TRUNCATED_DATE, to=DatePart.MONTH),
            "anonymise (truncated_date to month)",
        ),
        (ColumnRule(Strategy.ANONYMISE, Surrogate.FIXED, value="0"), "anonymise (fixed '0')"),
        (ColumnRule(Strategy.ANONYMISE, Surrogate.KEYED_HASH), "pseudonymise (keyed_hash)"),
        (ColumnRule(Strategy.SCRUB, names=("email", "name")), "scrub (email, name)"),
        (ColumnRule(Strategy.SCRUB), "scrub (all identifiers)"),
        (ColumnRule(Strategy.DERIVED), "derived"),
        (ColumnRule(Strategy.REVIEW, reason="looks like a name"), "review (looks like a name)"),
        (
            ColumnRule(
                Strategy.JSON,
                paths=((("a", None), DELETE), (("b",), ColumnRule(Strategy.ANONYMISE, Surrogate.NULL))),
            ),
            "json ($.a[*]: delete; $.b: anonymise (null))",
        ),
        (ColumnRule(Strategy.RETAIN, basis="tax law"), "retain (tax law)"),
        (
            ColumnRule(Strategy.RETAIN, basis="law", until=Until(date(2031, 12, 31)), then=DELETE),
            "retain (law; until 2031-12-31; then delete)",
        ),
        (
            ColumnRule(Strategy.RETAIN, basis="law", until=Until(date(2025, 12, 31)), then=DELETE),
            "retain (law; until 2025-12-31, which is over; then delete)",
        ),
        (
            ColumnRule(Strategy.RETAIN, basis="law", until=Until(None, "day", 10, Unit.YEARS), then=DELETE),
            "retain (law; until day + 10 years; then delete)",
        ),
    ],
)
def test_what_happens_to_a_column(rule: ColumnRule, words: str) -> None:
    with clock.pretend(datetime(2026, 1, 1, tzinfo=UTC)):
        assert describe_rule(rule) == words


def test_columns_that_share_a_fate_stand_together_with_its_detail() -> None:
    tax = ColumnRule(Strategy.RETAIN, basis="tax law (ten years)")
    found = group_by_treatment({"a": tax, "b": DELETE, "c": tax})
    assert [(each.word, each.detail, each.columns) for each in found] == [
        ("delete", "", ("b",)),
        ("retain", "tax law (ten years)", ("a", "c")),
    ]
