"""Vendors that fail, so that there are dead letters to work through."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from officers import add_officer
from quick_database import open_quickly
from saga_cast import KEYRING, House, Vendor
from sqlalchemy import delete, func, select

from effaced.accounts.tables import Officer
from effaced.audit.tables import AuditEvent
from effaced.core.db import Base, Database
from effaced.core.errors import ResolverError
from effaced.deadletters.read import DeadLetterFilter
from effaced.deadletters.record import record_failures
from effaced.deadletters.rules import Failure
from effaced.deadletters.tables import DeadLetter
from effaced.model import Correction, DeadLetterDomain, Role, new_id
from effaced.triage.redrive import start_redrive
from effaced.triage.redrive_read import RedriveView, redrive_results, redrive_view
from effaced.triage.retry import RedriveResult, redrive

KEPT = ("effaced_audit_events",)


@pytest.fixture(scope="module")
def databases(
    postgres_admin: Any,
    migrated_postgres_template: str,
    migrated_sqlite_template: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Database]]:
    """One database of each kind for the tests of a module: making one takes longer than most tests."""
    path = tmp_path_factory.mktemp("letters") / "letters.db"
    shutil.copyfile(migrated_sqlite_template, path)
    url = postgres_admin.create(template=migrated_postgres_template)
    made = {
        "sqlite": open_quickly(f"sqlite:///{path}", pool_size=8),
        "postgresql": open_quickly(url, pool_size=8),
    }
    yield made
    for database in made.values():
        database.dispose()
    postgres_admin.drop(url)


def emptied(database: Database) -> Database:
    """The same database without its rows, except the trail, which only grows."""
    with database.begin() as session:
        for table in reversed(Base.metadata.sorted_tables):
            if table.name not in KEPT:
                session.execute(delete(table))
    return database


NO = ResolverError("no", code="http_400")


class Post(House):
    """A house whose `crm` says no until it is mended."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        with database.read() as session:
            self.before = session.scalar(select(func.max(AuditEvent.id))) or 0
        self.crm = self.vendor("crm", Vendor(lambda _: NO))

    def fail(self, number: int = 1) -> list[UUID]:
        """That many abandoned calls, each of a request of its own; the ids of their letters."""
        known = {letter.id for letter in self.letters()}
        for n in range(number):
            self.request(("crm", f"c-{n}"))
        self.drain()
        return [letter.id for letter in self.by_age() if letter.id not in known]

    def fail_correction(self) -> UUID:
        known = {letter.id for letter in self.letters()}
        self.request(("crm", "c-1"), corrections=[Correction("name", "Berta")])
        self.drain()
        (made,) = {letter.id for letter in self.letters()} - known
        return made

    def fail_message(self) -> UUID:
        """A dead letter over a message that has since been forgotten: no work behind it is missing."""
        known = {letter.id for letter in self.letters()}
        failure = Failure(DeadLetterDomain.MESSAGE, None, None, "Refused", "http_400", entry_id=new_id())
        with self.db.begin() as session:
            record_failures(session, [failure])
        (made,) = {letter.id for letter in self.letters()} - known
        return made

    def events(self, *types: str) -> list[AuditEvent]:
        """Those since this post was opened: the trail of a shared database can't be emptied."""
        return [event for event in super().events(*types) if event.id > self.before]

    def mend(self) -> None:
        self.crm = self.vendor("crm", Vendor())

    def by_age(self) -> Sequence[DeadLetter]:
        with self.db.read() as session:
            return session.scalars(select(DeadLetter).order_by(DeadLetter.created_at, DeadLetter.id)).all()

    def letter(self, letter_id: UUID) -> DeadLetter:
        with self.db.read() as session:
            return session.get_one(DeadLetter, letter_id)

    def statuses(self) -> list[str]:
        return [letter.status.value for letter in self.by_age()]

    def requeue(self, *ids: UUID, force: bool = False) -> list[RedriveResult]:
        with self.db.begin() as session:
            return redrive(session, KEYRING, ids, actor="officer:7", reason="mended", force=force)

    def start(self, which: DeadLetterFilter | None = None, **options: object) -> UUID:
        with self.db.begin() as session:
            return start_redrive(
                session,
                KEYRING,
                which or DeadLetterFilter(),
                actor="officer:7",
                reason="they are back",
                **options,  # type: ignore[arg-type]
            )

    def view(self, redrive_id: UUID) -> RedriveView:
        with self.db.read() as session:
            return redrive_view(session, redrive_id)

    def results(self, redrive_id: UUID) -> dict[UUID, str]:
        with self.db.read() as session:
            page = redrive_results(session, redrive_id, limit=1_000)
        return {each.dead_letter_id: each.code for each in page.items}

    def officer(self, name: str = "olga", role: Role = Role.OFFICER) -> Officer:
        with self.db.begin() as session:
            return add_officer(session, name, role)
