"""How much of a cell an erasure leaves."""

from __future__ import annotations

import pytest
from live_tables import read_map

from effaced.datamap.model.data_map import TableRule
from effaced.datamap.show.effects import Strength, cells_of


def people(columns: str) -> TableRule:
    return read_map(
        f"subject: {{table: people, key: id}}\ntables: {{people: {{columns: {columns}}}}}"
    ).tables["people"]


@pytest.mark.parametrize(
    ("rule", "strength"),
    [
        ("delete", Strength.WHOLE),
        ("{anonymise: null}", Strength.WHOLE),
        ("{anonymise: random_unique}", Strength.WHOLE),
        ("{anonymise: keyed_hash}", Strength.PART),
        ("{anonymise: truncated_date}", Strength.PART),
        ("{scrub: [id]}", Strength.PART),
        ('{json: {"$.name": delete}}', Strength.PART),
        ("{retain: tax law}", Strength.NONE),
        ("not_personal", Strength.NONE),
    ],
)
def test_each_rule_erases_all_of_a_cell_or_part_of_it_or_nothing(rule: str, strength: Strength) -> None:
    assert cells_of(people(f"{{id: {{retain: tax law}}, cell: {rule}}}"))["cell"].strength is strength


def test_in_a_row_that_is_deleted_every_rule_has_the_same_effect() -> None:
    cells = cells_of(people("{id: not_personal, email: delete}"))

    assert cells["id"].effect == cells["email"].effect
    assert {cell.strength for cell in cells.values()} == {Strength.WHOLE}


def test_delete_and_anonymise_null_have_the_same_effect_in_a_row_that_stays() -> None:
    cells = cells_of(people("{id: {retain: tax law}, a: delete, b: {anonymise: null}}"))

    assert cells["a"].effect == cells["b"].effect
