"""A shop that keeps invoices ten years and their lines two, for tests of what has come due."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from pathlib import Path
from textwrap import dedent
from typing import Any
from uuid import UUID

from sqlalchemy import select, text

from effaced.audit.tables import AuditEvent
from effaced.core.clock import pretend
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.datamap.load.file import load_map
from effaced.datamap.plan.erasure import plan_erasure
from effaced.datamap.plan.retention import plan_retention
from effaced.model import RequestKind
from effaced.requests.execute import UTC as UTC_ZONE
from effaced.requests.execute import Executor
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.tables import Request, Retention
from effaced.resolvers.registry import ResolverRegistry
from effaced.retention.run import RequestResult, RetentionEnder, due_requests

MAP = dedent("""
    version: 1
    subject: {table: customers, key: id}
    tables:
      customers:
        columns: {id: not_personal, name: {anonymise: fixed_text}}
      invoices:
        link: {to: customers, on: {customer_id: id}}
        columns:
          id: not_personal
          customer_id: &tax {retain: {basis: tax law, until: issued_on + 10 years}}
          number: *tax
          issued_on: *tax
      lines:
        link: {to: invoices, on: {invoice_id: id}}
        columns:
          id: not_personal
          invoice_id: &lines {retain: {basis: warranty, until: sold_on + 2 years}}
          text: *lines
          sold_on: *lines
    """)
TABLES = """
    CREATE TABLE customers (id integer PRIMARY KEY, name varchar(40));
    CREATE TABLE invoices (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers,
        number varchar(10) NOT NULL, issued_on date);
    CREATE TABLE lines (id integer PRIMARY KEY, invoice_id integer NOT NULL REFERENCES invoices,
        text text NOT NULL, sold_on timestamp);
    INSERT INTO customers VALUES (1, 'Alice'), (2, 'Bob');
    INSERT INTO invoices VALUES (10, 1, 'A-1', '2016-03-01'), (11, 1, 'A-2', '2024-03-01'),
        (20, 2, 'B-1', '2016-03-01');
    INSERT INTO lines VALUES (100, 10, 'hat', '2025-06-01 10:00:00')
"""
ERASED = date(2026, 1, 1)
INVOICE_DUE = date(2026, 3, 2)
LINE_DUE = date(2027, 6, 2)
LAST_DUE = date(2034, 3, 2)


def on(day: date) -> Any:
    """Within the block it is noon of that day."""
    return pretend(datetime.combine(day, time(12), UTC))


class Shop:
    """Alice (1) has two invoices, of which the older has a line; Bob (2) has one."""

    batch_rows = 20_000

    def __init__(self, database: Database, folder: Path) -> None:
        self.db = database
        self.folder = folder
        self.keyring = Keyring.parse(new_key())
        with database.begin() as session:
            for statement in TABLES.split(";"):
                session.execute(text(statement))
        self.use(MAP)

    def use(self, yaml: str) -> None:
        path = self.folder / "datamap.yaml"
        path.write_text(yaml, encoding="utf-8")
        with self.db.read() as session:
            plan = plan_erasure(session.connection(), load_map(path), self.keyring)
        self.plan = plan_retention(plan, UTC_ZONE)
        self.executor = Executor(self.db, self.keyring, plan, ResolverRegistry(()))

    def erase(self, person: str = "1", day: date = ERASED) -> UUID:
        with on(day):
            with self.db.begin() as session:
                request = receive(
                    session,
                    self.keyring,
                    self.plan.plan,
                    IntakeRequest(RequestKind.ERASURE, person, approvals=0),
                ).request
            assert self.executor.execute_now(request.id)
        return request.id

    @property
    def ender(self) -> RetentionEnder:
        return RetentionEnder(self.db, self.keyring, self.plan, self.batch_rows)

    def end(self, day: date, *, reason: str = "its time is over", **more: Any) -> list[RequestResult]:
        with on(day):
            with self.db.read() as session:
                ids = due_requests(session, self.plan)
            return list(self.ender.end_requests(ids, actor="cli", reason=reason, **more))

    def kept(self) -> dict[str, Retention]:
        with self.db.read() as session:
            return {
                each.table_name: each for each in session.scalars(select(Retention).order_by(Retention.id))
            }

    def request(self, request_id: UUID) -> Request:
        with self.db.read() as session:
            return session.get_one(Request, request_id)

    def events(self, kind: str) -> list[AuditEvent]:
        with self.db.read() as session:
            return list(
                session.scalars(select(AuditEvent).where(AuditEvent.type == kind).order_by(AuditEvent.id))
            )

    def run(self, *statements: str) -> None:
        with self.db.begin() as session:
            for statement in statements:
                session.execute(text(statement))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.db.read() as session:
            return [tuple(row) for row in session.execute(text(query))]


def forbid(shop: Shop, invoice: int | None = None) -> None:
    """From now on the company's own database keeps this invoice, or all of them."""
    which = "true" if invoice is None else f"old.id = {invoice}"
    if shop.db.engine.dialect.name == "sqlite":
        shop.run(
            f"CREATE TRIGGER keep BEFORE DELETE ON invoices WHEN {which}"
            " BEGIN SELECT RAISE(ABORT, 'kept'); END"
        )
    else:
        shop.run(
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF {which} THEN RAISE EXCEPTION 'kept'; END IF; RETURN old; END $$",
            "CREATE TRIGGER keep BEFORE DELETE ON invoices FOR EACH ROW EXECUTE FUNCTION keep()",
        )
