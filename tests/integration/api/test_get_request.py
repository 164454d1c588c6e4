from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import select

from effaced.accounts.scopes import NEED_AN_OFFICER, Scope
from effaced.accounts.tables import ApiKey
from effaced.api.catalogue import OPERATIONS
from effaced.model import Evidence, RequestStatus, Verification
from effaced.requests.tables import Request
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.testing import VerifyingRecordingResolver

Api = Any
# What a call needs to get as far as looking for the request.
BODIES: dict[str, Any] = {"/api/v1/requests/<request_id>/retry": {"policy": {}}}
# What an officer decides who sees all requests.
DECISIONS = {(each.method, each.rule) for each in OPERATIONS if NEED_AN_OFFICER.issuperset(each.scopes)}


def test_a_request_is_found_by_id_and_by_ref(api: Api) -> None:
    sent = api.post(api.erasure("1")).get_json()
    by_id = api.get(f"/api/v1/requests/{sent['id']}")
    assert by_id.status_code == 200
    assert by_id.get_json() == sent
    for ref in (sent["ref"], sent["ref"].lower()):
        assert api.get(f"/api/v1/requests/{ref}").get_json() == by_id.get_json()


def test_what_it_has_besides_comes_when_it_is_asked_for(api: Api) -> None:
    sent = api.post(api.erasure("1")).get_json()
    where = sent["links"]["self"]
    with_entries, with_events = (
        {**sent, **api.get(f"{where}?expand={each}").get_json()} for each in ("entries", "events")
    )
    counted = {
        "evidence": dict.fromkeys(Evidence, 0),
        "verification": dict.fromkeys(Verification, 0),
        "entries": [],
    }
    assert with_entries == {**sent, **counted}
    assert [each["type"] for each in with_events["events"]] == ["REQUEST_RECEIVED"]
    assert {**with_events, "events": None} == sent
    assert api.whole(where) == {**sent, **counted, "events": with_events["events"]}


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("expand=people", {"expand": ("not_allowed", "must be 'entries' or 'events'")}),
        ("expand=entries&expand=people", {"expand": ("not_allowed", "must be 'entries' or 'events'")}),
        ("expand=" + "&expand=".join(["events"] * 3), {"expand": ("too_long", "must have at most 2 items")}),
        ("expnad=events", {"expnad": ("unknown_field", "is not known; expand")}),
    ],
)
def test_what_nobody_can_ask_for_is_refused_by_name(
    api: Api, query: str, wrong: dict[str, tuple[str, str]]
) -> None:
    where = api.post(api.erasure("1")).headers["Location"]
    answer = api.get(f"{where}?{query}")
    assert answer.status_code == 422
    assert {each["field"]: (each["code"], each["message"]) for each in answer.get_json()["errors"]} == wrong


def read_back_by(api: Api, vendor: VerifyingRecordingResolver) -> str:
    """Where to find a request whose only system is read back as the vendor says."""
    api.runtime.__dict__["registry"] = ResolverRegistry([Registered("crm", "crm_contact", vendor)])
    where: str = api.post(api.erasure("4")).headers["Location"]
    asyncio.run(api.runtime.runner().run_once())
    return where


def test_a_request_whose_read_back_failed_is_not_completed(trusted_api: Api) -> None:
    found = trusted_api.whole(read_back_by(trusted_api, VerifyingRecordingResolver(absent=lambda _: False)))
    assert (found["status"], found["completed_at"], found["unverified"]) == ("running", None, 1)
    assert found["verification"] == {**dict.fromkeys(Verification, 0), "still_present": 1}
    assert found["evidence"] == dict.fromkeys(Evidence, 0)
    assert [(each["status"], each["evidence"]) for each in found["entries"]] == [("succeeded", None)]


