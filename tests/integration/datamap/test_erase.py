"""What an erasure does to the company's own tables."""

from __future__ import annotations

import pytest

from effaced.core.errors import Conflict, NotFound
from effaced.datamap.model.data_map import Action, Retained
from effaced.datamap.run.erase import TableEffect, count_reachable, dry_run, erase

ONLY_SQLITE = pytest.mark.parametrize("company_database", ["sqlite"], indirect=True)
ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)

SHOP = """
    version: 1
    subject: {table: customers, key: id}
    tables:
      customers:
        columns:
          id: not_personal
          name: {anonymise: fixed_text, text: gone}
          email: {anonymise: random_unique}
          born: {anonymise: truncated_date, to: year}
          seen_at: {anonymise: truncated_date, to: month}
      invoices:
        link: {to: customers, on: {customer_id: id}}
        columns:
          id: not_personal
          customer_id: {retain: {basis: tax law}}
          number: {retain: {basis: "tax law, ten years", until: 2031-12-31}}
          note: delete
      carts:
        link: {to: customers, on: {customer_id: id}}
        columns: {id: not_personal, customer_id: delete}
      items:
        link: {to: carts, on: {cart_id: id}}
        columns: {cart_id: delete, line: delete, text: delete}
    """


@pytest.fixture
def shop(company):
    """Alice (1) and Bob (2), with an invoice and a cart each."""
    company.run(
        "CREATE TABLE customers (id integer PRIMARY KEY, name varchar(40), email varchar(60) UNIQUE,"
        " born date, seen_at timestamp)",
        "CREATE TABLE invoices (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers,"
        " number varchar(10), note text)",
        "CREATE TABLE carts (id integer PRIMARY KEY, customer_id integer NOT NULL)",
        "CREATE TABLE items (cart_id integer, line integer, text text)",
        "INSERT INTO customers VALUES (1, 'Alice', 'alice@example.org', '1984-05-06', '2024-03-17 12:30:00'),"
        " (2, 'Bob', 'bob@example.org', '1990-02-03', '2024-04-18 08:00:00')",
        "INSERT INTO invoices VALUES (10, 1, 'A-1', 'by hand'), (20, 2, 'B-1', 'by hand')",
        "INSERT INTO carts VALUES (100, 1), (101, 1), (200, 2)",
        "INSERT INTO items VALUES (100, 1, 'socks'), (101, 1, 'hat'), (200, 1, 'tea'), (999, 1, 'lost')",
    )
    return company


def test_rows_with_nothing_to_keep_are_deleted_over_several_links(shop):
    erase(shop.session, shop.plan(SHOP), "1")
    assert shop.rows("SELECT id, customer_id FROM carts") == [(200, 2)]
    assert shop.rows("SELECT text FROM items ORDER BY text") == [("lost",), ("tea",)]


def test_a_row_with_a_retained_column_stays_and_loses_its_deleted_ones(shop):
    erase(shop.session, shop.plan(SHOP), "1")
    assert shop.rows("SELECT * FROM invoices ORDER BY id") == [
        (10, 1, "A-1", None),
        (20, 2, "B-1", "by hand"),
    ]


def test_fixed_text_is_written_into_her_row_only(shop):
    erase(shop.session, shop.plan(SHOP), "1")
    assert shop.rows("SELECT name FROM customers ORDER BY id") == [("gone",), ("Bob",)]


def test_dates_are_cut_to_the_year_or_the_month(shop):
    erase(shop.session, shop.plan(SHOP), "1")
    [(born, seen_at)] = shop.rows("SELECT born, seen_at FROM customers WHERE id = 1")
    assert (str(born), str(seen_at)) == ("1984-01-01", "2024-03-01 00:00:00")


def test_a_cell_that_is_null_stays_null(shop):
    shop.run("UPDATE customers SET name = NULL, email = NULL, born = NULL WHERE id = 1")
    erase(shop.session, shop.plan(SHOP), "1")
    assert shop.rows("SELECT name, email, born FROM customers WHERE id = 1") == [(None, None, None)]


def test_random_values_differ_from_each_other(shop):
    plan = shop.plan(SHOP)
    erase(shop.session, plan, "1")
    erase(shop.session, plan, "2")
    emails = {email for (email,) in shop.rows("SELECT email FROM customers")}
    assert len(emails) == 2
    assert all(email.startswith("erased-") for email in emails)


@pytest.mark.parametrize("name", ["erased-bob", "erased-", "erased-0123456789abcdef"])
def test_a_person_who_looks_like_a_random_value_is_erased_all_the_same(shop, name):
    plan = shop.plan(SHOP)
    erase(shop.session, plan, "1")
    shop.session.connection().exec_driver_sql(f"UPDATE customers SET email = '{name}' WHERE id = 1")
    assert count_reachable(shop.session, plan, "1") == {"customers": 1}
    erase(shop.session, plan, "1")
    assert shop.rows(f"SELECT id FROM customers WHERE email = '{name}'") == []


