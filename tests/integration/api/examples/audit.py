"""The trail of a request is read, and exported as a file."""

from __future__ import annotations

from example_recorder import Recorder

from tests.integration.api.conftest import Api


def record(api: Api, recorder: Recorder) -> None:
    token = api.new_key("auditors", scopes=("audit:read",))
    request_id = api.post(api.erasure("4")).get_json()["id"]
    recorder.call("list_audit_events", token, query={"request_id": request_id, "limit": 2})
    recorder.call("list_event_types", token)
    body = {"format": "jsonl", "filter": {"request_id": request_id}}
    here = {"export_id": recorder.call("create_audit_export", token, body=body)["id"]}
    assert api.runtime.export_maker().run() == 1
    recorder.call("get_audit_export", token, path=here)
    recorder.call("list_audit_exports", token, query={"limit": 1})
    recorder.call("get_audit_export_file", token, path=here)
    recorder.call("delete_audit_export", token, path=here)
