"""Customer 1 and employee 1 are two people."""

from __future__ import annotations

import pytest
from requests_cast import Office
from sqlalchemy import text

from effaced.core.errors import Refused
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import plan_erasure
from effaced.model import RequestKind
from effaced.requests.execute import Executor
from effaced.requests.intake import IntakeRequest, receive

MAP = """
version: 1
subjects:
  customer: {table: people, key: id, identifiers: {email: email}, refs: {crm_contact: {column: crm}}}
  employee: {table: staff, key: no}
tables:
  people: {columns: {id: delete, email: delete, crm: delete}}
  staff: {columns: {no: delete, name: delete}}
"""


class TwoKinds(Office):
    def __init__(self, database, folder):
        super().__init__(database, folder)
        with database.begin() as session:
            session.execute(text("CREATE TABLE staff (no integer PRIMARY KEY, name text)"))
            session.execute(text("INSERT INTO staff VALUES (1, 'Emil')"))
        (folder / "two.yaml").write_text(MAP)
        with database.read() as session:
            self.plan = plan_erasure(session.connection(), load_map(folder / "two.yaml"))
        self.executor = Executor(database, self.keyring, self.plan, self.registry)

    def ask(self, subject_type):
        with self.db.begin() as session:
            return receive(
                session,
                self.keyring,
                self.plan,
                IntakeRequest(RequestKind.ERASURE, "1", subject_type=subject_type, approvals=0),
            )

    def left(self):
        with self.db.read() as session:
            tables = ("people", "staff")
            return {t: session.execute(text(f"SELECT count(*) FROM {t}")).scalar_one() for t in tables}


@pytest.fixture
def two(db, tmp_path):
    return TwoKinds(db, tmp_path)


def test_are_not_taken_for_each_other(two):
    customer, employee = two.ask("customer"), two.ask("employee")
    assert not employee.duplicate
    assert customer.request.subject_hmac != employee.request.subject_hmac
    assert two.executor.execute_now(employee.request.id)
    assert two.left() == {"people": 2, "staff": 0}
    assert two.executor.execute_now(customer.request.id)
    assert two.left() == {"people": 1, "staff": 0}


def test_the_first_is_meant_where_none_is_named(two):
    first = two.ask(None).request
    assert two.ask("customer").request.duplicate_of == first.id


def test_one_that_the_map_does_not_have_is_refused_by_name(two):
    with pytest.raises(Refused) as refused:
        two.ask("patient")
    assert [(each.where, each.message) for each in refused.value.problems] == [
        ("subject.type", "must be customer or employee")
    ]


def test_a_map_that_gets_a_second_kind_knows_its_people_again(two, tmp_path):
    (tmp_path / "one.yaml").write_text(
        "version: 1\nsubject: {table: people, key: id}\ntables:\n"
        "  people: {columns: {id: delete, email: delete, crm: delete}}\nnot_personal: [staff]\n"
    )
    with two.db.read() as session:
        one = plan_erasure(session.connection(), load_map(tmp_path / "one.yaml"))
    assert one.hash_input("1") == two.plan.hash_input("1") != two.plan.for_people("employee").hash_input("1")
