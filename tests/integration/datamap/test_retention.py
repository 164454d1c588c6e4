"""Retentions that end: the last day of each row, what is due, what goes, what the map may say of it."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from retention_cast import MAP as SHOP
from sqlalchemy import select

from effaced.core import clock
from effaced.datamap.check.data_map import check_map
from effaced.datamap.compile.batches import limited_to
from effaced.datamap.compile.last_day_sql import last_day
from effaced.datamap.model.last_day import Unit, parse_until
from effaced.datamap.plan.retention import TODAY, DueRows, plan_retention
from effaced.datamap.run.erase import erase
from effaced.datamap.schema.read import read_schema

ZONE = ZoneInfo("UTC")


@pytest.fixture
def shop(company):
    """Alice (1) has invoices of 2010 and 2020 and one without a date, Bob (2) has one of 2010."""
    company.run(
        "CREATE TABLE customers (id integer PRIMARY KEY, name varchar(40))",
        "CREATE TABLE invoices (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers,"
        " number varchar(10) NOT NULL, issued_on date)",
        "CREATE TABLE lines (id integer PRIMARY KEY, invoice_id integer NOT NULL REFERENCES invoices,"
        " text text NOT NULL, sold_on timestamp)",
        "INSERT INTO customers VALUES (1, 'Alice'), (2, 'Bob')",
        "INSERT INTO invoices VALUES (10, 1, 'A-1', '2010-03-01'), (11, 1, 'A-2', '2020-03-01'),"
        " (12, 1, 'A-3', NULL), (20, 2, 'B-1', '2010-03-01')",
    )
    return company


def looked(shop, yaml=SHOP, table="invoices", person="1"):
    plan = plan_retention(shop.plan(yaml), ZONE)
    keep = plan.tables[table]
    return keep.read_counts(shop.session.execute(keep.count_kept, plan.plan.key.require(person)).one())


def end(shop, today, yaml=SHOP, person="1"):
    """Carry out what is due, children first; what was foreseen and what was done, by table."""
    plan = plan_retention(shop.plan(yaml), ZONE)
    values = {**plan.plan.key.require(person), TODAY: today}
    foreseen = {
        name: DueRows(*shop.session.execute(keep.count_due, values).one())
        for name, keep in plan.tables.items()
    }
    done = {}
    values |= limited_to(1_000)
    for name, keep in plan.tables.items():
        deleted = shop.session.execute(keep.delete, values).rowcount if keep.delete is not None else 0
        changed = shop.session.execute(keep.change, values).rowcount if keep.change is not None else 0
        done[name] = (deleted, changed)
    return foreseen, done


# --- the last day --------------------------------------------------------------------------------------


def by_hand(day: date, count: int, unit: Unit, of_year: bool) -> date:
    if of_year:
        day = date(day.year, 12, 31)
    if unit in (Unit.DAYS, Unit.WEEKS):
        return day + timedelta(days=count * (7 if unit is Unit.WEEKS else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit is Unit.YEARS else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


DAYS = [
    date(2024, 2, 29), date(2023, 2, 28), date(2024, 1, 31), date(2023, 1, 31), date(2024, 3, 31),
    date(2023, 12, 31), date(2024, 1, 1), date(1999, 8, 30), date(2000, 2, 29), date(1, 1, 1),
    date(7999, 12, 31),
]  # fmt: skip


@pytest.mark.parametrize("column", ["day", "moment"])
@pytest.mark.parametrize(
    "text",
    [
        *(f"{{}} + {count} {unit}" for unit in Unit for count in (1, 10, 13)),
        "end of year of {} + 10 years",
        "end of year of {} + 1 month",
    ],
)
def test_a_last_day_is_the_one_the_calendar_says(company, column, text):
    company.run("CREATE TABLE t (day date, moment timestamp)")
    for day in DAYS:
        company.run(f"INSERT INTO t VALUES ('{day.isoformat()}', '{day.isoformat()} 23:59:59')")
    until = parse_until(text.format(column))
    table = read_schema(company.session.connection()).table("t")
    end = last_day(table, until, company.engine, ZONE)
    found = dict(company.session.execute(select(table.c.day, end)).all())
    assert found == {day: by_hand(day, until.count, until.unit, until.end_of_year) for day in DAYS}


@pytest.mark.parametrize("cell", ["NULL", "'infinity'", "'-infinity'", "'9000-01-01'"])
def test_a_cell_that_is_no_day_of_our_time_has_no_end(company, cell):
    if company.engine == "sqlite":
        cell = {"'infinity'": "'12:30'", "'-infinity'": "2451545"}.get(cell, cell)
    company.run("CREATE TABLE t (day date)", f"INSERT INTO t VALUES ({cell})")
    table = read_schema(company.session.connection()).table("t")
    end = last_day(table, parse_until("day + 1 year"), company.engine, ZONE)
    assert company.session.execute(select(end)).scalar_one() is None


def test_a_moment_counts_by_its_day_where_deadlines_end(company):
    kind = "timestamptz" if company.engine == "postgresql" else "timestamp"
    company.run(f"CREATE TABLE t (at {kind})", "INSERT INTO t VALUES ('2026-01-01 00:30:00+01:00')")
    table = read_schema(company.session.connection()).table("t")
    until = parse_until("end of year of at + 1 year")
    ends = [
        company.session.scalar(select(last_day(table, until, company.engine, ZoneInfo(zone))))
        for zone in ("UTC", "Europe/Berlin")
    ]
    # SQLite knows no zones: there it is always UTC.
    berlin = date(2027 if company.engine == "postgresql" else 2026, 12, 31)
    assert ends == [date(2026, 12, 31), berlin]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2031-13-01",
        "a + 0 years",
        "a + 1001 years",
        "a + 10",
        "a - 10 years",
        "+ 1 year",
        "a + ten years",
    ],
)
def test_what_means_no_day_is_refused(text):
    assert parse_until(text) is None


def test_texts_are_written_back_in_one_form():
    texts = ["2031-12-31", "a + 1 year", "end of year of a + 10 years", "a b+3  days"]
    assert [str(parse_until(text)) for text in texts] == [*texts[:3], "a b + 3 days"]


# --- what is kept, and what is due ---------------------------------------------------------------------


def test_a_look_counts_rows_those_without_a_date_and_the_first_day_of_freedom(shop):
    kept = looked(shop)
    assert (kept.rows, kept.undated, kept.first_due) == (3, 1, date(2020, 3, 2))
    assert kept.by_rule == {"issued_on + 10 years": date(2020, 3, 2)}


@pytest.mark.parametrize(("today", "rows"), [("2020-03-01", 0), ("2020-03-02", 1), ("2030-03-02", 2)])
def test_a_row_goes_on_the_day_after_its_last_one_and_one_without_a_date_never(shop, today, rows):
    foreseen, done = end(shop, date.fromisoformat(today))
    assert foreseen["invoices"] == DueRows(deleted=rows)
    assert done["invoices"] == (rows, 0)


def test_other_people_s_rows_are_byte_identical_afterwards(shop):
    before = shop.rows("SELECT * FROM invoices WHERE customer_id = 2")
    end(shop, date(2099, 1, 1))
    assert shop.rows("SELECT * FROM invoices WHERE customer_id = 2") == before
    assert shop.rows("SELECT id FROM invoices WHERE customer_id = 1") == [(12,)]


def test_ending_again_changes_nothing(shop):
    end(shop, date(2025, 1, 1))
    assert end(shop, date(2025, 1, 1)) == (
        {"invoices": DueRows(), "lines": DueRows()},
        {"invoices": (0, 0), "lines": (0, 0)},
    )


def test_an_erasure_leaves_all_of_it(shop):
    before = shop.rows("SELECT * FROM invoices ORDER BY id")
    erase(shop.session, shop.plan(SHOP), "1")
    assert shop.rows("SELECT * FROM invoices ORDER BY id") == before
    assert looked(shop).rows == 3


class TestParentsAndChildren:
    def test_a_parent_waits_for_its_children(self, shop):
        shop.run("INSERT INTO lines VALUES (100, 10, 'hat', '2019-06-01 10:00:00')")
        foreseen, done = end(shop, date(2020, 4, 1))
        assert foreseen["invoices"] == DueRows(waiting=1)
        assert done == {"lines": (0, 0), "invoices": (0, 0)}

    def test_they_go_together_when_the_last_child_is_due(self, shop):
        shop.run("INSERT INTO lines VALUES (100, 10, 'hat', '2019-06-01 10:00:00')")
        foreseen, done = end(shop, date(2021, 6, 2))
        assert foreseen == {"lines": DueRows(deleted=1), "invoices": DueRows(deleted=1)}
        assert done == {"lines": (1, 0), "invoices": (1, 0)}

    def test_a_child_without_a_date_holds_its_parent_for_ever(self, shop):
        shop.run("INSERT INTO lines VALUES (100, 10, 'hat', NULL)")
        foreseen, done = end(shop, date(2029, 1, 1))
        assert (foreseen["invoices"], done["invoices"]) == (DueRows(waiting=1), (0, 0))


CELLS = """
    version: 1
    subject: {table: people, key: id}
    tables:
      people:
        columns:
          id: not_personal
          born: not_personal
          name: {retain: {basis: a, until: born + 20 years, then: {anonymise: fixed_text, text: gone}}}
          mail: {retain: {basis: b, until: born + 30 years}}
          code: {retain: c}
    """


class TestCells:
    """Columns of one row whose retentions end at different times."""

    @pytest.fixture
    def people(self, company):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY, born date, name text, mail text, code text)",
            "INSERT INTO people VALUES (1, '2000-01-01', 'Alice', 'a@b.example', 'x'),"
            " (2, '2000-01-01', 'B', 'b', 'y')",
        )
        return company

    def test_each_cell_gets_its_then_when_its_own_end_has_come(self, people):
        foreseen, _ = end(people, date(2021, 1, 1), CELLS)
        assert foreseen["people"] == DueRows(changed=1)
        assert people.rows("SELECT name, mail, code FROM people WHERE id = 1") == [
            ("gone", "a@b.example", "x")
        ]
        end(people, date(2031, 1, 1), CELLS)
        assert people.rows("SELECT name, mail, code FROM people ORDER BY id") == [
            ("gone", None, "x"),
            ("B", "b", "y"),
        ]

    def test_the_first_day_moves_on_to_the_next_cell(self, people):
        assert looked(people, CELLS, "people").first_due == date(2020, 1, 2)
        end(people, date(2021, 1, 1), CELLS)
        assert looked(people, CELLS, "people").first_due == date(2030, 1, 2)
        end(people, date(2031, 1, 1), CELLS)
        kept = looked(people, CELLS, "people")
        assert (kept.rows, kept.first_due) == (1, None)

    def test_a_row_goes_when_the_last_of_its_cells_is_due_and_nothing_else_keeps_it(self, people):
        yaml = CELLS.replace(", then: {anonymise: fixed_text, text: gone}", "").replace(
            "code: {retain: c}", "code: delete"
        )
        assert end(people, date(2021, 1, 1), yaml)[1] == {"people": (0, 1)}
        assert looked(people, yaml, "people").first_due == date(2030, 1, 2)
        assert end(people, date(2030, 1, 2), yaml)[1] == {"people": (1, 0)}
        assert people.rows("SELECT id FROM people") == [(2,)]


def test_rows_that_point_at_each_other_go_from_the_last_to_the_first(company):
    yaml = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, name: {anonymise: fixed_text}}}
          posts:
            link: {to: people, on: {person: id}}
            columns:
              {id: not_personal, person: &r {retain: {basis: a, until: day + 1 year}}, parent: *r, day: *r}
        """
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text)",
        "CREATE TABLE posts (id integer PRIMARY KEY, person integer REFERENCES people,"
        " parent integer REFERENCES posts, day date)",
        "INSERT INTO people VALUES (1, 'Alice')",
        "INSERT INTO posts VALUES (1, 1, 1, '2020-01-01'), (2, 1, 1, '2020-01-01'), (3, 1, 2, '2020-01-01')",
    )
    for left in (2, 1, 0):
        end(company, date(2025, 1, 1), yaml)
        assert len(company.rows("SELECT id FROM posts")) == left


