"""Whose requests there are: found by what is known of a person, shown by a keyed hash."""

from __future__ import annotations

from example_recorder import Recorder

from tests.integration.api.conftest import Api


def record(api: Api, recorder: Recorder) -> None:
    api.post(api.erasure("4")).get_json()
    (found,) = recorder.call("search_subjects", api.token, body={"id": "4"})["data"]
    recorder.call("get_subject", api.token, path={"subject_key": found["key"]})
