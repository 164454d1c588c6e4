"""Dead letters are looked through, assigned, commented, retried and decided."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from api_desk import Desk
from example_recorder import Recorder
from sqlalchemy import select, update

from effaced.core import clock
from effaced.deadletters.tables import DeadLetter
from effaced.model import OutboxStatus, RequestStatus
from effaced.requests.tables import Request
from tests.integration.api.conftest import Api, customers


def record(api: Api, recorder: Recorder) -> None:
    desk, officer = Desk(api, "operate:write"), api.officer("duty officer")
    first = desk.letter()
    recorder.wait(timedelta(hours=2))
    settled = desk.letter(entry_status=OutboxStatus.SUCCEEDED)
    here, there = {"dead_letter_id": str(first)}, {"dead_letter_id": str(settled)}
    recorder.call("list_dead_letters", desk.token, query={"resolver": "crm", "limit": 1})
    recorder.call("get_dead_letter_stats", desk.token, query={"domain": "external_call"})
    recorder.call("assign_dead_letter", desk.token, path=here, body={"assigned_to": str(officer.id)})
    note = recorder.call(
        "create_dead_letter_note", desk.token, path=here, body={"text": "the vendor was down from 2 to 4"}
    )
    recorder.call("list_dead_letter_notes", desk.token, path=here)
    recorder.call("get_dead_letter_note", desk.token, path={**here, "note_id": note["id"]})
    recorder.call("get_dead_letter", desk.token, path=here, query={"expand": ["notes"]})
    recorder.call("retry_dead_letter", desk.token, path=here, body={"reason": "the vendor is back"})
    body = {"status": "rejected", "reason": "the vendor has confirmed that it is gone"}
    recorder.call("decide_dead_letter", desk.token, path=there, body=body)
    body = {"same_person": True, "reason": "checked by telephone"}
    recorder.call("decide_subject", desk.token, path={"dead_letter_id": row_changed(api)}, body=body)


def row_changed(api: Api) -> str:
    """The dead letter of a request whose person's row has changed since."""
    request: dict[str, Any] = api.post(
        api.erasure("4"), token=api.new_key("call centre", approvals_needed=1)
    ).get_json()
    with api.runtime.db.begin() as session:
        changed = {"email": "somebody.else.example", "crm_ref": "z"}
        session.execute(update(customers).where(customers.c.id == 4).values(changed))
        session.execute(
            update(Request)
            .where(Request.ref == request["ref"])
            .values(status=RequestStatus.APPROVED, execute_at=clock.now())
        )
    assert api.runtime.executor.execute_due() == 1
    with api.runtime.db.read() as session:
        found = select(DeadLetter.id).where(DeadLetter.error_code == "subject_changed")
        return str(session.scalars(found).one())