# --- what check refuses --------------------------------------------------------------------------------


def problems(company, yaml):
    return [each.message for each in check_map(company.session.connection(), company.map(yaml))]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("issued_on + 10", "isued_on + 10", "invoices has no column 'isued_on'; did you mean 'issued_on'?"),
        ("issued_on + 10", "number + 10", "'number' must be a column of dates or moments"),
        ("issued_on: *tax", "issued_on: delete", "the erasure changes 'issued_on', so the end would be lost"),
        ("customer_id: &tax {", "customer_id: delete\n      number: &tax {", "changes invoices.cust"),
        ("number: *tax", "number: {retain: {basis: a, until: 2031-12-31}}", "found or counted by it"),
        ("number: *tax", "number: {retain: x}", "found or counted by it"),
        ("number: *tax", "number: {retain: {basis: a, until: 2031-12-31}}", "NOT NULL (when its"),
        ("invoice_id: &lines {", "invoice_id: {retain: x}\n      text: &lines {", "its rows stay"),
    ],
)  # fmt: skip
def test_a_retention_that_could_not_end_is_refused(shop, before, after, said):
    yaml = SHOP.replace(before, after, 1)
    if after.startswith(("customer_id: delete", "invoice_id: {retain: x}")):
        yaml = yaml.replace(
            ("      number: *tax\n" if "customer" in after else "      text: *lines\n"), "", 1
        )
    assert any(said in message for message in problems(shop, yaml)), problems(shop, yaml)


