"""The data map is shown, and compared with the database."""

from __future__ import annotations

from example_recorder import Recorder
from sqlalchemy import text

from tests.integration.api.conftest import Api
from tests.integration.api.test_retentions import MAP, TABLES

DATAMAP = MAP


def record(api: Api, recorder: Recorder) -> None:
    with api.runtime.db.begin() as session:
        for statement in TABLES.split(";"):
            session.execute(text(statement))
    token = api.new_key("operations", scopes=("operate:read",))
    recorder.call("get_data_map", token)
    recorder.call("check_data_map", token)
