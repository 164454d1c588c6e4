"""A schema that changes while effaced runs: no erasure by a plan that was made for another one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from quick_database import open_quickly
from requests_cast import Office
from retention_cast import LAST_DUE, on
from retention_cast import Shop as Keeper
from sqlalchemy import text
from waiting import eventually

from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import current_plan, plan_erasure
from effaced.datamap.schema.fingerprint import SchemaChanged, require_schema
from effaced.embed import Effaced
from effaced.model import Correction, RequestKind, RequestStatus
from effaced.requests.intake import IntakeRequest, receive
from effaced.resolvers.registry import ResolverRegistry

# The row stays, so that what nobody declared stays with it.
MAP = """
version: 1
subject: {table: customers, key: id}
rectify: {city: customers.city}
tables:
  customers:
    columns: {id: not_personal, email: {anonymise: null}, city: {anonymise: null}}
  orders:
    link: {to: customers, on: {customer: id}}
    columns: {id: delete, customer: delete}
"""
COLUMN = "ALTER TABLE customers ADD COLUMN phone text"
TABLE = "CREATE TABLE notes (id integer PRIMARY KEY, customer integer REFERENCES customers, body text)"
UNDECLARED = pytest.mark.parametrize(
    ("change", "said"),
    [(COLUMN, "customers.phone: the column is not declared"), (TABLE, "notes: the table is not declared")],
    ids=["column", "table"],
)


class Shop:
    """Three customers; the application has erased the first one by the time its schema changes."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.db = database
        self.run("CREATE TABLE customers (id integer PRIMARY KEY, email text, city text)")
        self.run("CREATE TABLE orders (id integer PRIMARY KEY, customer integer REFERENCES customers)")
        self.run("INSERT INTO customers VALUES (1, 'a@x.example', 'Ulm'), (2, 'b@x.example', 'Bonn')")
        self.run("INSERT INTO customers VALUES (3, 'c@x.example', 'Gera')")
        self.run("INSERT INTO orders VALUES (1, 1), (2, 2), (3, 3)")
        (path := folder / "shop.yaml").write_text(MAP)
        self.privacy = Effaced(
            database.sessions, keys=new_key(), datamap=path, resolvers=ResolverRegistry(())
        )
        self.erase("1")

    def run(self, statement: str) -> None:
        with self.db.begin() as session:
            session.execute(text(statement))

    def erase(self, person: str) -> None:
        with self.db.begin() as session:
            self.privacy.erase(session, person)

    def left(self, person: int) -> tuple[int, int]:
        """How many cells and orders of theirs there are."""
        with self.db.read() as session:
            mine = f"FROM customers WHERE id = {person}"
            cells = session.scalar(text(f"SELECT count(email) + count(city) {mine}"))
            orders = session.scalar(text(f"SELECT count(*) FROM orders WHERE customer = {person}"))
        return cells or 0, orders or 0

    def requests(self) -> int:
        with self.db.read() as session:
            return session.scalar(text("SELECT count(*) FROM effaced_requests")) or 0


@pytest.fixture
def shop(db: Database, tmp_path: Path) -> Shop:
    return Shop(db, tmp_path)


