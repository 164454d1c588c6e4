"""A person with very many rows is erased in batches, and then like anybody else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from quick_database import open_quickly
from requests_cast import Office
from sqlalchemy import event, select, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.datamap.compile.batches import batch_statement
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import plan_erasure
from effaced.model import RequestStatus
from effaced.requests.execute import Executor
from effaced.requests.tables import Request

MAP = """
version: 1
subject: {table: people, key: id}
refs: {crm_contact: {column: crm}}
tables:
  people: {columns: {id: delete, email: delete, crm: delete}}
  visits:
    link: {to: people, on: {person: id}}
    columns: {id: not_personal, person: delete, place: {anonymise: null}}
  steps:
    link: {to: visits, on: {visit: id}}
    columns: {visit: delete, no: delete}
"""
MANY, FEW = 250, 3


class BigOffice(Office):
    """Anna (1) has 250 visits with one step each, Bert (2) has three; steps have no primary key."""

    def __init__(self, database, folder):
        super().__init__(database, folder)
        with database.begin() as session:
            session.execute(text("CREATE TABLE visits (id integer PRIMARY KEY, person integer, place text)"))
            session.execute(text("CREATE TABLE steps (visit integer REFERENCES visits, no integer)"))
            rows = [(n, 1) for n in range(MANY)] + [(1000 + n, 2) for n in range(FEW)]
            for visit, person in rows:
                session.execute(text(f"INSERT INTO visits VALUES ({visit}, {person}, 'x')"))
                session.execute(text(f"INSERT INTO steps VALUES ({visit}, 1)"))
        path = folder / "big.yaml"
        path.write_text(MAP)
        with database.read() as session:
            self.plan = plan_erasure(session.connection(), load_map(path))
        self.executor = Executor(database, self.keyring, self.plan, self.registry, batch_rows=100)

    def count(self, query: str) -> int:
        with self.db.read() as session:
            return int(session.execute(text(query)).scalar_one())

    def told(self, request_id, kind):
        with self.db.read() as session:
            found = select(AuditEvent.payload).where(
                AuditEvent.request_id == request_id, AuditEvent.type == kind
            )
            return list(session.scalars(found))

    def request(self, request_id):
        with self.db.read() as session:
            return session.get(Request, request_id)


@pytest.fixture
def big(db, tmp_path):
    return BigOffice(db, tmp_path)


def test_everything_goes_and_the_trail_counts_all_of_it(big):
    request = big.receive(approvals=0).request
    assert big.executor.execute_due() == 1
    assert big.request(request.id).status is RequestStatus.RUNNING
    assert big.count("SELECT count(*) FROM steps") == FEW
    assert big.count("SELECT count(*) FROM visits WHERE place IS NOT NULL") == FEW
    begun, executed = (
        big.told(request.id, name)[0] for name in ("LOCAL_ERASURE_BEGUN", "LOCAL_ERASURE_EXECUTED")
    )
    assert {each["table"]: each["rows"] for each in begun["tables"]} == {"steps": MANY, "visits": MANY}
    assert {each["table"]: each["rows"] for each in executed["tables"]} == {
        "steps": MANY,
        "visits": MANY,
        "people": 1,
    }


def test_no_transaction_changes_more_rows_than_one_batch(big):
    changed: list[int] = []

    @event.listens_for(big.db.engine, "after_cursor_execute")
    def note(_conn, cursor, statement, *_):
        if statement.startswith(("DELETE FROM steps", "UPDATE visits", "UPDATE OR ABORT visits")):
            changed.append(cursor.rowcount)

    big.receive(approvals=0)
    big.executor.execute_due()
    assert max(changed) == 100
    assert sum(changed) == 2 * MANY


def test_a_batch_that_meets_another_schema_is_undone_and_tried_again_later(big):
    batches = 0

    @event.listens_for(big.db.engine, "before_cursor_execute")
    def migrate(connection, _cursor, statement, *_):
        nonlocal batches
        if statement.startswith("DELETE FROM steps"):
            batches += 1
            if batches == 2:
                connection.exec_driver_sql("ALTER TABLE visits ADD COLUMN guest text")

    request = big.receive(approvals=0).request
    assert big.executor.execute_now(request.id) is False  # what takes long is not waited for
    assert big.executor.execute_due() == 1
    assert big.count("SELECT count(*) FROM steps") == MANY + FEW - 100
    waits = big.request(request.id)
    assert (waits.status, waits.execute_attempts, big.letters()) == (RequestStatus.APPROVED, 1, [])


def test_somebody_with_few_rows_is_erased_in_one_go(big):
    request = big.receive("2", approvals=0).request
    assert big.executor.execute_now(request.id)
    assert big.told(request.id, "LOCAL_ERASURE_BEGUN") == []
    assert big.request(request.id).batch_counts is None


def test_nobody_is_kept_waiting_for_it(big):
    request = big.receive(approvals=0).request
    assert not big.executor.execute_now(request.id)
    assert big.request(request.id).status is RequestStatus.APPROVED
    assert big.count("SELECT count(*) FROM steps") == MANY + FEW


class _Died(BaseException):
    pass


def test_another_process_goes_on_where_one_has_died(big):
    request = big.receive(approvals=0).request
    done = 0

    @event.listens_for(big.db.engine, "commit")
    def die(_conn):
        nonlocal done
        done += 1
        if done == 4:  # the beginning, and two batches of steps: the third is lost with its process
            raise _Died

    with pytest.raises(_Died):
        big.executor.execute_due()
    event.remove(big.db.engine, "commit", die)
    left = big.count("SELECT count(*) FROM steps WHERE visit < 1000")
    assert 0 < left < MANY
    assert big.executor.execute_due() == 0  # the dead one's five minutes
    with clock.pretend(clock.now() + timedelta(minutes=6)):
        assert big.executor.execute_due() == 1
    executed = big.told(request.id, "LOCAL_ERASURE_EXECUTED")[0]
    assert {each["table"]: each["rows"] for each in executed["tables"]}["steps"] == MANY
    assert len(big.told(request.id, "LOCAL_ERASURE_BEGUN")) == 1


def test_a_process_that_stops_begins_no_other_batch_and_another_continues_at_once(big):
    request = big.receive(approvals=0).request
    asked = iter([False, False])  # before the request, and before its first batch
    big.executor.execute_due(stopping=lambda: next(asked, True))
    assert big.count("SELECT count(*) FROM steps") == MANY + FEW - 100
    assert big.request(request.id).status is RequestStatus.APPROVED
    assert big.executor.execute_due() == 1
    assert big.request(request.id).status is RequestStatus.RUNNING


def test_a_batch_of_a_prepared_statement_finds_its_rows_by_their_place(migrated_postgres_url, tmp_path):
    """PostgreSQL plans what is prepared for the average person, who has few rows that lie together."""
    database = open_quickly(migrated_postgres_url)
    big = BigOffice(database, tmp_path)
    with database.begin() as session:
        session.execute(text("CREATE INDEX ON visits (person)"))
        session.execute(text("INSERT INTO visits SELECT 10000 + n, n / 5 FROM generate_series(50, 9999) n"))
        session.execute(text("INSERT INTO visits SELECT 20000 + n, 9999 FROM generate_series(1, 20000) n"))
        session.execute(text("ANALYZE visits"))
        (step,) = [step for step in big.plan.early if step.name == "visits"]
        statement = batch_statement(big.plan.schema, step.name, step.where, step.written)
        compiled = statement.compile(dialect=PGDialect_psycopg(paramstyle="numeric_dollar"))
        plan = session.connection().exec_driver_sql(f"EXPLAIN (GENERIC_PLAN) {compiled}").scalars().all()
    database.dispose()
    assert [line for line in plan if "Scan on visits" in line][-1].strip().startswith("->  Tid Scan"), plan
