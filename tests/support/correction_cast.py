"""A company whose people can be corrected as well as erased, and two systems that know them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from planned import planned
from saga_cast import KEYRING, CorrectingVendor, House
from sqlalchemy import select, text

from effaced.core.crypto import Keyring
from effaced.core.db import Base, Database
from effaced.model import Correction, CorrectionValue, OutboxOperation, RequestKind
from effaced.outbox.claim import claim
from effaced.outbox.entry import Entry
from effaced.outbox.tables import OutboxRow
from effaced.requests.execute import Executor
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.tables import Request

LEASE = timedelta(minutes=5)
# The person's row stays, since something may point at it: after an erasure it holds nobody.
MAP = """
version: 1
subject: {table: people, key: id}
refs:
  crm: {template: "c-{id}"}
  mail: {template: "m-{id}"}
rectify:
  name: people.name
  email: people.email
tables:
  people:
    columns:
      id: not_personal
      name: {anonymise: fixed_text, text: "nobody"}
      email: {anonymise: null}
"""
ERASED = ("nobody", None)


@dataclass
class Keeper(CorrectingVendor):
    """A vendor that keeps what it is told, as vendors do: correcting somebody unknown makes a record."""

    records: dict[str, dict[str, CorrectionValue]] = field(default_factory=dict)

    async def erase_subject(self, ref: object, *, key: UUID) -> object:  # type: ignore[override]
        self.records.pop(ref.value, None)  # type: ignore[attr-defined]
        return await super().erase_subject(ref, key=key)  # type: ignore[arg-type]

    async def rectify_subject(self, ref: object, corrections: object, *, key: UUID) -> object:  # type: ignore[override]
        answer = await super().rectify_subject(ref, corrections, key=key)  # type: ignore[arg-type]
        record = self.records.setdefault(ref.value, {})  # type: ignore[attr-defined]
        record.update({each.column: each.value for each in corrections})  # type: ignore[attr-defined]
        return answer


class Bureau(House):
    """People numbered from 1, known to `crm` and `mail`; requests need nobody's approval."""

    def __init__(self, database: Database, folder: Path, *, people: int = 1, data_map: str = MAP) -> None:
        super().__init__(database)
        self.keyring = KEYRING
        with database.begin() as session:
            session.execute(
                text("CREATE TABLE people (id integer PRIMARY KEY, name varchar(80), email varchar(80))")
            )
            session.execute(
                text("INSERT INTO people VALUES (:id, 'Anna', 'anna@people.example')"),
                [{"id": number + 1} for number in range(people)],
            )
        (folder / "people.yaml").write_text(data_map)
        with database.read() as session:
            self.plan = planned(session, folder / "people.yaml")
        self.crm = self.vendor("crm", Keeper())
        self.mail = self.vendor("mail", Keeper())

    def executor(self, keyring: Keyring | None = None) -> Executor:
        return Executor(self.db, keyring or self.keyring, self.plan, self.registry)

    def received(self, kind: RequestKind, person: int = 1, **values: CorrectionValue) -> UUID:
        """A request that was taken in and approved, but not executed."""
        corrections = [Correction(name, value) for name, value in values.items()]
        with self.db.begin() as session:
            return receive(
                session,
                self.keyring,
                self.plan,
                IntakeRequest(kind, str(person), corrections=corrections, approvals=0),
            ).request.id

    def correct(self, person: int = 1, **values: CorrectionValue) -> UUID:
        """Correct these values in the own database, with the calls to the others enqueued."""
        request_id = self.received(RequestKind.RECTIFICATION, person, **values)
        assert self.executor().execute_now(request_id)
        return request_id

    def erase(self, person: int = 1) -> UUID:
        request_id = self.received(RequestKind.ERASURE, person)
        assert self.executor().execute_now(request_id)
        return request_id

    def person(self, number: int = 1) -> tuple[str | None, str | None]:
        """Name and address in the own database."""
        with self.db.read() as session:
            query = text("SELECT name, email FROM people WHERE id = :id")
            found = session.execute(query, {"id": number}).one()
        return found.name, found.email

    def take(self, resolver: str = "crm") -> list[Entry]:
        """Claim as a runner does whose call is on its way."""
        with self.db.begin() as session:
            return claim(session, resolver, limit=10, lease=LEASE)

    def of(self, request_id: UUID, resolver: str = "crm") -> OutboxRow:
        with self.db.read() as session:
            query = select(OutboxRow).where(
                OutboxRow.request_id == request_id, OutboxRow.resolver == resolver
            )
            return session.scalars(query).one()

    def open_corrections(self) -> list[OutboxRow]:
        return [
            each
            for each in self.entries()
            if each.operation is OutboxOperation.RECTIFY and each.corrections_sealed is not None
        ]

    def row(self, request_id: UUID) -> Request:
        with self.db.read() as session:
            return session.get_one(Request, request_id)


def tables_holding(database: Database, *values: str) -> set[str]:
    """Those of effaced's tables in which one of the values stands in any cell, as text or as bytes."""
    found = set()
    with database.read() as session:
        for table in Base.metadata.sorted_tables:
            for row in session.execute(select(table)):
                cells = [bytes(cell) if isinstance(cell, bytes) else str(cell).encode() for cell in row]
                if any(value.encode() in cell for value in values for cell in cells):
                    found.add(table.name)
    return found
