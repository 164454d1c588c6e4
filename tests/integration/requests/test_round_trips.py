"""What an execution costs between effaced and the database, counted on the wire."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from effaced.bench.relay import relayed
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import plan_erasure
from effaced.model import RequestKind, RequestStatus
from effaced.requests.execute import Executor
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.tables import Request
from effaced.resolvers.noop import NoopResolver
from effaced.resolvers.registry import Registered, ResolverRegistry

MAP = """
version: 1
subject: {table: people, key: id}
refs: {person: {column: id}}
tables:
  people: {columns: {id: not_personal, email: {anonymise: fixed_text}}}
  orders: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete}}
  letters: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete}}
  bills:
    link: {to: people, on: {person: id}}
    columns: {id: not_personal, person: {retain: {basis: tax law, until: day + 10 years}}, day: not_personal}
"""


def test_four_tables_one_of_them_retained_and_four_systems_take_at_most_five_and_one_commit(
    migrated_postgres_url: str, tmp_path: Path
) -> None:
    (tmp_path / "map.yaml").write_text(MAP)
    keyring = Keyring.parse(new_key())
    registry = ResolverRegistry(
        tuple(Registered(name, "person", NoopResolver()) for name in ("crm", "mail", "pay", "files"))
    )
    direct = Database(migrated_postgres_url)
    with direct.begin() as session:
        session.execute(text("CREATE TABLE people (id integer PRIMARY KEY, email text)"))
        for name in ("orders", "letters"):
            session.execute(
                text(f"CREATE TABLE {name} (id serial PRIMARY KEY, person int REFERENCES people)")
            )
        session.execute(
            text("CREATE TABLE bills (id serial PRIMARY KEY, person int REFERENCES people, day date)")
        )
        session.execute(
            text("INSERT INTO people SELECT n, n || '@people.example' FROM generate_series(1, 2) n")
        )
        session.execute(
            text("INSERT INTO bills (person, day) SELECT n, '2020-01-01' FROM generate_series(1, 2) n")
        )
        session.execute(text("INSERT INTO orders (person) SELECT 1 FROM generate_series(1, 50)"))
        session.execute(text("INSERT INTO letters (person) SELECT 2 FROM generate_series(1, 50)"))
    with direct.read() as session:
        plan = plan_erasure(session.connection(), load_map(tmp_path / "map.yaml"))

    def ask(person: str) -> Request:
        with direct.begin() as session:
            return receive(
                session, keyring, plan, IntakeRequest(RequestKind.ERASURE, person, approvals=0)
            ).request

    first, second = ask("1"), ask("2")
    with relayed(migrated_postgres_url) as (url, relay):
        database = Database(url)
        executor = Executor(database, keyring, plan, registry)
        assert executor.execute_now(first.id)
        relay.restart()  # the connection is warm now
        assert executor.execute_now(second.id)
        database.dispose()
        working = relay.before_commit()
    assert len(working) <= 5, [trip[:60] for trip in working]
    with direct.read() as session:
        counts = [
            session.scalar(text(f"SELECT count(*) FROM {name}"))
            for name in ("people", "orders", "letters", "bills", "effaced_retentions", "effaced_outbox")
        ]
        assert counts == [2, 0, 0, 2, 2, 8]
        assert session.get_one(Request, second.id).status is RequestStatus.RUNNING
    direct.dispose()