def test_a_pointer_from_a_table_outside_the_map_is_refused_before_it_stops_the_end(shop):
    shop.run("CREATE TABLE audit_marks (invoice integer REFERENCES invoices)")
    found = problems(shop, SHOP + "not_personal: [audit_marks]\n")
    assert [message for message in found if "audit_marks" in message and "ended" in message]


class TestChecks:
    """What a CHECK or a domain would refuse when the time has come is refused now."""

    @pytest.mark.parametrize(
        ("check", "said"),
        [
            ("length(name) > 4", "people.name: fixed_text does not satisfy the CHECK c (when its retention"),
            ("mail IS NOT NULL", "people.mail: delete does not satisfy the CHECK c (when its retention"),
            ("length(name) > 3 OR mail IS NOT NULL", None),
            ("length(name) > 4 OR mail IS NOT NULL", "together with mail (delete) does not satisfy"),
        ],
    )
    def test_what_a_cell_becomes_is_tried(self, company, check, said):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY, born date, name text, mail text, code text,"
            f" CONSTRAINT c CHECK ({check}))"
        )
        found = problems(company, CELLS)
        assert len(found) == (said is not None)
        assert all(said in message for message in found)

    def test_a_row_that_goes_with_the_last_of_its_cells_is_not_asked_about(self, company):
        yaml = CELLS.replace(", then: {anonymise: fixed_text, text: gone}", "").replace(
            "code: {retain: c}", "code: delete"
        )
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY, born date, name text, mail text, code text,"
            " CONSTRAINT c CHECK (name IS NOT NULL OR mail IS NOT NULL))"
        )
        assert problems(company, yaml) == []

    @pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)
    def test_a_domain_is_asked_too(self, company):
        company.run(
            "CREATE DOMAIN long_name AS text CONSTRAINT long CHECK (length(value) > 4)",
            "CREATE TABLE people (id integer PRIMARY KEY, born date, name long_name, mail text, code text)",
        )
        (said,) = problems(company, CELLS)
        assert said == (
            "people.name: fixed_text does not satisfy the CHECK long of the domain long_name"
            " (when its retention has ended)"
        )