def test_effects_name_rows_action_and_what_is_retained_with_its_basis(shop):
    kept = (Retained("customer_id", "tax law", None), Retained("number", "tax law, ten years", "2031-12-31"))
    assert [
        TableEffect("items", 2, Action.DELETED),
        TableEffect("carts", 2, Action.DELETED),
        TableEffect("invoices", 1, Action.ANONYMISED, kept),
        TableEffect("customers", 1, Action.ANONYMISED),
    ] == sorted(
        erase(shop.session, shop.plan(SHOP), "1"),
        key=lambda effect: ["items", "carts", "invoices", "customers"].index(effect.table),
    )


def test_a_row_that_is_only_retained_is_counted_and_left_alone(shop):
    plan = shop.plan(SHOP.replace("note: delete", "note: not_personal"))
    before = shop.rows("SELECT * FROM invoices ORDER BY id")
    effects = {effect.table: effect for effect in erase(shop.session, plan, "1")}
    assert (
        effects["invoices"].action,
        effects["invoices"].rows,
        effects["invoices"].changed,
    ) == (Action.RETAINED, 1, 0)
    assert before == shop.rows("SELECT * FROM invoices ORDER BY id")


def test_erasing_again_changes_no_row(shop):
    plan = shop.plan(SHOP)
    erase(shop.session, plan, "1")
    assert [effect.changed for effect in erase(shop.session, plan, "1")] == [0, 0, 0, 0]


def test_a_dry_run_foresees_the_run_and_changes_nothing(shop):
    plan = shop.plan(SHOP)
    before = shop.rows("SELECT * FROM customers")
    foreseen = dry_run(shop.session, plan, "1")
    assert before == shop.rows("SELECT * FROM customers")
    assert foreseen == erase(shop.session, plan, "1")


def test_a_dry_run_is_one_statement_and_a_run_one_per_table_a_look_and_the_schema(shop):
    plan = shop.plan(SHOP)
    with shop.statements() as sent:
        dry_run(shop.session, plan, "1")
    assert len(sent) == 1
    with shop.statements() as sent:
        erase(shop.session, plan, "1")
    # PostgreSQL locks the person's row first; how often one waits for it is for test_round_trips.
    assert len(sent) == (6 if shop.engine == "sqlite" else 7)


def test_nothing_is_committed(shop):
    plan = shop.plan(SHOP)
    point = shop.session.begin_nested()
    erase(shop.session, plan, "1")
    point.rollback()
    assert shop.rows("SELECT name FROM customers WHERE id = 1") == [("Alice",)]


def test_a_person_who_is_gone_has_zero_rows_everywhere(shop):
    assert {0} == {effect.rows for effect in erase(shop.session, shop.plan(SHOP), "4711")}


@pytest.mark.parametrize("impossible", ["", "x", "1.0", "01", "9" * 30, "1 OR 1=1"])
def test_an_id_that_no_key_can_have_is_not_found(shop, impossible):
    plan = shop.plan(SHOP)
    with pytest.raises(NotFound):
        erase(shop.session, plan, impossible)
    with pytest.raises(NotFound):
        dry_run(shop.session, plan, impossible)


def test_rows_that_came_after_the_erasure_are_found_by_reading_back(shop):
    plan = shop.plan(SHOP)
    erase(shop.session, plan, "1")
    assert count_reachable(shop.session, plan, "1") == {}
    shop.run("INSERT INTO carts VALUES (102, 1)", "INSERT INTO items VALUES (102, 1, 'late')")
    assert count_reachable(shop.session, plan, "1") == {"carts": 1, "items": 1}


# --- links -------------------------------------------------------------------------------------------


def test_rows_that_still_hold_a_deleted_persons_key_are_found_by_reading_back(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE notes (person integer, body text)",
        "INSERT INTO people VALUES (1)",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          notes: {link: {to: people, on: {person: id}}, columns: {person: delete, body: delete}}
        """)
    erase(company.session, plan, "1")
    company.run("INSERT INTO notes VALUES (1, 'late')")
    assert count_reachable(company.session, plan, "1") == {"notes": 1}


def test_a_row_belongs_to_whoever_any_of_its_links_reaches(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text)",
        "CREATE TABLE messages (sender integer REFERENCES people, receiver integer REFERENCES people,"
        " body text)",
        "INSERT INTO people VALUES (1, 'Alice'), (2, 'Bob'), (3, 'Carol')",
        "INSERT INTO messages VALUES (1, 2, 'a to b'), (3, 1, 'c to a'), (2, 3, 'b to c'), (NULL, 1, 'to a')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete, name: delete}}
          messages:
            link: [{to: people, on: {sender: id}}, {to: people, on: {receiver: id}}]
            columns: {sender: delete, receiver: delete, body: delete}
        """)
    erase(company.session, plan, "1")
    assert company.rows("SELECT body FROM messages") == [("b to c",)]


