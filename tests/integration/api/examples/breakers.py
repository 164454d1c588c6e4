"""A breaker opens, is steered by hand, and follows advice."""

from __future__ import annotations

from example_recorder import Recorder

from tests.integration.api.conftest import Api
from tests.integration.api.test_breakers import RESOLVERS, fail, too_fast

SETTINGS = {"resolvers": RESOLVERS}


def record(api: Api, recorder: Recorder) -> None:
    token = api.new_key("operations", scopes=("operate:write",))
    here, hour = {"breaker": "crm"}, {"window_s": 3600}
    why = {"reason": "maintenance at the vendor"}
    fail(api)
    recorder.call("list_breakers", token)
    recorder.call("get_breaker", token, path=here)
    recorder.call("list_transitions", token, query={"limit": 1})
    recorder.call("list_breaker_transitions", token, path=here, query={"limit": 1})
    recorder.call("get_breaker_summary", token, query=hour)
    recorder.call("get_outages", token, query=hour)
    recorder.call("open_breaker", token, path=here, body={"seconds": 7200, **why})
    recorder.call("unpin_breaker", token, path=here, body={"reason": "the maintenance is over"})
    recorder.call("close_breaker", token, path=here, body={"seconds": 600, "reason": "the vendor is back"})
    recorder.call(
        "reset_breaker", token, path=here, body={"include_host": True, "reason": "the vendor is back"}
    )
    body = {"fields": {"fail_max": 3}, "reason": "the vendor recovers slowly"}
    recorder.call("change_breaker_policy", token, path=here, body=body)
    too_fast(api)
    recorder.call("get_advice", token, query=hour)
    recorder.call("apply_advice", token, body={"breakers": ["crm"], "reason": "too many refusals"})
    recorder.call("get_breaker_policy", token, path=here)
    recorder.call("undo_breaker_policy", token, path=here, body={"reason": "the vendor allows more now"})
    api.runtime.breakers.force_open("resolver:former", seconds=60, actor="cli")
    body = {"reason": "the system is not used any more"}
    recorder.call("delete_breaker", token, path={"breaker": "resolver:former"}, body=body)
