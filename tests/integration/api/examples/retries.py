"""Retry policies are looked at, set and undone, and the figures of a day are read."""

from __future__ import annotations

from datetime import timedelta

from attempts_cast import Try, write
from example_recorder import Recorder

from effaced.core import clock
from effaced.model import AttemptOutcome
from tests.integration.api.conftest import Api


def record(api: Api, recorder: Recorder) -> None:
    token = api.new_key("operations", scopes=("operate:write",))
    figures(api, recorder, token)
    policy = {"policy": {"max_attempts": 12}, "reason": "the vendor is slow this week"}
    for kind, here in (("global", {}), ("resolver", {"resolver": "crm"})):
        recorder.call(f"set_{kind}_retry_policy", token, path=here, body=policy)
        recorder.call(f"get_{kind}_retry_policy", token, path=here)
        recorder.call(f"undo_{kind}_retry_policy", token, path=here)
        recorder.call(f"set_{kind}_retry_policy", token, path=here, body=policy)
        recorder.call(f"delete_{kind}_retry_policy", token, path=here)
    of_a_request(api, recorder)


def figures(api: Api, recorder: Recorder, token: str) -> None:
    now = clock.now()
    failed = [Try(now, outcome=AttemptOutcome.FAILURE, status_code=503, error="http_503")]
    write(api.runtime.db, [*failed, *(Try(now - timedelta(minutes=n)) for n in (5, 10, 70))])
    recorder.call("get_retry_summary", token, query={"hours": 2})
    recorder.call("get_retry_timeseries", token, query={"hours": 2, "resolver": "crm"})
    recorder.call("list_retries_by_resolver", token, query={"hours": 2})


def of_a_request(api: Api, recorder: Recorder) -> None:
    token = api.new_key("call centre", approvals_needed=1)
    here = {"request_id": api.post(api.erasure("4"), token=token).get_json()["id"]}
    body = {"policy": {"max_attempts": 20}, "reason": "the person waits for an answer"}
    recorder.call("set_request_retry_policy", token, path=here, body=body)
    recorder.call("get_request_retry_policy", token, path=here)
    recorder.call("delete_request_retry_policy", token, path=here)
