"""What one column's rule means for its row and its cell."""

from __future__ import annotations

import pytest

from effaced.datamap.model.rules import ColumnRule, Strategy, Surrogate, canonical_column

NULL = ColumnRule(Strategy.ANONYMISE, Surrogate.NULL)


@pytest.mark.parametrize(
    ("strategy", "keeps_row", "changes", "decides"),
    [
        (Strategy.DELETE, False, True, True),
        (Strategy.ANONYMISE, True, True, True),
        (Strategy.JSON, True, True, True),
        (Strategy.SCRUB, True, True, True),
        (Strategy.RETAIN, True, False, True),
        (Strategy.NOT_PERSONAL, False, False, False),
        (Strategy.DERIVED, False, False, False),
        (Strategy.REVIEW, False, False, True),
    ],
)
def test_each_strategy_says_whether_row_and_cell_stay(
    strategy: Strategy, keeps_row: bool, changes: bool, decides: bool
) -> None:
    rule = ColumnRule(strategy)

    assert (rule.keeps_row, rule.changes, rule.decides_row) == (keeps_row, changes, decides)


def test_every_surrogate_but_null_and_the_random_ones_can_repeat() -> None:
    never = {surrogate for surrogate in Surrogate if not ColumnRule(Strategy.ANONYMISE, surrogate).can_repeat}

    assert never == {
        Surrogate.NULL,
        Surrogate.RANDOM_UNIQUE,
        Surrogate.RANDOM_EMAIL,
        Surrogate.RANDOM_NUMBER,
        Surrogate.RANDOM_UUID,
    }


def test_delete_writes_null_into_a_row_that_stays() -> None:
    assert ColumnRule(Strategy.DELETE).written is Surrogate.NULL


def test_a_keyed_hash_anywhere_in_the_rule_pseudonymises() -> None:
    hashed = ColumnRule(Strategy.ANONYMISE, Surrogate.KEYED_HASH)

    assert hashed.pseudonymises
    assert ColumnRule(Strategy.JSON, paths=((("name",), hashed),)).pseudonymises
    assert ColumnRule(Strategy.RETAIN, basis="tax law", then=hashed).pseudonymises
    assert not NULL.pseudonymises


def test_the_usual_end_of_a_retention_does_not_change_the_hash_of_older_maps() -> None:
    plain = ColumnRule(Strategy.RETAIN, basis="tax law")
    usual = ColumnRule(Strategy.RETAIN, basis="tax law", then=ColumnRule(Strategy.DELETE))
    unusual = ColumnRule(Strategy.RETAIN, basis="tax law", then=NULL)

    assert canonical_column(plain) == canonical_column(usual) != canonical_column(unusual)