class TestEmbedded:
    @UNDECLARED
    def test_what_nobody_declared_is_refused_before_anything_changes(
        self, shop: Shop, change: str, said: str
    ) -> None:
        shop.run(change)
        with shop.db.begin() as session, pytest.raises(ConfigurationError, match=said):
            shop.privacy.erase(session, "2")
            # Nothing to roll back: the caller may go on, and commits.
        assert (shop.left(2), shop.requests()) == ((2, 1), 1)

    @UNDECLARED
    def test_a_correction_is_refused_too(self, shop: Shop, change: str, said: str) -> None:
        shop.run(change)
        with pytest.raises(ConfigurationError, match=said), shop.db.begin() as session:
            shop.privacy.rectify(session, "2", {"city": "Jena"})

    def test_a_change_in_the_caller_s_own_transaction_counts(self, shop: Shop) -> None:
        with shop.db.sessions() as session:
            session.execute(text(COLUMN))
            with pytest.raises(ConfigurationError, match=r"customers\.phone"):
                shop.privacy.erase(session, "2")

    def test_a_change_that_was_rolled_back_does_not_hide_the_next_one(self, shop: Shop) -> None:
        # SQLite's own schema version is the same after both.
        with shop.db.sessions() as session:
            session.execute(text("CREATE INDEX by_customer ON orders (customer)"))
            shop.privacy.erase(session, "2")
            session.rollback()
        shop.run(COLUMN)
        with pytest.raises(ConfigurationError, match=r"customers\.phone"):
            shop.erase("2")

    def test_a_schema_that_still_fits_is_planned_anew(self, shop: Shop) -> None:
        plan = shop.privacy.plan
        shop.run("CREATE INDEX by_customer ON orders (customer)")
        shop.erase("2")
        assert shop.left(2) == (0, 0)
        assert shop.privacy.plan is not plan

    def test_a_schema_that_stays_keeps_its_plan(self, shop: Shop) -> None:
        plan = shop.privacy.plan
        shop.run("INSERT INTO customers VALUES (4, 'd@x.example', 'Bern')")
        shop.erase("2")
        assert shop.privacy.plan is plan

    def test_when_it_fits_again_erasures_go_on(self, shop: Shop) -> None:
        shop.run(COLUMN)
        with pytest.raises(ConfigurationError):
            shop.erase("2")
        shop.run("ALTER TABLE customers DROP COLUMN phone")
        shop.erase("2")
        assert shop.left(2) == (0, 0)

    def test_another_table_under_the_same_name_is_another_schema(
        self, migrated_postgres_url: str, tmp_path: Path
    ) -> None:
        database = open_quickly(migrated_postgres_url)
        shop = Shop(database, tmp_path)
        shop.run("CREATE SCHEMA tenant")
        shop.run("CREATE TABLE tenant.customers (id integer PRIMARY KEY, email text, city text, phone text)")
        shop.run("INSERT INTO tenant.customers VALUES (2, 'z@x.example', 'Rom', '+39 1')")
        for other in (
            "SET LOCAL search_path = tenant, public",
            "CREATE TEMP TABLE customers ON COMMIT DROP AS SELECT * FROM customers",
        ):
            with database.sessions() as session:
                session.execute(text(other))
                with pytest.raises(ConfigurationError, match="another table of this name"):
                    shop.privacy.erase(session, "2")
        shop.erase("2")
        assert shop.left(2) == (0, 0)
        database.dispose()


class TestServer:
    def test_the_request_waits_for_a_person(self, office: Office) -> None:
        office.executor.execute_now(office.receive("2", approvals=0).request.id)
        request = office.receive("1", approvals=0).request
        office.sql("ALTER TABLE people ADD COLUMN phone text")
        assert office.executor.execute_now(request.id) is False
        waits = office.request(request.id)
        assert (waits.status, waits.execute_at) == (RequestStatus.APPROVED, None)
        assert [letter.failure_type for letter in office.letters()] == ["ConfigurationError"]
        assert (office.people(), office.entries()) == ([1], [])

    def test_a_column_that_went_is_told_as_a_map_that_does_not_fit(self, office: Office) -> None:
        request = office.receive(approvals=0).request
        office.sql("ALTER TABLE people DROP COLUMN crm")
        assert office.executor.execute_due() == 1
        assert [letter.failure_type for letter in office.letters()] == ["ConfigurationError"]
        assert office.request(request.id).status is RequestStatus.APPROVED

    def test_a_schema_that_still_fits_costs_no_attempt(self, office: Office) -> None:
        request = office.receive(approvals=0).request
        office.sql("CREATE INDEX by_email ON people (email)")
        assert office.executor.execute_now(request.id)
        done = office.request(request.id)
        assert (done.status, done.execute_attempts) == (RequestStatus.RUNNING, 0)
        assert (office.people(), office.letters()) == ([2], [])

    def test_an_approved_correction_stops_too(self, office: Office) -> None:
        with office.db.begin() as session:
            asked = IntakeRequest(
                RequestKind.RECTIFICATION,
                "1",
                approvals=0,
                corrections=[Correction("email", "new@people.example")],
            )
            request = receive(session, office.keyring, office.plan, asked).request
        office.sql("ALTER TABLE people ADD COLUMN second_email text")
        assert office.executor.execute_now(request.id) is False
        assert [letter.failure_type for letter in office.letters()] == ["ConfigurationError"]

    @pytest.mark.parametrize(
        "change",
        [COLUMN, TABLE],
        ids=["column", "table"],
    )
    def test_a_migration_that_commits_while_the_erasure_waits_for_it_is_met(
        self, postgres_office: Office, change: str
    ) -> None:
        """The erasure has begun by the old plan and then waits for the migration's lock."""
        office = postgres_office
        request = office.receive(approvals=0).request
        with ThreadPoolExecutor(1) as pool:
            with office.db.begin() as migration:
                migration.execute(text(change.replace("customers", "people")))
                execution = pool.submit(office.executor.execute_now, request.id)
                eventually(lambda: _somebody_waits_for_a_table(office), "the execution to wait")
            assert execution.result(timeout=60) is False
        assert office.people() == [1, 2]
        assert [letter.failure_type for letter in office.letters()] == ["ConfigurationError"]


