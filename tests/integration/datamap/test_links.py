"""Every way in which rows belong to a person, or only mention one."""

from __future__ import annotations

import pytest

from effaced.core.errors import Conflict
from effaced.datamap.model.data_map import Action
from effaced.datamap.run.erase import dry_run, erase, erase_and_verify

ONLY_POSTGRES = pytest.mark.parametrize("company_database", ["postgresql"], indirect=True)


def effects(found):
    return {effect.table: (effect.action, effect.rows) for effect in found}


def erased(company, plan, subject_id="1"):
    """Erase, after a dry run that foresaw just that; what was done."""
    foreseen = dry_run(company.session, plan, subject_id)
    erased = erase_and_verify(company.session, plan, subject_id)
    done, left = erased.effects, erased.left
    assert foreseen == done
    assert left == {}
    assert all(effect.changed == 0 for effect in erase(company.session, plan, subject_id))
    return effects(done)


class TestRowsThatThePersonPointsAt:
    """Addresses: Alice (1) has her own (10) and shares one with Bob (11); 12 is an order's."""

    MAP = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, name: {anonymise: null}, home: delete, work: delete}}
          orders:
            link: {to: people, on: {person: id}}
            columns: {id: delete, person: delete, address: delete}
          addresses:
            link:
              - {from: people, on: {id: home}}
              - {from: people, on: {id: work}}
              - {from: orders, on: {id: address}}
            columns: {id: delete, street: delete}
          doors:
            link: {to: addresses, on: {address: id}}
            columns: {address: delete, code: delete}
        """

    @pytest.fixture
    def company(self, company):
        company.run(
            "CREATE TABLE addresses (id integer PRIMARY KEY, street text)",
            "CREATE TABLE doors (address integer REFERENCES addresses, code text)",
            "CREATE TABLE people (id integer PRIMARY KEY, name text, home integer REFERENCES addresses,"
            " work integer REFERENCES addresses)",
            "CREATE TABLE orders (id integer PRIMARY KEY, person integer, address integer)",
            "INSERT INTO addresses VALUES (10, 'Own Lane'), (11, 'Shared Road'), (12, 'Gift Street'),"
            " (13, 'Bob')",
            "INSERT INTO doors VALUES (10, 'a'), (11, 'b'), (13, 'c')",
            "INSERT INTO people VALUES (1, 'Alice', 10, 11), (2, 'Bob', 11, 13)",
            "INSERT INTO orders VALUES (100, 1, 12), (101, 1, 11)",
        )
        return company

    def test_go_only_while_nobody_else_points_at_them(self, company):
        assert erased(company, company.plan(self.MAP)) == {
            "doors": (Action.DELETED, 1),
            "orders": (Action.DELETED, 2),
            "people": (Action.ANONYMISED, 1),
            "addresses": (Action.DELETED, 2),
        }
        assert company.rows("SELECT id FROM addresses ORDER BY id") == [(11,), (13,)]
        assert company.rows("SELECT address FROM doors ORDER BY address") == [(11,), (13,)]

    def test_go_with_the_last_person_who_points_at_them(self, company):
        plan = company.plan(self.MAP)
        erase(company.session, plan, "1")
        erase(company.session, plan, "2")
        assert company.rows("SELECT id FROM addresses") == []

    def test_stay_while_a_table_without_people_points_at_them(self, company):
        company.run(
            "CREATE TABLE branches (address integer REFERENCES addresses)", "INSERT INTO branches VALUES (10)"
        )
        erase(company.session, company.plan(self.MAP.rstrip() + "\n        not_personal: [branches]"), "1")
        assert company.rows("SELECT id FROM addresses ORDER BY id") == [(10,), (11,), (13,)]

    def test_that_the_database_keeps_are_found_though_nothing_points_at_them_any_more(self, company):
        if company.engine == "sqlite":
            company.run(
                "CREATE TRIGGER keep BEFORE DELETE ON addresses BEGIN SELECT RAISE(IGNORE); END",
            )
        else:
            company.run(
                "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
                "CREATE TRIGGER keep BEFORE DELETE ON addresses FOR EACH ROW EXECUTE FUNCTION keep()",
            )
        left = erase_and_verify(company.session, company.plan(self.MAP), "1").left
        assert left == {"addresses": 2}

    def test_of_a_row_that_stays_with_its_pointer_are_refused(self, company):
        kept = self.MAP.replace(
            "person: delete, address: delete", "person: {retain: law}, address: {retain: law}"
        )
        kept = kept.replace("{id: delete, person: {", "{id: not_personal, person: {")
        with pytest.raises(
            Exception, match="orders: its rows stay because of person, but the rows of addresses"
        ):
            company.plan(kept)


def test_a_join_table_leads_to_what_it_joins(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE phones (id integer PRIMARY KEY, number text)",
        "CREATE TABLE people_phones (person integer REFERENCES people, phone integer REFERENCES phones,"
        " PRIMARY KEY (person, phone))",
        "INSERT INTO people VALUES (1), (2)",
        "INSERT INTO phones VALUES (7, 'own'), (8, 'shared')",
        "INSERT INTO people_phones VALUES (1, 7), (1, 8), (2, 8)",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          people_phones: {link: {to: people, on: {person: id}}, columns: {person: delete, phone: delete}}
          phones: {link: {from: people_phones, on: {id: phone}}, columns: {id: delete, number: delete}}
        """)
    erased(company, plan)
    assert company.rows("SELECT id FROM phones") == [(8,)]
    assert company.rows("SELECT person, phone FROM people_phones") == [(2, 8)]


