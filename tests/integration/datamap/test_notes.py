"""The notes of `effaced datamap check`: what fits the database and still wants a look."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from effaced.core import clock
from effaced.datamap.check.notes import find_notes
from tests.integration.datamap.conftest import Company

MAP = """
    version: 1
    subject: {table: customers, key: id}
    tables:
      customers:
        columns: {id: not_personal, name: {anonymise: fixed_text}, address_id: delete}
      addresses:
        link: {from: customers, on: {id: address_id}}
        columns: {id: delete, street: delete}
      orders:
        link: {to: customers, on: {customer_id: id}}
        columns: {customer_id: delete, total: delete}
    not_personal: [products]
"""
SCHEMA = (
    "CREATE TABLE addresses (id integer PRIMARY KEY, street text)",
    "CREATE TABLE customers (id integer PRIMARY KEY, name text, address_id integer REFERENCES addresses)",
    "CREATE TABLE orders (customer_id integer REFERENCES customers, total integer)",
    "CREATE TABLE products (id integer PRIMARY KEY, name text)",
)
INDEXES = (
    "CREATE INDEX customers_address ON customers (address_id)",
    "CREATE INDEX orders_customer ON orders (customer_id, total)",
)


@pytest.fixture
def built(company: Company) -> Company:
    company.run(*SCHEMA)
    return company


def notes(company: Company, yaml: str = MAP) -> list[str]:
    plan = company.plan(yaml)
    connection = company.session.connection()
    return [each.message for each in find_notes(connection, plan.schema, plan.data_map)]


def test_a_map_can_have_no_notes(built: Company) -> None:
    built.run(*INDEXES)
    assert notes(built) == []


def test_links_whose_rows_no_index_finds(built: Company) -> None:
    assert notes(built) == [
        "addresses.link: no index of customers begins with address_id, by which others that point here are"
        " found",
        "orders.link: no index begins with customer_id, so every erasure reads all of orders",
    ]


def test_an_index_that_begins_with_something_else_does_not_help(built: Company) -> None:
    built.run(INDEXES[0], "CREATE INDEX wrong ON orders (total, customer_id)")
    assert len(notes(built)) == 1


def test_a_unique_constraint_is_an_index(company: Company) -> None:
    company.run(*SCHEMA[:2], INDEXES[0])
    company.run("CREATE TABLE orders (customer_id integer UNIQUE, total integer)", SCHEMA[3])
    assert notes(company) == []


def test_an_index_with_a_condition_helps_only_a_link_that_has_one(built: Company) -> None:
    built.run(INDEXES[0], "CREATE INDEX a_few ON orders (customer_id) WHERE total = 1")
    assert len(notes(built)) == 1
    assert notes(built, MAP.replace("{customer_id: id}}", "{customer_id: id}, where: {total: 1}}")) == []


def test_rows_that_are_found_by_a_comparison_of_texts(built: Company) -> None:
    built.run(*INDEXES)
    said = notes(built, MAP.replace("{customer_id: id}}", "{customer_id: id}, as: text}"))
    assert said == [
        "orders.link: rows are found by comparing texts: see that both sides are written alike, and have an"
        " index"
    ]


def test_a_retention_that_has_ended(built: Company) -> None:
    built.run(*INDEXES)
    kept = MAP.replace(
        "{customer_id: delete, total: delete}",
        "{customer_id: {retain: law}, total: {retain: {basis: law, until: 2031-12-31}}}",
    )
    with clock.pretend(datetime(2031, 12, 31, tzinfo=UTC)):
        assert notes(built, kept) == []
    with clock.pretend(datetime(2032, 1, 1, tzinfo=UTC)):
        assert len(notes(built, kept)) == 1


def test_names_that_sound_like_people_and_are_declared_otherwise(company: Company) -> None:
    company.run(*SCHEMA[:3], *INDEXES)
    company.run("CREATE TABLE products (id integer PRIMARY KEY, designer_email text)")
    company.run("CREATE TABLE guests (id integer PRIMARY KEY)")
    yaml = MAP.replace("street: delete", "street: not_personal").replace("[products]", "[products, guests]")
    assert notes(company, yaml) == [
        "addresses.street is declared not_personal, but sounds like an address",
        "guests is listed as not_personal, but is called after people (guests)",
        "products is listed as not_personal, but its column designer_email sounds like an e-mail address",
    ]


def test_each_note_has_its_line(built: Company) -> None:
    plan = built.plan(MAP)
    found = find_notes(built.session.connection(), plan.schema, plan.data_map)
    lines = [each.where.rpartition(":")[2] for each in found]
    assert lines == ["8", "11"]


class TestCopies:
    """What the erasure of a customer leaves behind where no statement of the plan reaches."""

    @pytest.fixture
    def built(self, built: Company) -> Company:
        built.run(*INDEXES, "CREATE TABLE audit (was text)")
        return built

    MAP = MAP.replace("[products]", "[products, audit]")
    AUDIT = (
        "orders: the trigger keep runs when its rows are deleted, and may write to audit; see that nothing of"
        " the person is left there"
    )

    def trigger(self, built: Company, event: str, what: str) -> None:
        if built.engine == "sqlite":
            built.run(f"CREATE TRIGGER keep {event} ON orders BEGIN {what}; END")
            return
        built.run(
            f"CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {what}; RETURN NULL; END$$",
            f"CREATE TRIGGER keep {event} ON orders FOR EACH ROW EXECUTE FUNCTION keep()",
        )

    def test_a_trigger_that_writes_elsewhere(self, built: Company) -> None:
        self.trigger(built, "AFTER DELETE", "INSERT INTO audit VALUES (OLD.total)")
        assert notes(built, self.MAP) == [self.AUDIT]

    def test_a_trigger_for_what_does_not_happen_is_none(self, built: Company) -> None:
        self.trigger(built, "AFTER INSERT", "INSERT INTO audit VALUES (NEW.total)")
        assert notes(built, self.MAP) == []

    @pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
    def test_a_trigger_that_only_sets_cells_of_its_row_is_none(self, built: Company) -> None:
        self.trigger(built, "BEFORE DELETE", "IF TG_OP <> 'UPDATE' THEN OLD.total := 7; END IF")
        assert notes(built, self.MAP) == []

    @pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
    def test_a_materialised_view_over_another_view(self, built: Company) -> None:
        built.run(
            "CREATE VIEW totals AS SELECT total FROM orders",
            "CREATE MATERIALIZED VIEW sums AS SELECT sum(total) FROM totals",
        )
        assert notes(built, self.MAP) == [
            "orders: the materialised view sums shows it, and holds what it held until you refresh it"
        ]

    @pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
    def test_a_foreign_table(self, built: Company) -> None:
        built.run(
            "CREATE FOREIGN DATA WRAPPER nothing",
            "CREATE SERVER far FOREIGN DATA WRAPPER nothing",
            "CREATE FOREIGN TABLE letters (body text) SERVER far",
        )
        assert notes(built, self.MAP) == [
            "letters is a foreign table and not looked at; what is in the other database must be erased"
            " there, as a system"
        ]

    @pytest.mark.parametrize("company_database", ["sqlite"], indirect=True)
    def test_a_virtual_table(self, built: Company) -> None:
        built.run("CREATE VIRTUAL TABLE words USING fts5(body)")
        parts = ", ".join(f"words{part}" for part in ("", "_data", "_idx", "_content", "_docsize", "_config"))
        assert notes(built, self.MAP.replace("audit]", f"audit, {parts}]")) == [
            "words is a virtual table and may keep what was deleted in tables of its own, until it is rebuilt"
        ]