def test_a_request_that_was_read_back_says_what_it_rests_on(trusted_api: Api) -> None:
    found = trusted_api.whole(read_back_by(trusted_api, VerifyingRecordingResolver()))
    assert (found["status"], found["unverified"]) == ("completed", 0)
    assert found["evidence"] == {**dict.fromkeys(Evidence, 0), "confirmed": 1}
    assert [each["evidence"] for each in found["entries"]] == ["confirmed"]


def test_a_system_without_a_read_back_rests_on_the_vendors_word(trusted_api: Api) -> None:
    where = trusted_api.post(trusted_api.erasure("4")).headers["Location"]
    asyncio.run(trusted_api.runtime.runner().run_once())
    found = trusted_api.whole(where)
    assert found["evidence"] == {**dict.fromkeys(Evidence, 0), "vendor_word": 1}


def test_it_tells_how_each_system_stands_and_what_happened(trusted_api: Api) -> None:
    where = trusted_api.post(trusted_api.erasure("1")).headers["Location"]
    running = trusted_api.whole(where)
    assert {"data": running["entries"]} == trusted_api.get(f"{where}/entries").get_json()
    assert running["steps"] == {"total": 1, "done": 0}
    assert running["entries"] == [
        {
            "id": running["entries"][0]["id"],
            "resolver": "crm",
            "operation": "erase",
            "status": "pending",
            "outcome": None,
            "corrections": [],
            "waits_for": [],
            "attempts": 0,
            "next_attempt_at": None,
            "last_error": None,
            "evidence": None,
            "verification": None,
        }
    ]
    asyncio.run(trusted_api.runtime.runner().run_once())
    done = trusted_api.whole(where)
    assert (done["status"], done["steps"]) == ("completed", {"total": 1, "done": 1})
    assert done["completed_at"] is not None
    assert [(each["status"], each["outcome"]) for each in done["entries"]] == [("succeeded", "erased")]
    assert [event["type"] for event in done["events"]] == [
        "REQUEST_RECEIVED",
        "LOCAL_ERASURE_EXECUTED",
        "LOCAL_VERIFIED",
        "ERASURE_STEP_SUCCEEDED",
        "ERASURE_COMPLETED",
    ]


def test_it_tells_how_far_the_work_on_very_many_rows_is(api: Api) -> None:
    sent = api.post(api.erasure("1")).get_json()
    with api.runtime.db.begin() as session:
        [request] = session.scalars(select(Request))
        request.batch_counts = {"orders": [200, 5000], "visits (detached)": [0, 30]}
        request.status = RequestStatus.APPROVED
    assert api.get(sent["links"]["self"]).get_json()["progress"] == {
        "done": 200,
        "total": 5030,
        "tables": {"orders": {"done": 200, "total": 5000}, "visits (detached)": {"done": 0, "total": 30}},
    }
    with api.runtime.db.begin() as session:
        session.scalars(select(Request)).one().status = RequestStatus.RUNNING
    assert api.get(sent["links"]["self"]).get_json()["progress"] is None


def test_what_is_no_request_is_not_found(api: Api) -> None:
    names = ["x", "ER-0000-0000", "00000000-0000-0000-0000-000000000000", "a%00b", "%ff", "é", "x" * 500]
    for name in names:
        answer = api.get(f"/api/v1/requests/{name}")
        assert (answer.status_code, answer.content_type) == (404, "application/problem+json")


def test_somebody_else_s_request_is_not_found(api: Api) -> None:
    other = api.new_key("crm")
    sent = api.post(api.erasure("1")).get_json()
    for name in (sent["id"], sent["ref"]):
        assert api.get(f"/api/v1/requests/{name}", token=other).status_code == 404


def test_no_route_opens_a_request_to_a_key_whose_own_is_its_duplicate(api: Api) -> None:
    other = api.new_key("crm")
    sent = api.post(api.erasure("1")).get_json()
    assert api.post(api.erasure("1"), token=other).status_code == 201
    routes = [
        (method, rule.rule)
        for rule in api.app.url_map.iter_rules()
        if "<request_id>" in rule.rule
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if (method, rule.rule) not in DECISIONS
    ]
    assert len(routes) >= 4
    other = api.new_key("all of them", scopes=set(Scope) - NEED_AN_OFFICER)
    before = api.rows()
    for method, rule in routes:
        for name in (sent["id"], sent["ref"]):
            answer = api.app.test_client().open(
                rule.replace("<request_id>", name),
                method=method,
                json=None if method == "GET" else BODIES.get(rule, {}),
                headers=api.headers(other),
            )
            assert answer.status_code == 404, (method, rule)
    assert api.rows() == before


