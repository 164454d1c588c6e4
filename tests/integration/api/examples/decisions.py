"""A request waits for an officer, who looks at its plan, approves it, and attests what was done by hand."""

from __future__ import annotations

import asyncio

from example_recorder import Recorder

from tests.integration.api.conftest import CORRECTING, Api

SETTINGS = {"approvals_needed": 1, "resolvers": CORRECTING}


def record(api: Api, recorder: Recorder) -> None:
    officer = api.officer("duty officer")
    token = api.new_key("back office", scopes=("decide:approve", "decide:attest"), officer_id=officer.id)
    request = api.post(api.erasure("4")).get_json()
    here = {"request_id": request["id"]}
    plan = recorder.call("get_request_plan", token, path=here)
    body = {"reason": "identity checked, ticket 4711", "datamap_hash": plan["datamap_hash"]}
    recorder.call("approve_request", token, path=here, body=body)
    asyncio.run(api.runtime.runner().run_once())
    (entry,) = api.get(f"{request['links']['self']}/entries").get_json()["data"]
    recorder.call(
        "attest_entry", token, path={"entry_id": entry["id"]}, body={"reason": "removed from the archive"}
    )
