"""What the map says about the end of retentions."""

from __future__ import annotations

import pytest
from live_tables import read_map

from effaced.datamap.compile.retention_groups import (
    after_retention,
    columns_cutting_off,
    ending_columns,
    ends_at_once,
    is_findable,
)
from effaced.datamap.model.data_map import Action, DataMap


def invoices(columns: str, people: str = "{id: not_personal, email: {anonymise: null}}") -> DataMap:
    return read_map(
        f"""
        subject: {{table: people, key: id}}
        tables:
          people: {{columns: {people}}}
          invoices: {{link: {{to: people, on: {{person: id}}}}, columns: {columns}}}
        """
    )


TEN_YEARS = "{retain: {basis: tax law, until: issued + 10 years}}"
FOUND = f"{{person: not_personal, issued: not_personal, name: {TEN_YEARS}, vat: {TEN_YEARS}}}"


def test_a_row_whose_retentions_have_ended_is_deleted() -> None:
    table = invoices(FOUND).tables["invoices"]

    assert table.stays
    assert after_retention(table).action is Action.DELETED
    assert list(ending_columns(table)) == ["name", "vat"]


@pytest.mark.parametrize(
    ("vat", "expected"),
    [
        (TEN_YEARS, True),
        ("{retain: {basis: tax law, until: 2031-12-31}}", False),
        ("{retain: tax law}", False),
    ],
)
def test_a_row_ends_at_once_if_all_its_retentions_end_on_one_day(vat: str, expected: bool) -> None:
    columns = f"{{person: not_personal, issued: not_personal, name: {TEN_YEARS}, vat: {vat}}}"

    assert ends_at_once(invoices(columns).tables["invoices"]) is expected


def test_rows_that_keep_the_subject_s_key_are_found_after_the_subject_is_gone() -> None:
    assert is_findable(invoices(FOUND, people="{id: delete, email: delete}"), "invoices")


def test_rows_that_lose_the_subject_s_key_are_not_found_again() -> None:
    columns = f"{{person: {{anonymise: null}}, issued: not_personal, name: {TEN_YEARS}}}"

    assert list(columns_cutting_off(invoices(columns), "invoices")) == ["invoices.person"]