def test_lines_that_are_kept_for_ever_under_rows_that_end_are_refused_with_the_way_out(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text)",
        "CREATE TABLE bills (id integer PRIMARY KEY, person integer REFERENCES people, day date)",
        "CREATE TABLE lines (bill integer REFERENCES bills, price integer)",
    )
    (said,) = problems(
        company,
        """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, name: {anonymise: fixed_text}}}
          bills:
            link: {to: people, on: {person: id}}
            columns: {id: not_personal, person: &r {retain: {basis: a, until: day + 10 years}}, day: *r}
          lines:
            link: {to: bills, on: {bill: id}}
            columns: {bill: &l {retain: a}, price: *l}
        """,
    )
    assert said.startswith("lines: its rows stay because of bill")
    assert said.endswith("(when its retention has ended; give both tables an 'until', or neither)")


def test_the_map_of_the_shop_is_fine(shop):
    assert problems(shop, SHOP) == []


def test_today_is_the_day_where_deadlines_end(shop):
    plan = plan_retention(shop.plan(SHOP), ZoneInfo("Pacific/Auckland"))
    with clock.pretend(datetime(2026, 1, 1, 13, tzinfo=UTC)):
        assert plan.today == date(2026, 1, 2)


def test_rows_of_another_kind_with_the_same_number_hold_nothing_back(company):
    yaml = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, name: {anonymise: fixed_text}}}
          bills:
            link: {to: people, on: {person: id}}
            columns: {id: not_personal, person: &r {retain: {basis: a, until: day + 1 year}}, day: *r}
          notes:
            link: {to: bills, on: {owner: id}, where: {kind: bill}}
            columns: {owner: &n {retain: {basis: b, until: day + 9 years}}, kind: *n, day: *n}
        """
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text)",
        "CREATE TABLE bills (id integer PRIMARY KEY, person integer, day date)",
        "CREATE TABLE notes (owner integer, kind varchar(9), day date)",
        "INSERT INTO people VALUES (1, 'Alice')",
        "INSERT INTO bills VALUES (1, 1, '2020-01-01'), (2, 1, '2020-01-01')",
        "INSERT INTO notes VALUES (1, 'order', '2020-01-01'), (2, 'bill', '2020-01-01')",
    )
    foreseen, _ = end(company, date(2025, 1, 1), yaml)
    assert foreseen["bills"] == DueRows(deleted=1, waiting=1)
    assert company.rows("SELECT id FROM bills") == [(2,)]


def test_rows_that_could_not_be_found_any_more_when_their_turn_comes_are_refused(company):
    company.run(
        "CREATE TABLE places (id integer PRIMARY KEY, street text, day date)",
        "CREATE TABLE people (id integer PRIMARY KEY, name text, day date, place integer REFERENCES places)",
    )
    yaml = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people:
            columns:
              {id: not_personal, name: &r {retain: {basis: a, until: day + 1 year}}, day: *r, place: *r}
          places:
            link: {from: people, on: {id: place}}
            columns: {id: not_personal, street: *r, day: *r}
        """
    assert any("so that nobody could find them" in message for message in problems(company, yaml))


