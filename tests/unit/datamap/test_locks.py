"""Which tables' rows are locked before anything is read."""

from __future__ import annotations

from live_tables import read_map

from effaced.datamap.compile.locks import locked_tables


def test_the_subject_and_shared_rows_are_locked_after_what_they_are_found_through() -> None:
    data_map = read_map(
        """
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete, home: delete}}
          homes: {link: {from: people, on: {id: home}}, columns: {id: delete, area: delete}}
          areas: {link: {from: homes, on: {id: area}}, columns: {id: delete}}
          orders: {link: {to: people, on: {person: id}}, columns: {person: delete}}
        """
    )

    assert locked_tables(data_map) == ["people", "homes", "areas"]


def test_rows_that_are_only_retained_are_not_locked() -> None:
    data_map = read_map(
        "subject: {table: people, key: id}\ntables: {people: {columns: {id: {retain: tax law}}}}"
    )

    assert locked_tables(data_map) == []