class TestConditions:
    MAP = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          comments:
            link: {to: people, on: {owner_id: id}, where: {owner_type: [Person, person]}}
            columns: {id: delete, owner_type: not_personal, owner_id: delete, body: delete}
        """

    @pytest.fixture
    def company(self, company):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY)",
            "CREATE TABLE comments (id integer PRIMARY KEY, owner_type varchar(20), owner_id integer,"
            " body text)",
            "INSERT INTO people VALUES (1), (2)",
            "INSERT INTO comments VALUES (1, 'Person', 1, 'x'), (2, 'Company', 1, 'x'),"
            " (3, 'Person', 2, 'x'), (4, 'person', 1, 'x'), (5, NULL, 1, 'x')",
        )
        return company

    def test_tell_a_persons_rows_from_those_of_others_with_the_same_number(self, company):
        erased(company, company.plan(self.MAP))
        assert company.rows("SELECT id FROM comments ORDER BY id") == [(2,), (3,), (5,)]

    def test_may_ask_for_the_empty_cell(self, company):
        erased(company, company.plan(self.MAP.replace("[Person, person]", "[Person, null]")))
        assert company.rows("SELECT id FROM comments ORDER BY id") == [(2,), (3,), (4,)]

    @pytest.mark.parametrize(
        ("where", "said"),
        [
            ("{owner_type: [7]}", "comments.link.where.owner_type: must be a text"),
            ("{owner_id: Person}", "comments.link.where.owner_id: must be a number"),
            ("{owner_typ: Person}", "has no column 'owner_typ'; did you mean 'owner_type'"),
        ],
    )
    def test_that_no_cell_can_meet_are_refused(self, company, where, said):
        with pytest.raises(Exception, match=said):
            company.plan(self.MAP.replace("{owner_type: [Person, person]}", where))


def test_keys_of_another_type_are_compared_as_texts_if_the_map_says_so(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE notes (id integer PRIMARY KEY, object_id varchar(20))",
        "CREATE TABLE tags (note varchar(20), tag text)",
        "INSERT INTO people VALUES (1), (11)",
        "INSERT INTO notes VALUES (1, '1'), (2, '11'), (3, '01')",
        "INSERT INTO tags VALUES ('1', 'x'), ('2', 'y')",
    )
    tables = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          notes: {link: {to: people, on: {object_id: id}AS}, columns: {id: delete, object_id: delete}}
          tags: {link: {to: notes, on: {note: id}, as: text}, columns: {note: delete, tag: delete}}
        """
    with pytest.raises(Exception, match="never match; with 'as: text' they are compared as texts"):
        company.plan(tables.replace("AS", ""))
    erased(company, company.plan(tables.replace("AS", ", as: text")))
    assert company.rows("SELECT id FROM notes ORDER BY id") == [(2,), (3,)]
    assert company.rows("SELECT tag FROM tags") == [("y",)]