def test_a_row_that_stays_when_a_cell_of_it_ends_may_have_to_be_looked_up_for_others(company):
    company.run(
        "CREATE TABLE rooms (id integer PRIMARY KEY)",
        "CREATE TABLE people (id integer PRIMARY KEY, name text, room integer)",
    )
    yaml = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people:
            columns:
              id: not_personal
              name: {retain: {basis: a, until: 2099-12-31, then: {anonymise: null}}}
              room: delete
            mentions: {to: rooms, on: {room: id}, columns: {room: delete}}
          rooms: {link: {from: people, on: {id: room}}, columns: {id: delete}}
        """
    assert problems(company, yaml) == []


def test_each_kind_of_people_has_its_own_ends(company):
    company.run(
        "CREATE TABLE customers (id integer PRIMARY KEY, name text, day date)",
        "CREATE TABLE staff (id integer PRIMARY KEY, name text, left_on date)",
        "INSERT INTO customers VALUES (1, 'Alice', '2020-01-01')",
        "INSERT INTO staff VALUES (1, 'Bob', '2020-01-01')",
    )
    yaml = """
        version: 1
        subjects: {customer: {table: customers, key: id}, employee: {table: staff, key: id}}
        tables:
          customers:
            columns: {id: not_personal, name: &c {retain: {basis: a, until: day + 1 year}}, day: *c}
          staff:
            columns: {id: not_personal, name: &s {retain: {basis: b, until: left_on + 3 years}}, left_on: *s}
        """
    plans = plan_retention(company.plan(yaml), ZONE)
    found = {}
    for kind in ("customer", "employee"):
        plan = plans.for_people(kind)
        (keep,) = plan.tables.values()
        found[kind] = keep.read_counts(
            company.session.execute(keep.count_kept, plan.plan.key.require("1")).one()
        )
    assert {kind: (each.table, each.first_due) for kind, each in found.items()} == {
        "customer": ("customers", date(2021, 1, 2)),
        "employee": ("staff", date(2023, 1, 2)),
    }