@pytest.mark.parametrize(
    "change", ["ALTER TABLE lines ADD COLUMN note text", "CREATE TABLE gifts (id integer)"]
)
def test_the_end_of_a_retention_is_refused(db: Database, tmp_path: Path, change: str) -> None:
    keeper = Keeper(db, tmp_path)
    keeper.erase()
    ender = keeper.ender
    with db.begin() as session:
        session.execute(text(change))
    request = keeper.kept()["invoices"].request_id
    with on(LAST_DUE):
        (result,) = ender.end_requests([request], actor="cli", reason="over")
    assert "does not fit" in (result.error or "")
    with db.read() as session:
        assert session.scalar(text("SELECT count(*) FROM lines")) == 1


def _somebody_waits_for_a_table(office: Office) -> bool:
    with office.db.read() as session:
        waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND NOT granted")
        return bool(session.scalar(waiting))


# What would be overlooked, or done to the wrong rows, if the plan stayed.
CHANGES = {
    "a column renamed": "ALTER TABLE orders RENAME COLUMN note TO remark",
    "a column of another type": "ALTER TABLE orders ALTER COLUMN note TYPE varchar(9)",
    "a column that may be null": "ALTER TABLE orders ALTER COLUMN customer DROP NOT NULL",
    "a key that takes others along": "ALTER TABLE visits ADD FOREIGN KEY (place) REFERENCES orders"
    " ON DELETE CASCADE",
    "a key from a schema out of sight": "CREATE TABLE far.off (id int REFERENCES public.orders)",
    "no unique key": "ALTER TABLE customers DROP CONSTRAINT customers_pkey CASCADE",
    "a rule": "CREATE RULE quiet AS ON DELETE TO orders DO INSTEAD NOTHING",
    "row-level security": "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
    "a heir": "CREATE TABLE more_orders () INHERITS (orders)",
    "a table in a named schema": "CREATE TABLE side.extra (id int)",
    "a right taken": "REVOKE DELETE ON orders FROM CURRENT_USER",
    "another role": "SET LOCAL ROLE pg_read_all_data",
    "another search path": "SET LOCAL search_path = far, public",
}
LEAVES = {
    "rows": "INSERT INTO customers VALUES (9)",
    "statistics": "ANALYZE",
    "effaced's own tables": "ALTER TABLE effaced_outbox ADD COLUMN extra int",
    "a schema that no name leads to": "CREATE TABLE far.away (id int)",
    "a temporary table of another name": "CREATE TEMP TABLE pad (id int) ON COMMIT DROP",
}


@pytest.fixture
def many_tables(migrated_postgres_url: str) -> Database:
    database = open_quickly(migrated_postgres_url)
    with database.begin() as session:
        for statement in (
            "CREATE SCHEMA far",
            "CREATE SCHEMA side",
            "CREATE TABLE customers (id int PRIMARY KEY)",
            "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL REFERENCES customers, note text)",
            "CREATE TABLE visits (id int PRIMARY KEY, place int)",
        ):
            session.execute(text(statement))
    return database


class TestFingerprint:
    YAML = """
version: 1
schemas: [public, side]
subject: {table: customers, key: id}
not_personal: [visits]
tables:
  customers: {columns: {id: delete}}
  orders:
    link: {to: customers, on: {customer: id}}
    columns: {id: delete, customer: delete, note: delete}
"""

    def meets_another(self, database: Database, folder: Path, change: str) -> bool:
        (path := folder / "map.yaml").write_text(self.YAML)
        with database.sessions() as session:
            plan = plan_erasure(session.connection(), load_map(path))
            assert current_plan(session, plan) is plan
            session.execute(text(change))
            try:
                require_schema(session, plan.fingerprint)
            except SchemaChanged:
                return True
            return False

    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
    def test_notices(self, many_tables: Database, tmp_path: Path, change: str) -> None:
        assert self.meets_another(many_tables, tmp_path, change)
        many_tables.dispose()

    @pytest.mark.parametrize("change", LEAVES.values(), ids=LEAVES)
    def test_leaves_alone(self, many_tables: Database, tmp_path: Path, change: str) -> None:
        assert not self.meets_another(many_tables, tmp_path, change)
        many_tables.dispose()
