"""The order of an erasure's statements."""

from __future__ import annotations

from live_tables import live_schema, live_table, read_map

from effaced.datamap.compile.order import Order, Statement, find_order
from effaced.datamap.schema.tables import LiveSchema

SHOP = """
    subject: {table: people, key: id}
    tables:
      people: {columns: {id: delete, home: delete}}
      orders: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete}}
      lines: {link: {to: orders, on: {order_id: id}}, columns: {id: delete, order_id: delete}}
    not_personal: [homes]
    """


def shop(*keys: str) -> LiveSchema:
    return live_schema(
        live_table("people", "id:int home:int?"),
        live_table("orders", "id:int person:int"),
        live_table("lines", "id:int order_id:int"),
        live_table("homes", "id:int"),
        keys=keys,
    )


def tables(order: Order) -> list[str]:
    return [statement.table for statement in order.statements]


def test_rows_found_through_others_come_before_them() -> None:
    order = find_order(shop(), read_map(SHOP))

    assert tables(order) == ["lines", "orders", "people"]
    assert order.captured == frozenset()


def test_rows_are_looked_up_beforehand_where_a_foreign_key_wants_the_other_order() -> None:
    map_ = """
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete, home: delete}}
          homes: {link: {from: people, on: {id: home}}, columns: {id: delete}}
        """
    schema = live_schema(
        live_table("people", "id:int home:int?"),
        live_table("homes", "id:int"),
        keys=("people.home -> homes.id",),
    )

    order = find_order(schema, read_map(map_))

    assert tables(order) == ["people", "homes"]
    assert order.captured == {"homes"}
    assert order.evaluated_late == {Statement("homes")}


def test_a_pointer_that_may_be_null_is_detached_where_rows_point_at_each_other() -> None:
    map_ = """
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          a: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete, b: delete}}
          b: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete, a: delete}}
        """
    people, b = live_table("people", "id:int"), live_table("b", "id:int person:int a:int")
    keys = ("a.b -> b.id", "b.a -> a.id")

    order = find_order(
        live_schema(people, live_table("a", "id:int person:int b:int?"), b, keys=keys), read_map(map_)
    )
    hopeless = find_order(
        live_schema(people, live_table("a", "id:int person:int b:int"), b, keys=keys), read_map(map_)
    )

    assert tables(order).index("b") < tables(order).index("people")
    assert Statement("a", detaches=("b",)) in order.statements
    assert order.statements.index(Statement("a", detaches=("b",))) < order.statements.index(Statement("b"))
    assert hopeless.cycle == ("a", "b")


def test_a_mention_lets_go_before_the_row_it_points_at_is_deleted() -> None:
    map_ = """
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          tickets:
            mentions: {to: people, on: {agent: id}, columns: {agent: {anonymise: null}}}
            columns: {id: not_personal, agent: not_personal}
        """
    schema = live_schema(
        live_table("people", "id:int"),
        live_table("tickets", "id:int agent:int?"),
        keys=("tickets.agent -> people.id",),
    )

    assert find_order(schema, read_map(map_)).statements == (Statement("tickets", 0), Statement("people"))
