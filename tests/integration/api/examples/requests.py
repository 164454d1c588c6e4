"""A shop sends a request and follows it to its end."""

from __future__ import annotations

import asyncio

from example_recorder import Recorder

from tests.integration.api.conftest import Api


def record(api: Api, recorder: Recorder) -> None:
    body = {
        "kind": "erasure",
        "subject": {"id": "4"},
        "reason": "by e-mail, 2 March",
        "retry": {"max_attempts": 20},
    }
    recorder.call("plan_new_request", api.token, body={"kind": "erasure", "subject": {"id": "4"}})
    request_id = recorder.call("create_request", api.token, body=body)["id"]
    # One after the other: within a run there is no order among requests.
    asyncio.run(api.runtime.runner().run_once())
    recorder.call("create_request", api.token, body=api.erasure("5"))
    asyncio.run(api.runtime.runner().run_once())
    here = {"request_id": request_id}
    recorder.call("get_request", api.token, path=here, query={"expand": ["entries", "events"]})
    recorder.call("list_requests", api.token, query={"status": "completed", "limit": 1})
    recorder.call("list_entries", api.token, path=here)
    recorder.call("list_request_attempts", api.token, path=here)
    recorder.call("list_request_events", api.token, path=here, query={"limit": 3})
