"""A caller who may operate, and dead letters to operate on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import insert, select
from werkzeug.test import TestResponse

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.deadletters.record import record_failures
from effaced.deadletters.rules import Failure
from effaced.deadletters.tables import DeadLetter
from effaced.model import (
    DeadLetterDomain,
    DeadLetterStatus,
    OutboxOperation,
    OutboxStatus,
    SubjectKey,
    new_id,
)
from effaced.outbox.tables import OutboxRow

if TYPE_CHECKING:
    from tests.integration.api.conftest import Api

LETTERS, REDRIVES, RETENTIONS = "/api/v1/dead-letters", "/api/v1/redrives", "/api/v1/retentions"
NOBODY = "01890a5d-ac96-774b-bcce-b302099a8057"


class Desk:
    """A caller with these scopes."""

    def __init__(self, api: Api, *scopes: str) -> None:
        self.api = api
        with api.runtime.db.begin() as session:
            key, self.token = create_api_key(
                session, NewApiKey(name=f"desk {new_id()}", approvals_needed=1, scopes=scopes), actor="cli"
            )
        self.actor = f"api_key:{key.id}"

    def get(self, path: str) -> TestResponse:
        return self.api.get(path, token=self.token)

    def send(
        self, path: str, body: Any = None, method: str = "POST", *, idempotency_key: str | None = None
    ) -> TestResponse:
        headers = self.api.headers(self.token)
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        return self.api.app.test_client().open(path, method=method, json=body, headers=headers)

    def letter(
        self,
        resolver: str = "crm",
        *,
        operation: OutboxOperation = OutboxOperation.ERASE,
        status: DeadLetterStatus = DeadLetterStatus.PENDING,
        entry_status: OutboxStatus = OutboxStatus.ABANDONED,
    ) -> UUID:
        """An abandoned call and its letter; `entry_status` says how the call stands by now."""
        entry_id, request_id, at = new_id(), new_id(), clock.now()
        subject = SubjectKey("k1", "0" * 64)
        row = {
            "entry_id": entry_id,
            "request_id": request_id,
            "operation": operation,
            "resolver": resolver,
            "subject_key_id": subject.key_id,
            "subject_hmac": subject.hmac,
            "ref_kind": "crm",
            "status": entry_status,
            "enqueued_at": at,
            "aging_since": at,
        }
        failure = Failure(
            domain=DeadLetterDomain.EXTERNAL_CALL,
            request_id=request_id,
            subject=subject,
            error="Timeout",
            code="attempts_exhausted",
            entry_id=entry_id,
            resolver=resolver,
            attempts=8,
            operation=operation,
        )
        with self.api.runtime.db.begin() as session:
            session.execute(insert(OutboxRow), [row])
            record_failures(session, [failure])
            letter = session.scalars(select(DeadLetter).where(DeadLetter.entry_id == entry_id)).one()
            letter.status = status
            return letter.id

    def archived(self, number: int) -> None:
        """So many that were settled and archived."""
        for _ in range(number):
            letter_id = self.letter(entry_status=OutboxStatus.SUCCEEDED)
            self.send(f"{LETTERS}/{letter_id}/decision", {"status": "rejected", "reason": "x"})
        assert self.send(f"{LETTERS}/archive", {"older_than_days": 0}).get_json()["archived"] == number

    def status(self, letter_id: UUID) -> str:
        with self.api.runtime.db.read() as session:
            return session.get_one(DeadLetter, letter_id).status.value

    def events(self, *types: str) -> list[AuditEvent]:
        with self.api.runtime.db.read() as session:
            query = select(AuditEvent).where(AuditEvent.type.in_(types)).order_by(AuditEvent.id)
            return list(session.scalars(query))


def answer(response: TestResponse, status: int = 200) -> Any:
    """The body of an answer that must have this status."""
    assert response.status_code == status, response.get_json()
    return response.get_json()


def codes(response: TestResponse) -> tuple[int, dict[str, str]]:
    """The status, and the code for each field, of an answer that must be a problem."""
    assert response.content_type == "application/problem+json"
    return response.status_code, {each["field"]: each["code"] for each in response.get_json()["errors"]}
