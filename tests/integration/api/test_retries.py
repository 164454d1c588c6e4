"""R5: the retry policy and the figures over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from attempts_cast import Try, write
from officers import add_officer
from quick_app import make_app
from sqlalchemy import select
from werkzeug.test import TestResponse

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.scopes import Scope
from effaced.accounts.tables import ApiKey
from effaced.audit.tables import AuditEvent, Note
from effaced.core import clock
from effaced.model import AttemptOutcome, RequestStatus
from effaced.requests.housekeeping import delete_policies_of_closed_requests
from effaced.requests.tables import Request
from effaced.retries.tables import PolicyOverride

from .conftest import Api

GLOBAL, CRM = "/api/v1/retries/policies/global", "/api/v1/retries/policies/resolvers/crm"
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def operates(api: Api) -> None:
    """The key may do everything; what it may not without a scope is shown below."""
    with api.runtime.db.begin() as session:
        session.get_one(ApiKey, api.key.id).scopes = list(Scope)


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("GET", GLOBAL, "operate:read"),
        ("PUT", GLOBAL, "operate:write"),
        ("DELETE", CRM, "operate:write"),
        ("POST", f"{CRM}/undo", "operate:write"),
        ("GET", "/api/v1/retries/summary", "operate:read"),
        ("GET", "/api/v1/retries/timeseries", "operate:read"),
    ],
)
def test_a_key_without_the_scope_is_told_which(api: Api, method: str, path: str, needed: str) -> None:
    with api.runtime.db.begin() as session:
        session.get_one(ApiKey, api.key.id).scopes = ["requests:read", "requests:write"]
    answer = send(api, method, path, {"policy": {"max_attempts": 3}} if method == "PUT" else None)
    assert answer.status_code == 403
    assert answer.get_json()["errors"] == [
        {"field": "Authorization", "code": "missing_scope", "message": f"needs the scope {needed}"}
    ]


def send(api: Api, method: str, path: str, body: Any = None) -> TestResponse:
    return api.app.test_client().open(path, method=method, json=body, headers=api.headers())


def put(api: Api, path: str, **policy: Any) -> TestResponse:
    return send(api, "PUT", path, {"policy": policy})


def events(api: Api) -> list[str]:
    with api.runtime.db.read() as session:
        types = session.scalars(select(AuditEvent.type).order_by(AuditEvent.id))
        return [each for each in types if each.startswith("POLICY")]


class TestPolicy:
    def test_in_force_is_shown_with_what_differs(self, api: Api) -> None:
        found = api.get(GLOBAL).get_json()
        assert (found["scope"], found["resolver"], found["override"], found["version"]) == (
            "global",
            None,
            {},
            0,
        )
        assert found["policy"]["max_attempts"] == 8
        assert found["policy"]["retry_status_codes"][:3] == [408, 429, 500]

    def test_changed_for_all_and_for_a_resolver(self, api: Api) -> None:
        assert put(api, GLOBAL, max_attempts=5, base_delay=2).status_code == 200
        found = put(api, CRM, max_attempts=12).get_json()
        assert found["override"] == {"max_attempts": 12}
        assert (found["policy"]["max_attempts"], found["policy"]["base_delay"]) == (12, 2)
        assert api.get(CRM).get_json() == found
        assert found["changed_by"] == f"api_key:{api.key.id}"
        assert events(api) == ["POLICY_CHANGED", "POLICY_CHANGED"]

    def test_is_replaced_as_a_whole_by_put(self, api: Api) -> None:
        put(api, CRM, max_attempts=12, jitter=True)
        assert put(api, CRM, max_attempts=3).get_json()["override"] == {"max_attempts": 3}

    def test_taken_away_is_as_configured_again(self, api: Api) -> None:
        put(api, CRM, max_attempts=12)
        found = send(api, "DELETE", CRM).get_json()
        assert (found["override"], found["policy"]["max_attempts"]) == ({}, 8)

    def test_undone_is_as_before(self, api: Api) -> None:
        put(api, GLOBAL, max_attempts=12)
        put(api, GLOBAL, max_attempts=3)
        found = send(api, "POST", f"{GLOBAL}/undo").get_json()
        assert found["override"] == {"max_attempts": 12}
        assert send(api, "POST", f"{CRM}/undo").status_code == 409

    def test_undone_under_one_idempotency_key_is_undone_once(self, api: Api) -> None:
        put(api, GLOBAL, max_attempts=12)
        put(api, GLOBAL, max_attempts=3)
        headers = {**api.headers(), "Idempotency-Key": "undo-1"}
        client = api.app.test_client()
        answers = [client.post(f"{GLOBAL}/undo", headers=headers) for _ in range(2)]
        assert answers[0].get_json() == answers[1].get_json()
        assert api.get(GLOBAL).get_json()["override"] == {"max_attempts": 12}

    @pytest.mark.parametrize("name", ["a\x00b", "a b", ""])
    def test_a_name_that_is_none_is_not_repeated(self, api: Api, name: str) -> None:
        answer = put(api, CRM, **{name: 1})
        assert list(api.problem(answer)[2]) == ["policy.(unprintable)"]

    def test_out_of_bounds_is_refused_with_every_field_and_changes_nothing(self, api: Api) -> None:
        before = api.rows()
        status, slug, fields = api.problem(put(api, CRM, max_attempts=0, timeout=-1, retries=5))
        assert (status, slug) == (422, "refused")
        assert set(fields) == {"policy.max_attempts", "policy.timeout", "policy.retries"}
        assert api.rows() == before

    def test_a_reason_is_a_note(self, api: Api) -> None:
        body = {"policy": {"jitter": True}, "reason": "the vendor asked for it"}
        assert send(api, "PUT", CRM, body).status_code == 200
        with api.runtime.db.read() as session:
            (note,) = session.scalars(select(Note))
            override = session.scalars(select(PolicyOverride)).one()
        assert override.note_id == note.id
        assert "vendor asked" not in api.everything()

    def test_of_a_resolver_nobody_knows_is_not_found(self, api: Api) -> None:
        answer = api.get("/api/v1/retries/policies/resolvers/crn")
        assert api.problem(answer)[0] == 404
        assert "did you mean 'crm'" in answer.get_json()["detail"]

    def test_nobody_without_a_key_gets_in(self, api: Api) -> None:
        ours = [
            (method, re.sub("<[^>]+>", "crm", rule.rule))
            for rule in api.app.url_map.iter_rules()
            if "/retries/" in rule.rule or rule.rule.endswith("/retry")
            for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        ]
        assert len(ours) == 15
        client = api.app.test_client()
        answers = {each: client.open(each[1], method=each[0], json={"policy": {}}) for each in ours}
        assert {each: answer.status_code for each, answer in answers.items()} == dict.fromkeys(ours, 401)


class TestOfARequest:
    def take(self, api: Api, **body: Any) -> str:
        answer = api.post(api.erasure(**body))
        assert answer.status_code == 201, answer.get_json()
        return f"{answer.get_json()['links']['self']}/retry"

    def test_comes_with_it(self, api: Api) -> None:
        path = self.take(api, retry={"max_attempts": 2, "retry_status_codes": [503]})
        found = api.get(path).get_json()
        assert found["override"] == {"max_attempts": 2, "retry_status_codes": [503]}
        assert (found["scope"], found["policy"]["max_attempts"]) == ("request", 2)

    def test_is_changed_later_and_taken_away(self, api: Api) -> None:
        path = self.take(api)
        put(api, path, base_delay=1)
        assert api.get(path).get_json()["override"] == {"base_delay": 1}
        assert send(api, "DELETE", path).get_json()["override"] == {}

    def test_wrong_is_refused_with_the_field_s_name_and_nothing_is_taken_in(self, api: Api) -> None:
        before = api.rows()
        answer = api.post(api.erasure(retry={"max_attempts": "many", "patience": 1}))
        assert api.problem(answer) == (
            422,
            "refused",
            {
                "retry.max_attempts": "Input should be a valid integer",
                "retry.patience": answer.get_json()["errors"][1]["message"],
            },
        )
        assert api.rows() == before

    @pytest.mark.parametrize("retry", [5, [], "often"])
    def test_that_is_no_object_is_refused(self, api: Api, retry: Any) -> None:
        assert set(api.problem(api.post(api.erasure(retry=retry)))[2]) == {"retry"}

    def test_of_somebody_else_is_not_found(self, api: Api) -> None:
        path, other = self.take(api), api.new_key("other")
        assert api.get(path, token=other).status_code == 404

    def test_is_its_sender_s_also_where_another_key_reads_all_requests(self, api: Api) -> None:
        path = self.take(api, retry={"max_attempts": 2})
        scopes = [Scope.DECIDE_READ, Scope.REQUESTS_WRITE]
        with api.runtime.db.begin() as session:
            officer = add_officer(session, "Mara")
            new, token = create_api_key(session, NewApiKey(name="desk", approvals_needed=1), actor="cli")
            new.scopes, new.officer_id = list(scopes), officer.id
        other = replace(api, token=token)
        before = api.rows()
        for method, body in (("GET", None), ("PUT", {"policy": {"max_attempts": 9}}), ("DELETE", None)):
            assert send(other, method, path, body).status_code == 404
        assert api.rows() == before

    @pytest.mark.parametrize("value", [True, False])
    def test_only_an_operator_decides_whether_calls_are_repeated(self, api: Api, value: bool) -> None:
        path = self.take(api)
        with api.runtime.db.begin() as session:
            session.get_one(ApiKey, api.key.id).scopes = ["requests:read", "requests:write"]
        before = api.rows()
        refused = {"needs the scope operate:write"}
        sent = api.post(api.erasure("2", retry={"retry_non_idempotent": value, "max_attempts": 2}))
        assert api.problem(sent)[:2] == (403, "forbidden")
        assert api.problem(sent)[2] == dict.fromkeys(["retry.retry_non_idempotent"], *refused)
        changed = put(api, path, retry_non_idempotent=value)
        assert api.problem(changed)[2] == dict.fromkeys(["policy.retry_non_idempotent"], *refused)
        assert api.rows() == before

    def test_an_operator_may_decide_it_for_one_request(self, api: Api) -> None:
        path = self.take(api, retry={"retry_non_idempotent": True})
        assert api.get(path).get_json()["policy"]["retry_non_idempotent"] is True

    def test_what_an_operator_decided_outlives_the_changes_of_the_sender(self, api: Api) -> None:
        path = self.take(api, retry={"retry_non_idempotent": False})
        with api.runtime.db.begin() as session:
            session.get_one(ApiKey, api.key.id).scopes = ["requests:read", "requests:write"]
        found = put(api, path, max_attempts=2).get_json()
        assert found["override"] == {"max_attempts": 2, "retry_non_idempotent": False}
        assert send(api, "DELETE", path).get_json()["override"] == {"retry_non_idempotent": False}

    def test_of_a_request_that_has_ended_can_not_be_changed_and_goes(self, api: Api) -> None:
        path = self.take(api, retry={"max_attempts": 2})
        still_open = self.take(api, subject_id="2", retry={"max_attempts": 3})
        with api.runtime.db.begin() as session:
            ended = session.get_one(Request, UUID(path.split("/")[-2]))
            ended.status, ended.closed_at = RequestStatus.COMPLETED, clock.now()
        assert api.problem(put(api, path, max_attempts=9))[0] == 409
        with api.runtime.db.begin() as session:
            assert delete_policies_of_closed_requests(session) == 1
        assert api.get(path).get_json()["override"] == {}
        assert api.get(still_open).get_json()["override"] == {"max_attempts": 3}


class TestFigures:
    @pytest.fixture
    def counted(self, api: Api) -> Api:
        now = clock.now()
        write(
            api.runtime.db,
            [
                Try(now),
                Try(now - HOUR, outcome=AttemptOutcome.FAILURE, status_code=503),
                Try(now, resolver="mail"),
            ],
        )
        return api

    def test_summary_is_of_all_or_of_one(self, counted: Api) -> None:
        found = counted.get("/api/v1/retries/summary").get_json()
        assert (found["hours"], found["attempts"], found["failure_by_reason"]) == (24, 3, {"http_503": 1})
        mine = counted.get("/api/v1/retries/summary?resolver=mail&hours=1").get_json()
        assert (mine["attempts"], mine["outcomes"]) == (1, {"success": 1})

    def test_timeseries_ends_with_the_running_hour(self, counted: Api) -> None:
        found = counted.get("/api/v1/retries/timeseries?hours=3&resolver=crm").get_json()
        assert [each["attempts"] for each in found["data"]] == [0, 1, 1]
        assert all(each["hour"].endswith(":00:00.000Z") for each in found["data"])

    def test_by_resolver(self, counted: Api) -> None:
        found = counted.get("/api/v1/retries/resolvers").get_json()
        assert {each["resolver"]: each["attempts"] for each in found["data"]} == {"crm": 2, "mail": 1}

    @pytest.mark.parametrize("what", ["summary", "timeseries", "resolvers"])
    def test_other_hours_than_1_to_168_are_refused(self, api: Api, what: str) -> None:
        for hours in ("0", "169", "x", "-1", "1.5", "", "९"):
            answer = api.get(f"/api/v1/retries/{what}?hours={hours}")
            assert set(api.problem(answer)[2]) == {"hours"}, hours

    def test_of_a_resolver_nobody_knows_is_refused(self, api: Api) -> None:
        status, _, fields = api.problem(api.get("/api/v1/retries/summary?resolver=nobody"))
        assert (status, list(fields)) == (422, ["resolver"])


def test_a_change_over_http_is_seen_by_another_process_of_the_web(
    api: Api, make_runtime: Callable[..., Any], migrated_url: str
) -> None:

    put(api, CRM, max_attempts=12)
    other = make_app(make_runtime(migrated_url))
    found = other.test_client().get(CRM, headers=api.headers()).get_json()
    assert found["policy"]["max_attempts"] == 12
