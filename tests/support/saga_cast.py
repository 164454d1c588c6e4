"""The fixed cast of the saga tests: a vendor that does as it is told, and requests that call it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import insert, select

from effaced import clock
from effaced.audit.tables import AuditEvent
from effaced.crypto import Keyring, new_key
from effaced.db import Database
from effaced.deadletters.tables import DeadLetter
from effaced.model import RequestKind, RequestStatus, SubjectRef, new_id
from effaced.outbox.enqueue import Call, enqueue
from effaced.outbox.tables import Operation, OutboxRow
from effaced.requests.complete import complete_operations
from effaced.requests.tables import Request
from effaced.resolvers.protocols import Limits
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.retries.policy import BackoffPolicy
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner
from effaced.testing import RecordingResolver as Vendor
from effaced.testing import VerifyingRecordingResolver as CheckingVendor

__all__ = ["KEYRING", "NOON", "CheckingVendor", "House", "Vendor"]

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
KEYRING = Keyring.parse(new_key())


class House:
    """One database with effaced's tables, some vendors, and the runner between them."""

    def __init__(self, database: Database, **options: object) -> None:
        self.db = database
        self.registry = ResolverRegistry()
        self.options = options

    def vendor(self, name: str, vendor: Vendor, **limits: object) -> Vendor:
        self.registry.register(Registered(name, name, vendor, Limits(**limits)))  # type: ignore[arg-type]
        return vendor

    def runner(self, kind: type[SagaRunner] = SagaRunner, **options: object) -> SagaRunner:
        chosen = {"backoff": BackoffPolicy(), "on_operations_complete": complete_operations}
        outbox = Outbox(self.db.sessions, keyring=KEYRING)
        return kind(self.registry, outbox, **(chosen | self.options | options))  # type: ignore[arg-type]

    def drain(self, resolver: str = "crm", **options: object) -> int:
        return asyncio.run(self.runner(**options).drain(resolver))

    def request(self, *calls: tuple[str, str]) -> UUID:
        """A running request with these calls (resolver, reference), committed."""
        with self.db.begin() as session:
            request_id = new_id()
            subject = KEYRING.subject_key(str(request_id))
            session.execute(
                insert(Request),
                {
                    "id": request_id,
                    "ref": f"ER-{request_id.hex[-8:]}",
                    "kind": RequestKind.ERASURE,
                    "status": RequestStatus.RUNNING,
                    "subject_key_id": subject.key_id,
                    "subject_hmac": subject.hmac,
                    "datamap_hash": "0" * 64,
                    "approvals_needed": 0,
                    "received_at": clock.now(),
                    "due_at": clock.now() + timedelta(days=30),
                    "execute_attempts": 0,
                },
            )
            enqueue(
                session,
                KEYRING,
                request_id,
                subject,
                [Call(name, SubjectRef(name, ref)) for name, ref in calls],
            )
        return request_id

    def entries(self) -> Sequence[OutboxRow]:
        with self.db.read() as session:
            return session.scalars(
                select(OutboxRow).order_by(OutboxRow.enqueued_at, OutboxRow.entry_id)
            ).all()

    def entry(self) -> OutboxRow:
        (only,) = self.entries()
        return only

    def events(self, *types: str) -> list[AuditEvent]:
        with self.db.read() as session:
            found = session.scalars(select(AuditEvent).order_by(AuditEvent.id)).all()
        return [event for event in found if not types or event.type in types]

    def types(self) -> list[str]:
        return [event.type for event in self.events()]

    def letters(self) -> Sequence[DeadLetter]:
        with self.db.read() as session:
            return session.scalars(select(DeadLetter).order_by(DeadLetter.id)).all()

    def status(self, request_id: UUID) -> RequestStatus:
        with self.db.read() as session:
            return session.get_one(Request, request_id).status

    def remaining(self, request_id: UUID) -> int:
        with self.db.read() as session:
            return (
                session.scalars(select(Operation).where(Operation.request_id == request_id)).one().remaining
            )
