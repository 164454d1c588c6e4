"""Exports of the trail over the API: asking, making and fetching them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, insert, select
from werkzeug.test import TestResponse

from effaced.accounts.api_keys import create_api_key
from effaced.audit.tables import AuditEvent, AuditExport, AuditExportChunk
from effaced.core import clock
from effaced.core.db import Database

EXPORTS = "/api/v1/audit/exports"


class Exporter:
    """A caller of the API whose key has these scopes. `api` is the fixture's."""

    def __init__(self, api: Any, *scopes: str, name: str = "auditor", token: str | None = None) -> None:
        self.api = api
        self.token = token or new_key(api.runtime.db, name, *scopes)

    def ask(self, body: dict[str, Any] | None = None, *, repeat: str | None = None) -> TestResponse:
        headers = self.api.headers(self.token) | ({"Idempotency-Key": repeat} if repeat else {})
        client = self.api.app.test_client()
        answer: TestResponse = client.post(EXPORTS, json=body or {}, headers=headers)
        return answer

    def asked(self, **body: Any) -> dict[str, Any]:
        answer = self.ask(body)
        assert answer.status_code == 202, answer.text
        return dict(answer.get_json())

    def made(self, **body: Any) -> dict[str, Any]:
        """An export that is ready."""
        asked = self.asked(**body)
        self.api.runtime.export_maker().run()
        found = self.get(asked["links"]["self"]).get_json()
        assert found["status"] == "ready", found
        return dict(found)

    def text(self, **body: Any) -> str:
        answer = self.get(self.made(**body)["links"]["file"])
        assert answer.status_code == 200, answer.text
        return str(answer.text)

    def get(self, path: str) -> TestResponse:
        answer: TestResponse = self.api.get(path, token=self.token)
        return answer

    def delete(self, path: str) -> TestResponse:
        answer: TestResponse = self.api.app.test_client().delete(path, headers=self.api.headers(self.token))
        return answer


def new_key(db: Database, name: str, *scopes: str) -> str:
    with db.begin() as session:
        _, token = create_api_key(session, name=name, approvals_needed=1, actor="cli", scopes=scopes)
    return token


def add_events(db: Database, count: int, **fields: Any) -> None:
    row = {"at": clock.now(), "type": "REQUEST_REPEATED", "actor": "system", "payload": {}, **fields}
    with db.begin() as session:
        if count:
            session.execute(insert(AuditEvent), [row] * count)


def exports_recorded(db: Database) -> int:
    with db.read() as session:
        return session.scalar(select(func.count()).where(AuditEvent.type == "AUDIT_EXPORTED")) or 0


def chunks_stored(db: Database) -> int:
    with db.read() as session:
        return session.scalar(select(func.count()).select_from(AuditExportChunk)) or 0


def exports_stored(db: Database) -> int:
    with db.read() as session:
        return session.scalar(select(func.count()).select_from(AuditExport)) or 0