def test_composite_keys_are_matched_as_a_whole(company):
    company.run(
        "CREATE TABLE members (club varchar(5), no integer, name text, PRIMARY KEY (club, no))",
        "CREATE TABLE visits (club varchar(5), member integer, visit integer, FOREIGN KEY (club, member)"
        " REFERENCES members (club, no), PRIMARY KEY (club, member, visit))",
        "CREATE TABLE spendings (c varchar(5), m integer, v integer, what text)",
        "INSERT INTO members VALUES ('x', 1, 'Alice'), ('x', 2, 'Bob'), ('y', 1, 'Carol'), ('|x', 1, 'Dave')",
        "INSERT INTO visits VALUES ('x', 1, 1), ('x', 2, 1), ('y', 1, 1), ('|x', 1, 1)",
        "INSERT INTO spendings VALUES ('x', 1, 1, 'Alice'), ('x', 2, 1, 'Bob'), ('y', 1, 1, 'Carol'),"
        " ('|x', 1, 1, 'Dave'), ('x', 1, NULL, 'nobody')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: members, key: [club, no]}
        tables:
          members: {columns: {club: delete, no: delete, name: delete}}
          visits:
            link: {to: members, on: {member: no, club: club}}
            columns: {club: delete, member: delete, visit: delete}
          spendings:
            link: {to: visits, on: {c: club, m: member, v: visit}}
            columns: {c: delete, m: delete, v: delete, what: delete}
        """)
    erase(company.session, plan, "x|1")
    assert company.rows("SELECT name FROM members ORDER BY name") == [("Bob",), ("Carol",), ("Dave",)]
    erase(company.session, plan, "\\|x|1")
    assert company.rows("SELECT what FROM spendings ORDER BY what") == [("Bob",), ("Carol",), ("nobody",)]


def test_a_link_over_an_email_address_holds_until_the_address_is_anonymised(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, email text UNIQUE)",
        "CREATE TABLE newsletter (email text, topic text)",
        "INSERT INTO people VALUES (1, 'alice@example.org'), (2, 'bob@example.org'), (3, NULL)",
        "INSERT INTO newsletter VALUES ('alice@example.org', 'tea'), ('bob@example.org', 'tea'), (NULL, 'x')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, email: {anonymise: random_unique}}}
          newsletter: {link: {to: people, on: {email: email}}, columns: {email: delete, topic: delete}}
        """)
    erase(company.session, plan, "3")
    erase(company.session, plan, "1")
    assert company.rows("SELECT * FROM newsletter ORDER BY topic") == [
        ("bob@example.org", "tea"),
        (None, "x"),
    ]


def test_a_row_that_lets_go_of_its_deleted_parent_may_stay(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text)",
        "CREATE TABLE votes (id integer PRIMARY KEY, person integer REFERENCES people, choice text)",
        "INSERT INTO people VALUES (1, 'Alice'), (2, 'Bob')",
        "INSERT INTO votes VALUES (1, 1, 'yes'), (2, 2, 'no')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete, name: delete}}
          votes:
            link: {to: people, on: {person: id}}
            columns: {id: not_personal, person: delete, choice: {retain: statutes}}
        """)
    erase(company.session, plan, "1")
    assert company.rows("SELECT * FROM votes ORDER BY id") == [(1, None, "yes"), (2, 2, "no")]
    assert company.rows("SELECT * FROM people") == [(2, "Bob")]


THREADS = """
    version: 1
    subject: {table: people, key: id}
    tables:
      people: {columns: {id: delete}}
      comments:
        link: {to: people, on: {person: id}}
        columns: {id: delete, person: delete, answers: delete}
    """


def _threads(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE comments (id integer PRIMARY KEY, person integer REFERENCES people,"
        " answers integer CONSTRAINT answers_somebody REFERENCES comments)",
        "INSERT INTO people VALUES (1), (2)",
        "INSERT INTO comments VALUES (10, 1, NULL), (11, 1, 10), (12, 1, 11)",
    )


def test_a_persons_rows_may_point_at_each_other(company):
    _threads(company)
    erase(company.session, company.plan(THREADS), "1")
    assert company.rows("SELECT count(*) FROM comments") == [(0,)]


def test_a_rule_of_the_database_that_stands_against_it_is_a_conflict_without_values(company):
    _threads(company)
    company.run("INSERT INTO comments VALUES (4242, 2, 12)")
    with pytest.raises(Conflict, match="'comments'") as caught:
        erase(company.session, company.plan(THREADS), "1")
    assert "12" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_a_trigger_that_stands_against_it_is_a_conflict_without_values(company):
    company.run("CREATE TABLE people (id integer PRIMARY KEY)", "INSERT INTO people VALUES (4242)")
    if company.engine == "sqlite":
        company.run("CREATE TRIGGER no BEFORE DELETE ON people BEGIN SELECT raise(ABORT, 'not 4242'); END")
    else:
        company.run(
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'not %', old.id; END $$",
            "CREATE TRIGGER no BEFORE DELETE ON people FOR EACH ROW EXECUTE FUNCTION no()",
        )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables: {people: {columns: {id: delete}}}
        """)
    with pytest.raises(Conflict, match="'people'") as caught:
        erase(company.session, plan, "4242")
    assert "4242" not in str(caught.value)
    assert caught.value.__context__ is None


