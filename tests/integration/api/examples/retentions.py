"""What an erasure has kept comes due, and is erased."""

from __future__ import annotations

from datetime import timedelta

from example_recorder import Recorder
from sqlalchemy import text

from tests.integration.api.conftest import Api
from tests.integration.api.test_retentions import MAP, TABLES

DATAMAP = MAP
SETTINGS = {"resolvers": "version: 1\nresolvers: {}\n"}
# The second buyer's invoice has two months to go when they are erased.
LATER = "UPDATE invoices SET issued_on = '2016-05-01' WHERE id = 20"


def record(api: Api, recorder: Recorder) -> None:
    with api.runtime.db.begin() as session:
        for statement in (*TABLES.split(";"), LATER):
            session.execute(text(statement))
    token = api.new_key("operations", scopes=("operate:write",))
    request_id = api.post(api.erasure("2")).get_json()["id"]
    recorder.wait(timedelta(days=90))
    query = {"state": "due", "order": "first_due", "limit": 1}
    (kept,) = recorder.call("list_retentions", token, query=query)["data"]
    recorder.call("get_retention", token, path={"retention_id": kept["id"]})
    recorder.call("create_ending", token, body={"request_id": request_id, "reason": "the ten years are over"})
    recorder.call("get_ending", token, path={"request_id": request_id})
