"""What a data map's objects say: what happens to rows, what concerns one kind of people, the hash."""

from __future__ import annotations

import pytest
from live_tables import read_map

from effaced.datamap.model.data_map import Action, RefRule, TableRule

TWO_KINDS = """
    subjects:
      customer: {table: customers, key: id}
      employee: {table: staff, key: id}
    tables:
      customers: {columns: {id: delete, email: delete}}
      staff: {columns: {id: delete, email: delete}}
      orders: {link: {to: customers, on: {customer: id}}, columns: {id: delete, customer: delete}}
      notes:
        link: [{to: orders, on: {order_id: id}}, {to: staff, on: {writer: id}}]
        columns: {order_id: delete, writer: delete, text: delete}
      tickets:
        link: {to: customers, on: {customer: id}}
        mentions: {to: staff, on: {agent: id}, columns: {agent: {anonymise: null}}}
        columns: {customer: delete, agent: delete}
    rectify:
      email: [customers.email, staff.email]
      agent: tickets.agent
    """


def one_table(columns: str) -> TableRule:
    return read_map(
        f"subject: {{table: people, key: id}}\ntables: {{people: {{columns: {columns}}}}}"
    ).tables["people"]


@pytest.mark.parametrize(
    ("columns", "action"),
    [
        ("{id: delete, email: delete}", Action.DELETED),
        ("{id: not_personal, email: delete}", Action.DELETED),
        ("{id: not_personal, email: {anonymise: null}}", Action.ANONYMISED),
        ("{id: not_personal, email: {anonymise: keyed_hash}}", Action.PSEUDONYMISED),
        ("{id: not_personal, email: {retain: tax law}}", Action.RETAINED),
        ("{id: not_personal, email: {retain: tax law}, name: delete}", Action.ANONYMISED),
    ],
)
def test_one_retained_or_anonymised_column_makes_the_row_stay(columns: str, action: Action) -> None:
    assert one_table(columns).action is action


def test_a_row_that_stays_loses_only_what_is_changed() -> None:
    table = one_table("{id: not_personal, email: {anonymise: null}, name: {retain: tax law}}")

    assert [name for name in table.columns if table.loses(name)] == ["email"]


def test_a_row_that_is_deleted_loses_everything() -> None:
    table = one_table("{id: not_personal, email: delete}")

    assert all(table.loses(name) for name in table.columns)


def test_a_kind_of_people_sees_only_its_own_tables() -> None:
    customer = read_map(TWO_KINDS).for_people("customer")

    assert set(customer.tables) == {"customers", "orders", "notes", "tickets"}
    assert [link.to for link in customer.tables["notes"].links] == ["orders"]
    assert customer.tables["tickets"].mentions == ()


def test_a_table_that_only_mentions_a_kind_of_people_is_not_owned_by_it() -> None:
    employee = read_map(TWO_KINDS).for_people("employee")

    assert set(employee.tables) == {"staff", "notes", "tickets"}
    assert {name: each.owned for name, each in employee.tables.items()} == {
        "staff": True,
        "notes": True,
        "tickets": False,
    }


def test_only_columns_of_a_kind_s_own_tables_can_be_corrected_for_it() -> None:
    whole = read_map(TWO_KINDS)

    assert {name: each.columns for name, each in whole.for_people("employee").rectify.items()} == {
        "email": (("staff", "email"),)
    }


def test_a_part_of_the_map_knows_what_it_leaves_out() -> None:
    employee = read_map(TWO_KINDS).for_people("employee")

    assert employee.tables_of_others == {"customers", "orders"}
    assert employee.hash == read_map(TWO_KINDS).hash


def test_the_hash_depends_on_what_the_map_says_and_not_on_its_layout() -> None:
    map_ = "subject: {{table: people, key: id}}\ntables:\n  people: {{columns: {{{columns}}}}}\n"
    first = read_map(map_.format(columns="id: not_personal, email: {anonymise: null}"))
    reordered = read_map("# a comment\n" + map_.format(columns="email: {anonymise: null}, id: not_personal"))
    different = read_map(map_.format(columns="id: not_personal, email: delete"))

    assert first.hash == reordered.hash != different.hash


def test_the_tables_between_include_every_path() -> None:
    customer = read_map(TWO_KINDS).for_people("customer")

    assert customer.tables_between("notes") == {"notes", "orders", "customers"}


@pytest.mark.parametrize(("id_", "expected"), [("7", "customers/7/"), ("", None), (None, None)])
def test_a_reference_with_an_empty_column_is_none_at_all(id_: str | None, expected: str | None) -> None:
    rule = RefRule("files", (("customers/", "id"), ("/", None)))

    assert rule.fill({"id": id_}) == expected
