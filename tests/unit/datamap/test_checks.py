"""Checks of a map against a schema that need no database."""

from __future__ import annotations

from collections.abc import Iterable

from live_tables import live_schema, live_table, read_map

from effaced.datamap.check.columns import column_problems
from effaced.datamap.check.data_map import find_gaps
from effaced.datamap.check.links import find_cycles, link_problems, reach_problems
from effaced.datamap.check.pointers import pointer_problems
from effaced.datamap.check.rectify import rectify_problems
from effaced.datamap.check.retention import retention_problems
from effaced.datamap.model.data_map import DataMap

PEOPLE = live_table("people", "id:int email age:int?")
ORDERS = live_table("orders", "id:int person:int issued:date total:int?")


def orders(
    columns: str, *, people: str = "{id: delete, email: delete, age: delete}", more: str = ""
) -> DataMap:
    return read_map(
        f"""
        subject: {{table: people, key: id}}
        tables:
          people: {{columns: {people}}}
          orders: {{link: {{to: people, on: {{person: id}}}}, columns: {columns}}}
        {more}
        """
    )


def messages(problems: Iterable[tuple[int, str]]) -> list[str]:
    return [message for _, message in problems]


def test_a_table_and_a_column_that_only_one_side_has_are_both_named() -> None:
    data_map = read_map(
        """
        subject: {table: people, key: id}
        tables: {people: {columns: {id: delete, mail: delete, age: delete}}}
        """
    )

    assert [each.message for each in find_gaps(live_schema(PEOPLE, ORDERS), data_map)] == [
        "orders: the table is not declared; put it under tables or not_personal",
        "people.email: the column is not declared",
        "people.mail: the table has no such column; did you mean 'email'?",
    ]


def test_a_link_to_a_column_that_is_not_unique_is_refused() -> None:
    data_map = orders("{id: delete, person: delete, issued: delete, total: delete}")
    several = live_table("people", "id:int email age:int?", primary=())

    assert messages(link_problems(live_schema(PEOPLE, ORDERS), data_map)) == []
    assert messages(link_problems(live_schema(several, ORDERS), data_map)) == [
        "orders.link: people(id) is not unique, so a row of orders could belong to several people; link to a"
        " key, or make it unique"
    ]


def test_links_that_form_a_cycle_reach_nobody() -> None:
    data_map = read_map(
        """
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          a: {link: {to: b, on: {b: id}}, columns: {id: delete, b: delete}}
          b: {link: {to: a, on: {a: id}}, columns: {id: delete, a: delete}}
        """
    )

    assert find_cycles(data_map) == [("a", "b", "a")]
    assert len(messages(reach_problems(data_map, [data_map]))) == 1


def test_a_foreign_key_from_rows_that_nobody_declared_personal_is_refused() -> None:
    data_map = read_map(
        """
        subject: {table: people, key: id}
        tables: {people: {columns: {id: delete, email: delete, age: delete}}}
        not_personal: [orders]
        """
    )
    schema = live_schema(PEOPLE, ORDERS, keys=("orders.person -> people.id",))

    (message,) = messages(pointer_problems(schema, data_map))

    assert message.startswith("orders: its foreign key orders(person) -> people(id) points at rows of people")
    assert message.endswith("so it is not without personal data; give it a link")


def test_a_foreign_key_that_a_link_follows_is_fine() -> None:
    schema = live_schema(PEOPLE, ORDERS, keys=("orders.person -> people.id",))
    data_map = orders("{id: delete, person: delete, issued: delete, total: delete}")

    assert messages(pointer_problems(schema, data_map)) == []


def test_a_row_that_stays_can_not_keep_its_pointer_to_a_cell_that_changes() -> None:
    schema = live_schema(PEOPLE, ORDERS, keys=("orders.person -> people.id",))
    data_map = orders(
        "{id: not_personal, person: not_personal, issued: not_personal, total: {retain: tax law}}",
        people="{id: {anonymise: random_number}, email: delete, age: delete}",
    )

    (message,) = messages(pointer_problems(schema, data_map))

    assert message.endswith("points at rows of people that the map changes, but orders.person is kept")


def test_both_ends_of_a_link_are_corrected_together() -> None:
    data_map = orders(
        "{id: delete, person: delete, issued: delete, total: delete}", more="rectify: {number: orders.person}"
    )

    assert messages(rectify_problems(live_schema(PEOPLE, ORDERS), data_map)) == [
        "rectify.number: orders.person is a link, so people.id must be in the same category"
    ]


def test_a_retention_counted_from_no_date_has_no_end() -> None:
    until = "{retain: {basis: tax law, until: %s + 10 years}}"
    columns = "{id: not_personal, person: not_personal, issued: not_personal, total: %s}"
    schema = live_schema(PEOPLE, ORDERS)

    assert messages(retention_problems(schema, orders(columns % until % "issued"))) == []
    assert messages(retention_problems(schema, orders(columns % until % "person"))) == [
        "orders.total.retain.until: 'person' must be a column of dates or moments"
    ]


def test_a_surrogate_must_fit_its_column() -> None:
    data_map = read_map(
        """
        subject: {table: people, key: id}
        tables: {people: {columns: {id: {retain: tax law}, email: delete, age: {anonymise: keyed_hash}}}}
        """
    )

    assert messages(column_problems(live_schema(PEOPLE), data_map)) == [
        "people.email: delete makes it NULL because the row stays, but the column is NOT NULL",
        "people.age: keyed_hash needs a text column; this one is number",
    ]
