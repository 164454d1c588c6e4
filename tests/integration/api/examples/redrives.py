"""All dead letters of a system that is back are retried at once."""

from __future__ import annotations

from datetime import timedelta

from api_desk import Desk
from example_recorder import Recorder

from effaced.model import OutboxOperation
from tests.integration.api.conftest import Api


def record(api: Api, recorder: Recorder) -> None:
    desk = Desk(api, "operate:write")
    desk.letter()
    recorder.wait(timedelta(minutes=1))
    desk.letter(operation=OutboxOperation.RECTIFY)
    body = {"filter": {"resolver": "crm"}, "reason": "the vendor is back", "per_second": None}
    first = recorder.call("create_redrive", desk.token, body=body)
    api.runtime.advance_redrives()
    here = {"redrive_id": first["id"]}
    recorder.call("get_redrive", desk.token, path=here)
    recorder.call("list_redrive_results", desk.token, path=here, query={"limit": 1})
    desk.letter()
    second = recorder.call("create_redrive", desk.token, body=body)
    recorder.call("cancel_redrive", desk.token, path={"redrive_id": second["id"]})
    recorder.call("list_redrives", desk.token, query={"limit": 1})