def test_reading_works_while_the_database_can_only_be_read(api: Api) -> None:
    where = api.post(api.erasure("1")).headers["Location"]
    with api.runtime.db.begin() as session:
        session.get_one(ApiKey, api.key.id).last_used_at = None
    api.make_read_only()
    assert api.get(where).status_code == 200


def test_the_trail_of_a_request_comes_newest_first_in_pages(trusted_api: Api) -> None:
    first = trusted_api.post(trusted_api.erasure("1")).get_json()
    other = trusted_api.post(trusted_api.erasure("2")).get_json()
    where = f"{first['links']['self']}/events"
    pages, after = [], ""
    while after is not None:
        page = trusted_api.get(f"{where}?limit=1{after and '&after=' + after}").get_json()
        pages.append(page["data"])
        after = page["next"]
    assert [len(page) for page in pages] == [1] * len(pages)
    events = [event for page in pages for event in page]
    assert [event["type"] for event in events] == [
        "LOCAL_VERIFIED",
        "LOCAL_ERASURE_EXECUTED",
        "REQUEST_RECEIVED",
    ]
    assert other["id"] not in str(events)
    assert trusted_api.trail(first) == trusted_api.whole(first["links"]["self"])["events"]


@pytest.mark.parametrize("query", ["after=x", "after=%00", "limit=0", "limit=501", "limit=1_0", "limit=１"])
def test_a_page_that_is_none_is_refused_by_name(api: Api, query: str) -> None:
    where = api.post(api.erasure("1")).headers["Location"]
    status, slug, fields = api.problem(api.get(f"{where}/events?{query}"))
    assert (status, slug, list(fields)) == (422, "refused", [query.partition("=")[0]])


def test_reading_a_trail_writes_nothing(api: Api) -> None:
    where = api.post(api.erasure("1")).headers["Location"]
    before = api.rows()
    assert api.get(f"{where}/events").status_code == 200
    assert api.rows() == before


def test_somebody_else_s_trail_is_not_found(api: Api) -> None:
    where = api.post(api.erasure("1")).headers["Location"]
    assert api.get(f"{where}/events", token=api.new_key("crm")).status_code == 404


class TestAttempts:
    def attempts_of(self, api: Api, where: str, query: str = "") -> Any:
        return api.get(f"{where}/attempts{query}").get_json()

    def test_every_try_is_listed_oldest_first_read_backs_included(self, trusted_api: Api) -> None:
        found = self.attempts_of(
            trusted_api,
            read_back_by(trusted_api, VerifyingRecordingResolver(absent=lambda _: False)),
        )
        assert [(each["resolver"], each["role"], each["number"]) for each in found["data"]] == [
            ("crm", "erase", 1),
            ("crm", "verify", 1),
        ]
        assert found["data"][0]["outcome"] == "success"
        assert found["next"] is None

    def test_they_come_in_pages(self, trusted_api: Api) -> None:
        where = read_back_by(trusted_api, VerifyingRecordingResolver(absent=lambda _: False))
        first = self.attempts_of(trusted_api, where, "?limit=1")
        second = self.attempts_of(trusted_api, where, f"?limit=1&after={first['next']}")
        assert [each["role"] for page in (first, second) for each in page["data"]] == ["erase", "verify"]

    def test_another_key_does_not_see_them(self, api: Api) -> None:
        sent = api.post(api.erasure("1")).headers["Location"]
        assert api.get(f"{sent}/attempts", token=api.new_key("other")).status_code == 404