# --- names and types ---------------------------------------------------------------------------------


def test_names_with_odd_characters_are_quoted(company):
    company.run(
        'CREATE TABLE "My ""Clients"" 100%" ("Id" integer PRIMARY KEY, "e.mail (x)" text, "select" text)',
        'CREATE TABLE "Order" ("from" integer, "what?" text)',
        """INSERT INTO "My ""Clients"" 100%" VALUES (1, 'a@b.org', 'Alice'), (2, 'b@b.org', 'Bob')""",
        """INSERT INTO "Order" VALUES (1, 'socks'), (2, 'tea')""",
    )
    plan = company.plan("""
        version: 1
        subject: {table: 'My "Clients" 100%', key: Id}
        tables:
          'My "Clients" 100%':
            columns:
              Id: not_personal
              e.mail (x): {anonymise: random_unique}
              select: {anonymise: fixed_text}
          Order:
            link: {to: 'My "Clients" 100%', on: {from: Id}}
            columns: {from: delete, "what?": delete}
        """)
    erase(company.session, plan, "1")
    assert company.rows('SELECT "Id", "select" FROM "My ""Clients"" 100%" ORDER BY 1') == [
        (1, "erased"),
        (2, "Bob"),
    ]
    assert company.rows('SELECT * FROM "Order"') == [(2, "tea")]


@ONLY_POSTGRES
def test_postgres_types_enum_uuid_char_and_moments_with_zone(company):
    alice, bob = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"
    company.run(
        "CREATE TYPE mood AS ENUM ('happy', 'unknown')",
        "CREATE DOMAIN mail AS text CHECK (VALUE <> '')",
        "CREATE TABLE people (id uuid PRIMARY KEY, mood mood NOT NULL, code char(50) UNIQUE, name char(20),"
        " mail mail UNIQUE, seen timestamptz)",
        f"INSERT INTO people VALUES ('{alice}', 'happy', 'a', 'Alice', 'a@b', '2023-12-31 23:30:00-02'),"
        f" ('{bob}', 'happy', 'b', 'Bob', 'b@c', '2024-01-01 00:00:00Z')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people:
            columns:
              id: not_personal
              mood: {anonymise: fixed_text, text: unknown}
              code: {anonymise: random_unique}
              name: {anonymise: fixed_text, text: gone}
              mail: {anonymise: random_unique}
              seen: {anonymise: truncated_date, to: year}
        """)
    company.run("SET LOCAL timezone = 'Asia/Tokyo'")
    erase(company.session, plan, alice)
    assert [effect.rows for effect in erase(company.session, plan, alice)] == [0]
    row = company.rows(
        f"SELECT mood, trim(name), seen = '2024-01-01 00:00:00Z' FROM people WHERE id = '{alice}'"
    )
    assert row == [("unknown", "gone", True)]


@ONLY_POSTGRES
def test_postgres_partitions_are_reached_through_their_table(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE visits (person integer, at date) PARTITION BY RANGE (at)",
        "CREATE TABLE visits_2024 PARTITION OF visits FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')",
        "INSERT INTO people VALUES (1)",
        "INSERT INTO visits VALUES (1, '2024-05-05'), (2, '2024-05-05')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          visits: {link: {to: people, on: {person: id}}, columns: {person: delete, at: delete}}
        """)
    erase(company.session, plan, "1")
    assert company.rows("SELECT person FROM visits_2024") == [(2,)]


@ONLY_SQLITE
def test_a_date_that_sqlite_cannot_read_does_not_survive(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, born date)",
        "INSERT INTO people VALUES (1, '6th of May 1984')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, born: {anonymise: truncated_date}}}
        """)
    erase(company.session, plan, "1")
    assert company.rows("SELECT born FROM people") == [(None,)]
