"""A system is looked at, paused while it is maintained, and resumed."""

from __future__ import annotations

from example_recorder import Recorder

from tests.integration.api.conftest import Api
from tests.integration.api.test_breakers import RESOLVERS

SETTINGS = {"resolvers": RESOLVERS}


def record(api: Api, recorder: Recorder) -> None:
    token = api.new_key("operations", scopes=("operate:write",))
    here = {"resolver": "crm"}
    recorder.call("list_resolvers", token)
    recorder.call(
        "pause_resolver", token, path=here, body={"reason": "maintenance at the vendor", "hours": 4}
    )
    recorder.call("get_resolver", token, path=here)
    recorder.call("resume_resolver", token, path=here, body={"reason": "the maintenance is over"})
