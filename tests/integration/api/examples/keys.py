"""A key says who it is, makes another one, and revokes it."""

from __future__ import annotations

from datetime import timedelta

from example_recorder import Recorder

from tests.integration.api.conftest import Api


def record(api: Api, recorder: Recorder) -> None:
    recorder.wait(timedelta(days=1))
    token = api.new_key("manager", scopes=("keys:write", "requests:write"))
    recorder.call("get_me", token)
    body = {
        "name": "call centre",
        "approvals_needed": 1,
        "scopes": ["requests:read", "requests:write"],
        "metadata_keys": ["ticket"],
    }
    here = {"key_id": recorder.call("create_key", token, body=body)["id"]}
    recorder.call("list_keys", token, query={"limit": 1})
    recorder.call("get_key", token, path=here)
    recorder.call("revoke_key", token, path=here)
