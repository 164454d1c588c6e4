"""Settled dead letters are archived, removed, and leave a summary."""

from __future__ import annotations

from datetime import timedelta

from api_desk import LETTERS, Desk
from example_recorder import Recorder

from effaced.model import OutboxStatus
from tests.integration.api.conftest import Api


def record(api: Api, recorder: Recorder) -> None:
    desk = Desk(api, "operate:write")
    for _ in range(3):
        letter_id = desk.letter(entry_status=OutboxStatus.SUCCEEDED)
        desk.send(f"{LETTERS}/{letter_id}/decision", {"status": "rejected", "reason": "gone already"})
    recorder.wait(timedelta(days=31))
    recorder.call("archive_dead_letters", desk.token, body={"older_than_days": 30})
    recorder.call("preview_eviction", desk.token, query={"count": 2, "domain": "external_call"})
    body = {"count": 2, "domain": "external_call", "compress": True, "reason": "the table grows"}
    recorder.call("evict_dead_letters", desk.token, body=body)
    (found,) = recorder.call(
        "list_dead_letter_summaries", desk.token, query={"domain": "external_call", "limit": 20}
    )["data"]
    here = {"summary_id": found["id"]}
    recorder.call("get_dead_letter_summary", desk.token, path=here)
    recorder.call("set_dead_letter_summary_status", desk.token, path=here, body={"status": "stale"})
    recorder.wait(timedelta(days=90))
    found = recorder.call("preview_purge", desk.token, query={"older_than_days": 90})
    body = {"older_than_days": 90, "expected": found["purgeable"], "reason": "kept long enough"}
    recorder.call("purge_dead_letters", desk.token, body=body)
