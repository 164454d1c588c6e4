"""The whole trail in pages, and the types of events it is made of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from export_cast import Exporter, add_events
from openapi_schema_validator import OAS31Validator

from effaced.audit.events import TYPES
from effaced.core import clock

Api = Any
EVENTS = "/api/v1/audit/events"
TYPES_PATH = "/api/v1/audit/event-types"
ONE, OTHER = UUID(int=1), UUID(int=2)


@pytest.fixture
def auditor(api: Api) -> Exporter:
    return Exporter(api, "audit:read")


def ids(auditor: Exporter, query: str = "") -> list[int]:
    answer = auditor.get(f"{EVENTS}?{query}")
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.get_json()["data"]]


def test_the_whole_trail_is_listed_newest_first_in_pages(api: Api, auditor: Exporter) -> None:
    add_events(api.runtime.db, 5)
    everything = ids(auditor)
    assert everything == sorted(everything, reverse=True)
    assert len(everything) >= 7  # two keys were made
    found, after = [], ""
    while after is not None:
        page = auditor.get(f"{EVENTS}?limit=2" + (f"&after={after}" if after else "")).get_json()
        found += [each["id"] for each in page["data"]]
        after = page["next"]
    assert found == everything


def test_an_event_says_of_which_request_it_is(api: Api, auditor: Exporter) -> None:
    request = api.post(api.erasure("1")).get_json()
    (event,) = auditor.get(f"{EVENTS}?type=REQUEST_RECEIVED").get_json()["data"]
    assert (event["request_id"], event["actor"]) == (request["id"], f"api_key:{api.key.id}")


def test_every_filter_holds(api: Api, auditor: Exporter) -> None:
    now = clock.now()
    db = api.runtime.db
    add_events(db, 1, request_id=ONE, at=now - timedelta(days=3))
    add_events(db, 1, request_id=OTHER, at=now - timedelta(days=2), actor="cli")
    (third,) = {*ids(auditor, f"request_id={ONE}")}
    (fourth,) = {*ids(auditor, f"request_id={OTHER}")}
    assert ids(auditor, "type=REQUEST_REPEATED") == [fourth, third]
    assert ids(auditor, "type=REQUEST_REPEATED&actor=cli") == [fourth]
    two_days = quote((now - timedelta(days=2)).isoformat())
    assert ids(auditor, f"type=REQUEST_REPEATED&from={two_days}") == [fourth]
    assert ids(auditor, f"type=REQUEST_REPEATED&before={two_days}") == [third]


def test_a_type_that_does_not_exist_is_refused_with_the_closest(auditor: Exporter) -> None:
    answer = auditor.get(f"{EVENTS}?type=request_recieved")
    status, slug, fields = auditor.api.problem(answer)
    assert (status, slug) == (422, "refused")
    assert "REQUEST_RECEIVED" in fields["type"]
    assert "recieved" not in answer.text
    assert answer.get_json()["errors"][0]["code"] == "unknown_type"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=yesterday", "from"),
        ("before=2026-01-01T00:00:00", "before"),
        ("from=0001-01-01T00:00:00Z", "from"),
        ("request_id=ER-7KQ2-M4XP", "request_id"),
        ("actor=anna%40people.example", "actor"),
        ("actor=%00", "actor"),
        ("type=%00", "type"),
        ("type=", "type"),
        ("from_=2026-01-01T00:00:00Z", "from_"),
        ("since=2026-01-01T00:00:00Z", "since"),
        ("limit=0", "limit"),
        ("after=nonsense", "after"),
    ],
)
def test_a_wrong_filter_is_refused_by_its_name(auditor: Exporter, query: str, field: str) -> None:
    status, _, fields = auditor.api.problem(auditor.get(f"{EVENTS}?{query}"))
    assert (status, list(fields)) == (422, [field])


def test_an_unknown_filter_is_told_the_names_as_they_are_sent(auditor: Exporter) -> None:
    _, _, fields = auditor.api.problem(auditor.get(f"{EVENTS}?since=2026-01-01T00:00:00Z"))
    assert "from, before" in fields["since"]


@pytest.mark.parametrize("scope", ["requests:read", "operate:read", "keys:write"])
def test_other_scopes_do_not_read_the_whole_trail(api: Api, scope: str) -> None:
    answer = Exporter(api, scope, name="other").get(EVENTS)
    assert answer.status_code == 403


def test_every_type_is_listed_and_its_schema_fits_what_is_stored(api: Api, auditor: Exporter) -> None:
    api.post(api.erasure("1"))
    api.post(api.erasure("1"))
    listed = {each["type"]: each["payload_schema"] for each in auditor.get(TYPES_PATH).get_json()["data"]}
    assert set(listed) == set(TYPES)
    for schema in listed.values():
        OAS31Validator.check_schema(schema)
    events = auditor.get(f"{EVENTS}?limit=500").get_json()["data"]
    assert {"REQUEST_RECEIVED", "REQUEST_REPEATED", "API_KEY_CREATED"} <= {each["type"] for each in events}
    for event in events:
        OAS31Validator(listed[event["type"]]).validate(event["payload"])


def test_a_key_without_a_value_is_not_required_as_payloads_leave_it_out(auditor: Exporter) -> None:
    (paused,) = [
        each for each in auditor.get(TYPES_PATH).get_json()["data"] if each["type"] == "BREAKER_FORCED_OPEN"
    ]
    assert paused["payload_schema"]["required"] == ["breaker", "previous"]
    assert "until" in paused["payload_schema"]["properties"]
