"""The fixed cast of the saga tests: a vendor that does as it is told, and requests that call it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from effaced.audit.sink import DatabaseAuditSink
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.deadletters.tables import DeadLetter
from effaced.model import (
    Correction,
    CorrectionValue,
    OutboxOperation,
    RequestKind,
    RequestStatus,
    SubjectRef,
    new_id,
)
from effaced.outbox.enqueue import Call, enqueue
from effaced.outbox.tables import Operation, OutboxRow
from effaced.requests.complete import complete_operations
from effaced.requests.tables import Request
from effaced.resolvers.protocols import AlreadyAbsent, AwaitsPerson, Limits, Rectified
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.retries.policy import BackoffPolicy
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner
from effaced.testing import RecordingResolver as Vendor
from effaced.testing import VerifyingRecordingResolver as CheckingVendor

__all__ = ["KEYRING", "KEYS", "NOON", "CheckingVendor", "House", "Vendor"]

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
KEYS = new_key()
KEYRING = Keyring.parse(KEYS)
V = TypeVar("V")


@dataclass
class CorrectingVendor(Vendor):
    """The same, taking corrections: what it was told, call by call."""

    reply: Callable[[str], Rectified | AlreadyAbsent | AwaitsPerson | BaseException] = field(
        default=lambda _: Rectified()
    )
    told: list[dict[str, CorrectionValue]] = field(default_factory=list)

    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> Rectified | AlreadyAbsent | AwaitsPerson:
        self.told.append({each.column: each.value for each in corrections})
        reply = self.reply(ref.value)
        if isinstance(reply, BaseException):
            raise reply
        return reply


class House:
    """One database with effaced's tables, some vendors, and the runner between them."""

    def __init__(self, database: Database, **options: object) -> None:
        self.db = database
        self.registry = ResolverRegistry()
        self.options = options

    def vendor(self, name: str, vendor: V, after: tuple[str, ...] = (), **limits: object) -> V:
        known = Registered(name, name, vendor, Limits(**limits), after=after)  # type: ignore[arg-type]
        self.registry.register(known)
        return vendor

    def outbox(self) -> Outbox:
        """The library's way in, with the trail as its audit sink."""
        return Outbox(self.db.sessions, keyring=KEYRING, audit_sink=DatabaseAuditSink())

    def runner(self, kind: type[SagaRunner] = SagaRunner, **options: object) -> SagaRunner:
        chosen = {"backoff": BackoffPolicy(), "on_operations_complete": complete_operations}
        outbox = Outbox(self.db.sessions, keyring=KEYRING)
        return kind(self.registry, outbox, **(chosen | self.options | options))  # type: ignore[arg-type]

    def drain(self, resolver: str = "crm", **options: object) -> int:
        return asyncio.run(self.runner(**options).drain(resolver))

    def request(self, *calls: tuple[str, str], **options: object) -> UUID:
        """A running request with these calls (resolver, reference), committed."""
        with self.db.begin() as session:
            return add_request(session, calls, registry=self.registry, **options)  # type: ignore[arg-type]

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


def add_request(
    session: Session,
    calls: Sequence[tuple[str, str]],
    *,
    corrections: Sequence[Correction] = (),
    registry: ResolverRegistry | None = None,
) -> UUID:
    """A running request in the caller's transaction. With corrections it is one to rectify."""
    request_id = new_id()
    subject = KEYRING.subject_key(str(request_id))
    session.execute(
        insert(Request),
        {
            "id": request_id,
            "ref": f"ER-{request_id.hex[-8:]}",
            "kind": RequestKind.RECTIFICATION if corrections else RequestKind.ERASURE,
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
    after = {each.name: each.after for each in registry or ()}
    enqueue(
        session,
        KEYRING,
        request_id,
        subject,
        [Call(name, SubjectRef(name, ref), tuple(corrections), after.get(name, ())) for name, ref in calls],
        operation=OutboxOperation.RECTIFY if corrections else OutboxOperation.ERASE,
    )
    return request_id
