"""A tiny company with one table that matters, for tests of the requests room."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from officers import add_officer
from planned import planned
from sqlalchemy import select, text

from effaced.accounts.tables import ApiKey, Officer
from effaced.audit.tables import AuditEvent
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.deadletters.tables import DeadLetter
from effaced.model import RequestKind, Role, new_id
from effaced.outbox.tables import OutboxRow
from effaced.requests.execute import Executor
from effaced.requests.intake import Intake, IntakeRequest, receive
from effaced.requests.tables import Request
from effaced.resolvers.noop import NoopResolver
from effaced.resolvers.registry import Registered, ResolverRegistry

MAP = """
version: 1
subject: {table: people, key: id}
identifiers: {email: email}
refs:
  crm_contact: {column: crm}
tables:
  people:
    columns: {id: delete, email: delete, crm: delete}
rectify: {email: people.email}
"""
REFUSE = "RAISE EXCEPTION 'kept' USING ERRCODE = 'restrict_violation'"
EXECUTE_KEEP = "FOR EACH ROW EXECUTE FUNCTION keep()"


def trigger_function(name: str, body: str) -> str:
    """PostgreSQL's statement that makes a trigger function with one statement in it."""
    return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; END $$"


class Office:
    """Anna (1) is known to the CRM, Bert (2) is not; Olga and Otto are officers, Ada audits."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.db = database
        self.keyring = Keyring.parse(new_key())
        with database.begin() as session:
            session.execute(text("CREATE TABLE people (id integer PRIMARY KEY, email text, crm text)"))
            for row in ("1, 'Anna@People.example', 'c-1'", "2, 'bert@people.example', NULL"):
                session.execute(text(f"INSERT INTO people VALUES ({row})"))
            self.olga, self.otto, self.ada = (
                add_officer(session, name, role)
                for name, role in (("olga", Role.OFFICER), ("otto", Role.OFFICER), ("ada", Role.AUDITOR))
            )
        path = folder / "datamap.yaml"
        path.write_text(MAP)
        with database.read() as session:
            self.plan = planned(session, path)
        self.registry = ResolverRegistry((Registered("crm", "crm_contact", NoopResolver()),))
        self.executor = Executor(database, self.keyring, self.plan, self.registry)

    def key(self, approvals: int = 1) -> ApiKey:
        from effaced.accounts.api_keys import create_api_key
        from effaced.accounts.key_rules import NewApiKey

        with self.db.begin() as session:
            key, _ = create_api_key(
                session, NewApiKey(name=f"key {new_id()}", approvals_needed=approvals), actor="cli"
            )
            return key

    def receive(
        self,
        person: str = "1",
        *,
        approvals: int = 1,
        entered_by: Officer | None = None,
        reason: str | None = None,
        key: ApiKey | None = None,
    ) -> Intake:
        if key is None and entered_by is None:
            key = self.key(approvals)
        with self.db.begin() as session:
            return receive(
                session,
                self.keyring,
                self.plan,
                IntakeRequest(
                    RequestKind.ERASURE,
                    person,
                    api_key=key,
                    entered_by=entered_by.id if entered_by else None,
                    reason=reason,
                ),
            )

    def request(self, request_id: UUID) -> Request:
        with self.db.read() as session:
            return session.get_one(Request, request_id)

    def sql(self, statement: str) -> None:
        """Change the company's tables, as its own applications do."""
        with self.db.begin() as session:
            session.execute(text(statement))

    def people(self) -> list[int]:
        with self.db.read() as session:
            return list(session.scalars(text("SELECT id FROM people ORDER BY id")))

    def entries(self) -> list[OutboxRow]:
        with self.db.read() as session:
            return list(session.scalars(select(OutboxRow)))

    def letters(self) -> list[DeadLetter]:
        with self.db.read() as session:
            return list(session.scalars(select(DeadLetter)))

    def types(self, request_id: UUID) -> list[str]:
        with self.db.read() as session:
            found = select(AuditEvent.type).where(AuditEvent.request_id == request_id).order_by(AuditEvent.id)
            return list(session.scalars(found))

    def payloads(self) -> str:
        with self.db.read() as session:
            return str(list(session.scalars(select(AuditEvent.payload))))

    def break_execution(self) -> None:
        """From now on nobody can be deleted: a rule of the company's own database says no."""
        with self.db.begin() as session:
            if session.get_bind().dialect.name == "sqlite":
                session.execute(
                    text("CREATE TRIGGER keep BEFORE DELETE ON people BEGIN SELECT RAISE(ABORT, 'kept'); END")
                )
            else:
                session.execute(text(trigger_function("keep", REFUSE)))
                session.execute(text(f"CREATE TRIGGER keep BEFORE DELETE ON people {EXECUTE_KEEP}"))

    def break_commit_of_anna(self) -> None:
        """From now on Anna can't be deleted, which PostgreSQL says at the commit and not before."""
        waiting = "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION keep()"
        with self.db.begin() as session:
            session.execute(text(trigger_function("keep", REFUSE)))
            session.execute(text(f"CREATE CONSTRAINT TRIGGER keep AFTER DELETE ON people {waiting}"))

    def mend_execution(self) -> None:
        with self.db.begin() as session:
            sqlite = session.get_bind().dialect.name == "sqlite"
            session.execute(text("DROP TRIGGER keep" if sqlite else "DROP TRIGGER keep ON people"))