def test_a_row_that_others_point_at_by_a_text_stays_as_long_as_they_do(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, home varchar(20))",
        "CREATE TABLE homes (id integer PRIMARY KEY)",
        "INSERT INTO people VALUES (1, '7'), (2, '7'), (3, '8')",
        "INSERT INTO homes VALUES (7), (8)",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete, home: delete}}
          homes: {link: {from: people, on: {id: home}, as: text}, columns: {id: delete}}
        """)
    erased(company, plan)
    assert company.rows("SELECT id FROM homes ORDER BY id") == [(7,), (8,)]
    erased(company, plan, "2")
    assert company.rows("SELECT id FROM homes") == [(8,)]


def test_rows_that_go_after_the_person_are_still_found_by_a_text(company):
    company.run(
        "CREATE TABLE notes (id integer PRIMARY KEY, person varchar(20))",
        "CREATE TABLE people (id integer PRIMARY KEY, number varchar(5) UNIQUE NOT NULL,"
        " favourite integer REFERENCES notes)",
        "INSERT INTO notes VALUES (10, '1'), (20, '2')",
        "INSERT INTO people VALUES (1, 'a', 10), (2, 'b', 10)",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: number}
        tables:
          people:
            columns: {id: delete, number: delete, favourite: delete}
            mentions: {to: notes, on: {favourite: id}, columns: {favourite: delete}}
          notes: {link: {to: people, on: {person: id}, as: text}, columns: {id: delete, person: delete}}
        """)
    erased(company, plan, "a")
    assert company.rows("SELECT id FROM notes") == [(20,)]
    assert company.rows("SELECT id, favourite FROM people") == [(2, None)]


class TestMentions:
    MAP = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people:
            columns: {id: delete, name: delete, referred_by: delete}
            mentions: {to: people, on: {referred_by: id}, columns: {referred_by: {anonymise: null}}}
          comments:
            link: {to: people, on: {author: id}}
            columns: {id: delete, author: delete, parent: delete, quoting: delete}
            mentions:
              - to: comments
                on: {parent: id}
                columns: {parent: {anonymise: null}, quoting: {anonymise: fixed_text, text: "[gone]"}}
          tickets:
            columns: {id: not_personal, helper: not_personal, title: not_personal}
            mentions: {to: people, on: {helper: id}, columns: {helper: delete}}
        """

    @pytest.fixture
    def company(self, company):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY, name text, referred_by integer REFERENCES people)",
            "CREATE TABLE comments (id integer PRIMARY KEY, author integer REFERENCES people,"
            " parent integer REFERENCES comments, quoting text)",
            "CREATE TABLE tickets (id integer PRIMARY KEY, helper integer REFERENCES people, title text)",
            "INSERT INTO people VALUES (2, 'Bob', NULL), (1, 'Alice', 2), (3, 'Carol', 1)",
            "INSERT INTO comments VALUES (1, 1, NULL, NULL), (2, 1, 1, 'own'), (3, 2, 1, 'alice said'),"
            " (4, 2, 3, 'bob said')",
            "INSERT INTO tickets VALUES (1, 1, 'x'), (2, 2, 'y')",
        )
        return company

    def test_let_go_of_the_person_and_the_rest_of_the_row_stays(self, company):
        done = erased(company, company.plan(self.MAP))
        assert company.rows("SELECT * FROM people ORDER BY id") == [(2, "Bob", None), (3, "Carol", None)]
        assert company.rows("SELECT * FROM comments ORDER BY id") == [
            (3, 2, None, "[gone]"),
            (4, 2, 3, "bob said"),
        ]
        assert company.rows("SELECT * FROM tickets ORDER BY id") == [(1, None, "x"), (2, 2, "y")]
        assert done["tickets"] == (Action.DETACHED, 1)

    def test_are_told_apart_from_a_tables_own_rows(self, company):
        plan = company.plan(self.MAP)
        told = [(effect.table, effect.action, effect.rows) for effect in dry_run(company.session, plan, "1")]
        assert sorted(told) == [
            ("comments", Action.DELETED, 2),
            ("comments", Action.DETACHED, 1),
            ("people", Action.DELETED, 1),
            ("people", Action.DETACHED, 1),
            ("tickets", Action.DETACHED, 1),
        ]

    def test_that_keep_something_are_refused(self, company):
        with pytest.raises(Exception, match=r"tickets.mentions.helper must be delete or anonymise"):
            company.plan(self.MAP.replace("{helper: delete}", "{helper: not_personal}"))


def test_rows_that_are_the_persons_by_a_cell_that_goes_are_not_taken_for_mentions(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE accounts (id integer PRIMARY KEY, person integer, number varchar(40) UNIQUE)",
        "CREATE TABLE entries (id integer PRIMARY KEY, account varchar(40), kind text)",
        "INSERT INTO people VALUES (1)",
        "INSERT INTO accounts VALUES (1, 1, 'n')",
        "INSERT INTO entries VALUES (1, 'n', 'own'), (2, 'n', 'copied')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          accounts:
            link: {to: people, on: {person: id}}
            columns: {id: not_personal, person: delete, number: {anonymise: random_unique}}
          entries:
            link: {to: accounts, on: {account: number}, where: {kind: own}}
            columns: {id: not_personal, account: {retain: tax law}, kind: delete}
            mentions: {to: accounts, on: {account: number}, columns: {account: delete}}
        """)
    erased(company, plan)
    assert company.rows("SELECT * FROM entries ORDER BY id") == [(1, "n", None), (2, None, "copied")]


