"""A shop has itself told what becomes of its requests."""

from __future__ import annotations

import pytest
from example_recorder import Recorder
from integrators import MESSAGES, deliver
from receivers import receiver

from tests.integration.api.conftest import Api

SETTINGS = {"allow_private_targets": "127.0.0.1/32"}


def record(api: Api, recorder: Recorder) -> None:
    token = api.new_key("webshop", approvals_needed=0, scopes=MESSAGES)
    with pytest.MonkeyPatch.context() as environment, receiver() as hooks:
        environment.setenv("NO_PROXY", "127.0.0.1")
        body = {"name": "webshop", "url": hooks.url, "events": ["request.received", "request.completed"]}
        target_id = recorder.call("create_message_target", token, body=body)["id"]
        here = {"target_id": target_id}
        recorder.call("test_message_target", token, path=here)
        request_id = api.post(api.erasure("4"), token=token).get_json()["id"]
        deliver(api)
        found = recorder.call(
            "list_deliveries", token, path=here, query={"request_id": request_id, "limit": 1}
        )
        delivery = {**here, "delivery_id": found["data"][0]["id"]}
        recorder.call("get_delivery", token, path=delivery)
        recorder.call("replay_delivery", token, path=delivery)
    recorder.call("get_message_target", token, path=here)
    recorder.call("list_message_targets", token)
    recorder.call("update_message_target", token, path=here, body={"enabled": False})
    recorder.call("rotate_message_target_secret", token, path=here)
    recorder.call("delete_message_target", token, path=here)