def test_rows_that_are_cut_off_and_go_on_mentioning_the_person_are_refused(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY, name text)",
        "CREATE TABLE notes (id integer PRIMARY KEY, author integer, reader integer, body text)",
        "INSERT INTO people VALUES (1, 'a')",
        "INSERT INTO notes VALUES (1, 1, 1, 'x')",
    )
    tables = """
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: not_personal, name: {anonymise: null}}}
          notes:
            link: {to: people, on: {author: id}}
            columns: {id: not_personal, author: delete, reader: KEPT, body: {anonymise: empty}}
            mentions: {to: people, on: {reader: id}, columns: {reader: delete}}
        """
    with pytest.raises(Exception, match=r"changes notes\.author, so .* let notes\.reader be delete"):
        company.plan(tables.replace("KEPT", "not_personal"))
    erased(company, company.plan(tables.replace("KEPT", "delete")))


def test_rows_below_a_persons_rows_are_theirs_however_deep(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE folders (id integer PRIMARY KEY, owner integer, up integer REFERENCES folders)",
        "CREATE TABLE files (folder integer REFERENCES folders, name text)",
        "INSERT INTO people VALUES (1), (2)",
        "INSERT INTO folders VALUES (1, 1, NULL), (2, NULL, 1), (3, NULL, 2), (4, 2, NULL), (5, NULL, 4)",
        "INSERT INTO files VALUES (3, 'deep'), (5, 'bob')",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          folders:
            link: [{to: people, on: {owner: id}}, {to: folders, on: {up: id}}]
            columns: {id: delete, owner: delete, up: delete}
          files: {link: {to: folders, on: {folder: id}}, columns: {folder: delete, name: delete}}
        """)
    assert erased(company, plan)["folders"] == (Action.DELETED, 3)
    assert company.rows("SELECT id FROM folders ORDER BY id") == [(4,), (5,)]
    assert company.rows("SELECT name FROM files") == [("bob",)]


class TestCircles:
    """People have a favourite home, homes have an owner, and the database insists on both."""

    @pytest.fixture
    def company(self, company):
        company.run("CREATE TABLE people (id integer PRIMARY KEY, name text, home integer)")
        company.run("CREATE TABLE homes (id integer PRIMARY KEY, owner integer NOT NULL REFERENCES people)")
        if company.engine == "postgresql":
            company.run("ALTER TABLE people ADD FOREIGN KEY (home) REFERENCES homes")
        else:
            company.run(
                "DROP TABLE people",
                "CREATE TABLE people (id integer PRIMARY KEY, name text, home integer REFERENCES homes)",
            )
        company.run(
            "INSERT INTO people VALUES (1, 'Alice', NULL), (2, 'Bob', NULL)",
            "INSERT INTO homes VALUES (10, 1), (11, 1), (20, 2)",
            "UPDATE people SET home = 10",
        )
        return company

    @pytest.mark.parametrize("name", ["delete", "{anonymise: null}"])
    def test_are_opened_where_a_pointer_may_be_empty(self, company, name):
        plan = company.plan(f"""
            version: 1
            subject: {{table: people, key: id}}
            tables:
              people:
                columns: {{id: not_personal, name: {name}, home: delete}}
                mentions: {{to: homes, on: {{home: id}}, columns: {{home: delete}}}}
              homes: {{link: {{to: people, on: {{owner: id}}}}, columns: {{id: delete, owner: delete}}}}
            """)
        erased(company, plan)
        assert company.rows("SELECT id, owner FROM homes") == [(20, 2)]
        assert company.rows("SELECT id, home FROM people WHERE id = 2") == [(2, None)]

    def test_of_several_pointers_are_opened_at_each_of_them(self, company):
        company.run(
            "ALTER TABLE people ADD COLUMN retreat integer REFERENCES homes",
            "UPDATE people SET retreat = 11 WHERE id = 1",
        )
        plan = company.plan("""
            version: 1
            subject: {table: people, key: id}
            tables:
              people:
                columns: {id: delete, name: delete, home: delete, retreat: delete}
                mentions:
                  - {to: homes, on: {home: id}, columns: {home: delete}}
                  - {to: homes, on: {retreat: id}, columns: {retreat: delete}}
              homes: {link: {to: people, on: {owner: id}}, columns: {id: delete, owner: delete}}
            """)
        erased(company, plan)
        assert company.rows("SELECT id FROM homes") == [(20,)]
        assert company.rows("SELECT id, home FROM people") == [(2, None)]

    def test_without_the_mention_ask_for_it(self, company):
        with pytest.raises(Exception, match=r"add to people the mentions {to: homes, on: {home: id}"):
            company.plan("""
                version: 1
                subject: {table: people, key: id}
                tables:
                  people: {columns: {id: delete, name: delete, home: delete}}
                  homes: {link: {to: people, on: {owner: id}}, columns: {id: delete, owner: delete}}
                """)


class TestSeveralKindsOfPeople:
    MAP = """
        version: 1
        subjects:
          customer: {table: customers, key: id, identifiers: {email: email}}
          employee: {table: staff, key: no}
        tables:
          customers: {columns: {id: delete, email: delete}}
          staff:
            columns: {no: delete, name: delete, manager: delete}
            mentions: {to: staff, on: {manager: no}, columns: {manager: delete}}
          tickets:
            link: {to: customers, on: {customer: id}}
            columns: {id: delete, customer: delete, agent: not_personal}
            mentions: {to: staff, on: {agent: no}, columns: {agent: {anonymise: null}}}
          logins:
            link: [{to: customers, on: {customer: id}}, {to: staff, on: {agent: no}}]
            columns: {customer: delete, agent: delete, ip: delete}
        """

    @pytest.fixture
    def company(self, company):
        company.run(
            "CREATE TABLE customers (id integer PRIMARY KEY, email text)",
            "CREATE TABLE staff (no integer PRIMARY KEY, name text, manager integer REFERENCES staff)",
            "CREATE TABLE tickets (id integer PRIMARY KEY, customer integer REFERENCES customers,"
            " agent integer REFERENCES staff)",
            "CREATE TABLE logins (customer integer, agent integer, ip text)",
            "INSERT INTO customers VALUES (1, 'a@example.org'), (2, 'b@example.org')",
            "INSERT INTO staff VALUES (1, 'Chief', NULL), (2, 'Helper', 1)",
            "INSERT INTO tickets VALUES (10, 1, 1), (11, 2, 1), (12, 2, 2)",
            "INSERT INTO logins VALUES (1, NULL, 'x'), (NULL, 1, 'y')",
        )
        return company

    def plans(self, company):
        plan = company.plan(self.MAP)
        return {name: plan.for_people(name) for name in ("customer", "employee")}

    def test_are_erased_each_by_what_leads_to_them(self, company):
        plans = self.plans(company)
        erased(company, plans["employee"])
        assert company.rows("SELECT * FROM staff") == [(2, "Helper", None)]
        assert company.rows("SELECT * FROM tickets ORDER BY id") == [(10, 1, None), (11, 2, None), (12, 2, 2)]
        assert company.rows("SELECT * FROM customers ORDER BY id") == [
            (1, "a@example.org"),
            (2, "b@example.org"),
        ]
        assert company.rows("SELECT ip FROM logins") == [("x",)]
        erased(company, plans["customer"])
        assert company.rows("SELECT id FROM tickets ORDER BY id") == [(11,), (12,)]
        assert company.rows("SELECT ip FROM logins") == []

    def test_leave_what_one_of_another_kind_points_at(self, company):
        company.run(
            "CREATE TABLE homes (id integer PRIMARY KEY)",
            "INSERT INTO homes VALUES (7), (8)",
            *(f"ALTER TABLE {name} ADD COLUMN home integer" for name in ("customers", "staff")),
            "UPDATE customers SET home = id + 6",
            "UPDATE staff SET home = 7 WHERE no = 2",
        )
        plan = company.plan(
            self.MAP.replace("delete, email: delete", "delete, email: delete, home: delete").replace(
                "manager: delete}\n", "manager: delete, home: delete}\n", 1
            )
            + "  homes: {link: [{from: customers, on: {id: home}}, {from: staff, on: {id: home}}],"
            " columns: {id: delete}}"
        )
        erased(company, plan, "1")
        erased(company, plan, "2")
        assert company.rows("SELECT id FROM homes") == [(7,)]
        erased(company, plan.for_people("employee"), "2")
        assert company.rows("SELECT id FROM homes") == []

    def test_share_one_hash(self, company):
        data_map = company.map(self.MAP)
        assert {data_map.hash} == {data_map.for_people(name).hash for name in ("customer", "employee")}

    def test_whose_rows_others_point_at_want_a_mention(self, company):
        without = self.MAP.replace(
            "            mentions: {to: staff, on: {agent: no}, columns: {agent: {anonymise: null}}}\n", ""
        )
        with pytest.raises(Exception, match=r"tickets: its foreign key tickets\(agent\) -> staff\(no\)"):
            company.plan(without)


@ONLY_POSTGRES
class TestSchemas:
    MAP = """
        version: 1
        schemas: [public, crm]
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          crm.contacts:
            link: {to: people, on: {person: id}}
            columns: {id: delete, person: delete, mail: {anonymise: null}}
          crm.calls:
            link: {to: crm.contacts, on: {contact: id}}
            columns: {contact: delete, note: delete}
        """

    @pytest.fixture
    def company(self, company):
        company.run(
            "CREATE TABLE people (id integer PRIMARY KEY)",
            "CREATE SCHEMA crm",
            "CREATE TABLE crm.contacts (id integer PRIMARY KEY, person integer REFERENCES people, mail text)",
            "CREATE TABLE crm.calls (contact integer REFERENCES crm.contacts, note text)",
            "INSERT INTO people VALUES (1), (2)",
            "INSERT INTO crm.contacts VALUES (1, 1, 'a'), (2, 2, 'b')",
            "INSERT INTO crm.calls VALUES (1, 'a'), (2, 'b')",
        )
        return company

    def test_that_the_map_names_are_looked_at(self, company):
        with pytest.raises(Exception, match=r"crm.contacts: its rows stay because of mail"):
            company.plan(
                self.MAP.replace("id: delete, person: delete", "id: not_personal, person: not_personal")
            )
        plan = company.plan(self.MAP.replace("mail: {anonymise: null}", "mail: delete"))
        erased(company, plan)
        assert company.rows("SELECT contact FROM crm.calls") == [(2,)]
        assert company.rows("SELECT id FROM crm.contacts") == [(2,)]

    def test_have_no_table_that_is_passed_over(self, company):
        company.run("CREATE TABLE crm.leads (id integer)")
        with pytest.raises(Exception, match=r"crm.leads: the table is not declared"):
            company.plan(self.MAP)


def test_a_row_of_somebody_else_that_points_at_a_row_that_goes_stops_the_erasure(company):
    company.run(
        "CREATE TABLE people (id integer PRIMARY KEY)",
        "CREATE TABLE posts (id integer PRIMARY KEY, author integer, up integer REFERENCES posts)",
        "INSERT INTO people VALUES (1), (2)",
        "INSERT INTO posts VALUES (1, 1, NULL), (2, 2, 1)",
    )
    plan = company.plan("""
        version: 1
        subject: {table: people, key: id}
        tables:
          people: {columns: {id: delete}}
          posts: {link: {to: people, on: {author: id}}, columns: {id: delete, author: delete, up: delete}}
        """)
    with pytest.raises(Conflict, match="refuses to erase in table 'posts'"):
        erase(company.session, plan, "1")
