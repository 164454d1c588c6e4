"""P6 to P8 over HTTP: breakers listed, steered, explained and tuned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from attempts_cast import Try, write
from sqlalchemy import select
from werkzeug.test import TestResponse

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.scopes import Scope
from effaced.audit.tables import AuditEvent
from effaced.breakers.layered.outage_log import L2SyncFailureRecord, OutageLog
from effaced.breakers.model import BreakerState
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.breakers.tables import BreakerShadow
from effaced.core import clock
from effaced.notify.tables import Message

from .conftest import Api

BREAKERS = "/api/v1/breakers"
CRM = f"{BREAKERS}/crm"
RESOLVERS = """
version: 1
resolvers:
  crm:
    kind: http
    ref: crm_contact
    base_url: https://api.example
    rate_per_second: 10
    erase: {method: DELETE, path: "/people/{ref}"}
    gone: [404]
"""
WHY = {"reason": "maintenance at the vendor"}
FAILURE = Outcome(OutcomeKind.FAILURE, 503)


@pytest.fixture
def api(make_api: Callable[..., Api], migrated_url: str) -> Api:
    """A caller that may look and steer."""
    made = make_api(migrated_url, resolvers=RESOLVERS)
    with made.runtime.db.begin() as session:
        key, token = create_api_key(
            session, NewApiKey(name="operator", approvals_needed=1, scopes=[Scope.OPERATE_WRITE]), actor="cli"
        )
    return replace(made, key=key, token=token)


def post(api: Api, path: str, token: str | None = None, /, **body: Any) -> TestResponse:
    return api.app.test_client().post(path, json=body, headers=api.headers(token))


def fail(api: Api, times: int = 5) -> None:
    calls = api.runtime.breakers
    for _ in range(times):
        calls.settle(calls.admit("crm", "api.example"), [FAILURE])


def too_fast(api: Api) -> None:
    now = clock.now()
    codes = [429 if n % 4 == 0 else 200 for n in range(100)]
    write(
        api.runtime.db,
        [Try(now - timedelta(seconds=n + 1), status_code=code) for n, code in enumerate(codes)],
    )


def messages(api: Api) -> list[tuple[str, dict[str, Any]]]:
    with api.runtime.db.read() as session:
        return [
            (row.type.value, row.payload) for row in session.scalars(select(Message).order_by(Message.id))
        ]


class TestLooking:
    def test_the_list_has_every_resolver_and_host(self, api: Api) -> None:
        found = api.get(BREAKERS).get_json()["data"]
        assert [(each["name"], each["state"]) for each in found] == [
            ("resolver:crm", "closed"),
            ("host:api.example", "closed"),
        ]

    def test_one_is_found_by_resolver_or_by_scope_and_name(self, api: Api) -> None:
        fail(api)
        for path in ("crm", "resolver:crm"):
            found = api.get(f"{BREAKERS}/{path}").get_json()
            assert (found["name"], found["state"], found["reason"]) == (
                "resolver:crm", "open", "consecutive_failures",
            )  # fmt: skip
        assert api.get(f"{BREAKERS}/host:API.example").get_json()["blocked_until"] is not None

    def test_one_that_is_not_there_is_not_found(self, api: Api) -> None:
        for path in ("crn", "host:other.example", "host:"):
            assert api.problem(api.get(f"{BREAKERS}/{path}"))[:2] == (404, "not-found")

    def test_a_name_that_is_not_there_is_not_repeated_in_the_answer(self, api: Api) -> None:
        answer = api.get(f"{BREAKERS}/anna@people.example")
        assert (answer.status_code, "anna" in answer.text) == (404, False)

    def test_moves_are_paged_for_all_and_for_one(self, api: Api) -> None:
        fail(api)
        page = api.get(f"{BREAKERS}/transitions?limit=1").get_json()
        rest = api.get(f"{BREAKERS}/transitions?limit=1&after={page['next']}").get_json()
        both = [*page["data"], *rest["data"]]
        assert {each["breaker"] for each in both} == {"resolver:crm", "host:api.example"}
        assert rest["next"] is None
        (mine,) = api.get(f"{CRM}/transitions").get_json()["data"]
        assert (mine["scope"], mine["key"], mine["old"], mine["new"]) == ("resolver", "crm", "closed", "open")
        assert (mine["reason"], mine["reset_timeout_s"]) == ("consecutive_failures", 60)

    def test_the_policy_in_force_is_shown_by_role(self, api: Api) -> None:
        found = api.get(f"{CRM}/policy").get_json()
        assert found["roles"]["erase"]["fail_max"] == 5
        assert found["roles"]["verify"]["classify"]["failure_statuses"][:3] == [408, 429, 500]
        assert found["overrides"] == {"breaker": {}, "rate": {}}

    def test_the_summary_is_by_breaker(self, api: Api) -> None:
        fail(api)
        found = api.get(f"{BREAKERS}/summary?window_s=3600").get_json()
        assert [(each["breaker"], each["opens_per_hour"]) for each in found["data"]] == [
            ("resolver:crm", 1.0),
            ("host:api.example", 1.0),
        ]


class TestSteering:
    def test_opened_closed_and_reset(self, api: Api) -> None:
        opened = post(api, f"{CRM}/open", seconds=60, **WHY).get_json()
        assert (opened["state"], opened["pin"]["state"]) == ("open", "open")
        assert (opened["pin"]["by"], opened["pin"]["reason"]) == (f"api_key:{api.key.id}", WHY["reason"])
        assert not api.runtime.breakers.admit("crm", "api.example").granted
        assert post(api, f"{CRM}/close", **WHY).get_json()["pin"]["state"] == "closed"
        assert post(api, f"{CRM}/reset", **WHY).get_json()["pin"] is None
        with api.runtime.db.read() as session:
            told = session.scalars(select(AuditEvent.type).order_by(AuditEvent.id)).all()
        assert told[-3:] == ["BREAKER_FORCED_OPEN", "BREAKER_FORCED_CLOSED", "BREAKER_RESET"]
        assert WHY["reason"] not in api.everything()

    def test_reading_and_writing_have_scopes_of_their_own(self, api: Api) -> None:
        with api.runtime.db.begin() as session:
            scopes = [Scope.OPERATE_READ]
            _, reads = create_api_key(
                session, NewApiKey(name="r", approvals_needed=1, scopes=scopes), actor="cli"
            )
            scopes = [Scope.REQUESTS_WRITE]
            _, sends = create_api_key(
                session, NewApiKey(name="s", approvals_needed=1, scopes=scopes), actor="cli"
            )
        assert api.get(BREAKERS, token=reads).status_code == 200
        for path in ("crm/open", "crm/close", "crm/reset", "crm/policy/undo", "advice/apply"):
            assert post(api, f"{BREAKERS}/{path}", reads, **WHY).status_code == 403
        for path in ("", "/crm", "/transitions", "/crm/transitions", "/summary", "/advice", "/crm/policy"):
            assert api.get(f"{BREAKERS}{path}", token=sends).status_code == 403
        assert api.app.test_client().get(BREAKERS).status_code == 401


class TestMistakes:
    @pytest.fixture
    def migrated_url(self, migrated_sqlite_url: str) -> str:
        """No database has a say in this, so one is enough."""
        return migrated_sqlite_url

    @pytest.mark.parametrize(
        ("path", "field"),
        [
            ("/summary?window_s=59", "window_s"),
            ("/advice?window_s=soon", "window_s"),
            ("/advice?hours=1", "hours"),
            ("/transitions?limit=0", "limit"),
            ("/transitions?after=nonsense", "after"),
            ("?state=open", "state"),
        ],
    )
    def test_a_wrong_argument_is_refused_by_its_name(self, api: Api, path: str, field: str) -> None:
        status, slug, fields = api.problem(api.get(f"{BREAKERS}{path}"))
        assert (status, slug, list(fields)) == (422, "refused", [field])

    @pytest.mark.parametrize(
        ("body", "field"),
        [({"seconds": 0, **WHY}, "seconds"), ({"seconds": "5", **WHY}, "seconds"), ({}, "reason"),
         ({"reason": ""}, "reason"), ({"reason": " "}, "reason"), ({"until": 5, **WHY}, "until")],
    )  # fmt: skip
    def test_a_wrong_field_is_named_and_nothing_changed(
        self, api: Api, body: dict[str, Any], field: str
    ) -> None:
        before = api.rows()
        status, slug, fields = api.problem(post(api, f"{CRM}/open", **body))
        assert (status, slug, list(fields)) == (422, "refused", [field])
        assert api.rows() == before


class TestAdvice:
    def test_is_explained_and_changes_nothing(self, api: Api) -> None:
        too_fast(api)
        before = api.rows()
        (plan,) = api.get(f"{BREAKERS}/advice").get_json()["data"]
        assert (plan["breaker"], plan["seen"]["too_many_requests"]) == ("resolver:crm", 25)
        (change,) = plan["changes"]
        assert (change["kind"], change["old"], change["new"]) == ("rate", 10, 8)
        assert api.rows() == before

    def test_is_applied_audited_and_undone(self, api: Api) -> None:
        too_fast(api)
        (applied,) = post(api, f"{BREAKERS}/advice/apply", breakers=["crm"], **WHY).get_json()["data"]
        assert applied["changes"][0]["new"] == 8
        assert api.get(f"{CRM}/policy").get_json()["overrides"]["rate"] == {"rate_per_second": 8}
        undone = post(api, f"{CRM}/policy/undo", **WHY).get_json()
        assert (undone["kind"], undone["override"]) == ("rate", {})
        with api.runtime.db.read() as session:
            told = session.scalars(select(AuditEvent.type).order_by(AuditEvent.id)).all()
        assert told[-2:] == ["POLICY_CHANGED", "POLICY_UNDONE"]

    def test_for_other_breakers_is_left(self, api: Api) -> None:
        too_fast(api)
        answer = post(api, f"{BREAKERS}/advice/apply", breakers=["host:api.example"], **WHY)
        assert answer.get_json()["data"] == []
        assert api.get(f"{CRM}/policy").get_json()["overrides"]["rate"] == {}

    def test_of_a_breaker_nobody_knows_or_for_an_impossible_window_is_refused(self, api: Api) -> None:
        path = f"{BREAKERS}/advice/apply"
        said = api.problem(post(api, path, breakers=["crm", "crn"], **WHY))
        assert (said[0], list(said[2])) == (422, ["breakers.1"])
        assert list(api.problem(post(api, path, window_s=5, **WHY))[2]) == ["window_s"]

    def test_that_was_never_followed_can_not_be_undone(self, api: Api) -> None:
        assert post(api, f"{CRM}/policy/undo", **WHY).status_code == 409


class TestTellingPeople:
    def test_an_opening_and_a_closing_are_told_once_and_not_for_the_host_too(self, api: Api) -> None:
        with clock.pretend(clock.now()) as now:
            fail(api)
            calls = api.runtime.breakers
            for ok in (False, True):  # a trial that fails is no news
                now.advance(timedelta(minutes=10))
                kind = OutcomeKind.SUCCESS if ok else OutcomeKind.FAILURE
                calls.settle(calls.admit("crm", "api.example"), [Outcome(kind, 200 if ok else 503)])
            assert calls.current_state("api.example", "crm") is BreakerState.CLOSED
        told = [(type_, each["breaker"], each["reason"]) for type_, each in messages(api)]
        assert told == [
            ("breaker.opened", "resolver:crm", "consecutive_failures"),
            ("breaker.closed", "resolver:crm", "trials_succeeded"),
        ]

    def test_a_host_that_moves_alone_is_told_of(self, api: Api) -> None:
        post(api, f"{BREAKERS}/host:api.example/open", seconds=60, **WHY)
        assert [(type_, each["breaker"]) for type_, each in messages(api)] == [
            ("breaker.opened", "host:api.example")
        ]


class TestTheSameCallAgain:
    def test_has_no_effect_and_keeps_the_reason_to_itself(self, api: Api) -> None:
        headers = {**api.headers(), "Idempotency-Key": "open-crm"}
        client, body = api.app.test_client(), {"seconds": 60, **WHY}
        first = client.post(f"{CRM}/open", json=body, headers=headers).get_json()
        post(api, f"{CRM}/reset", **WHY)
        again = client.post(f"{CRM}/open", json=body, headers=headers)
        without = {**first, "pin": {**first["pin"], "reason": None}}
        assert (again.status_code, again.get_json()) == (200, without)
        assert again.headers["Idempotent-Replay"] == "true"
        assert api.get(CRM).get_json()["pin"] is None

    def test_of_a_change_of_policies_is_answered_with_what_was_changed_then(self, api: Api) -> None:
        too_fast(api)
        headers = {**api.headers(), "Idempotency-Key": "apply"}
        answers = [
            api.app.test_client().post(f"{BREAKERS}/advice/apply", json=WHY, headers=headers).get_json()
            for _ in range(2)
        ]
        assert answers[0] == answers[1]
        assert answers[0]["data"][0]["changes"][0]["new"] == 8
        assert api.get(f"{CRM}/policy").get_json()["rate_per_second"] == 8


class TestInRedis:
    @pytest.fixture
    def api(self, make_api: Callable[..., Api], migrated_url: str, redis_url: str) -> Api:
        made = make_api(migrated_url, resolvers=RESOLVERS, breaker_store="redis", breaker_redis_url=redis_url)
        with made.runtime.db.begin() as session:
            key, token = create_api_key(
                session,
                NewApiKey(name="operator", approvals_needed=1, scopes=[Scope.OPERATE_WRITE]),
                actor="cli",
            )
        return replace(made, key=key, token=token)

    def test_the_answer_is_what_holds_after_the_call(self, api: Api) -> None:
        opened = post(api, f"{CRM}/open", seconds=60, **WHY).get_json()
        assert (opened["state"], opened["pin"]["reason"], opened["last_known"]) == (
            "open", WHY["reason"], False,
        )  # fmt: skip
        assert api.get(CRM).get_json() == opened
        assert post(api, f"{CRM}/unpin", **WHY).get_json()["pin"] is None
        assert post(api, f"{CRM}/reset", **WHY).get_json() == api.get(CRM).get_json()
        reasons = [each["reason"] for each in api.get(f"{CRM}/transitions").get_json()["data"]]
        assert reasons == ["reset", "unpinned", "forced_open"]


def test_shadow_records_that_were_made_up_for_are_forgotten_in_time(api: Api) -> None:
    with clock.pretend(clock.now()) as now:
        log = OutageLog(api.runtime.db)
        for name in ("resolver:crm", "resolver:mail"):
            log.add(L2SyncFailureRecord(name, "open", clock.now(), "ConnectionError", "open"))
        log.mark_as_synced("resolver:crm", clock.now())
        now.advance(timedelta(days=91))
        api.runtime.tidy()
    with api.runtime.db.read() as session:
        assert list(session.scalars(select(BreakerShadow.service_name))) == ["resolver:mail"]


def test_old_moves_are_forgotten_by_the_housekeeping_but_each_breakers_latest(api: Api) -> None:
    with clock.pretend(clock.now()) as now:
        post(api, f"{CRM}/open", seconds=60, **WHY)
        post(api, f"{CRM}/reset", **WHY)
        now.advance(timedelta(days=91))
        api.runtime.tidy()
        moves = api.get(f"{CRM}/transitions").get_json()["data"]
    assert [each["reason"] for each in moves] == ["reset"]


class TestNewVerbs:
    def test_unpinned_reset_with_its_host_and_deleted(self, api: Api) -> None:
        fail(api)
        post(api, f"{CRM}/open", seconds=600, **WHY)
        assert post(api, f"{CRM}/unpin", **WHY).get_json()["pin"] is None
        assert post(api, f"{CRM}/unpin", **WHY).status_code == 409
        found = post(api, f"{CRM}/reset", **WHY).get_json()
        assert (found["state"], found["blocked_by_host"]) == ("closed", "host:api.example")
        found = post(api, f"{CRM}/reset", include_host=True, **WHY).get_json()
        assert (found["blocked_by_host"], found["blocked_until"]) == (None, None)
        assert post(api, f"{CRM}/delete", **WHY).status_code == 409
        api.runtime.breakers.force_open("resolver:former", seconds=60, actor="cli")
        assert post(api, f"{BREAKERS}/resolver:former/delete", **WHY).get_json()["reason"] == "deleted"
        assert api.get(f"{BREAKERS}/resolver:former").status_code == 404

    def test_a_policy_and_a_rate_are_set_by_hand_and_in_force_at_once(self, api: Api) -> None:
        headers, client = api.headers(), api.app.test_client()
        # From here on this process has a policy in force that it would keep for some seconds.
        assert api.runtime.breakers.policy("resolver:crm").fail_max == 5
        body = {"fields": {"fail_max": 2}, "rate_per_second": 4, **WHY}
        found = client.put(f"{CRM}/policy", json=body, headers=headers).get_json()
        assert (found["roles"]["erase"]["fail_max"], found["rate_per_second"]) == (2, 4)
        assert found["overrides"] == {"breaker": {"fail_max": 2}, "rate": {"rate_per_second": 4}}
        assert api.runtime.breakers.policy("resolver:crm").fail_max == 2
        everything = f"{BREAKERS}/defaults/policy"
        found = client.put(everything, json={"fields": {"jitter_ms": 9}, **WHY}, headers=headers).get_json()
        assert found["roles"]["verify"]["jitter_ms"] == 9
        body = {"fields": {"fail_max": 8}, **WHY}
        assert client.put(f"{CRM}/policy", json=body, headers=headers).status_code == 422

    def test_a_change_of_nothing_is_refused_and_writes_nothing(self, api: Api) -> None:
        before = api.rows()
        answer = api.app.test_client().put(f"{CRM}/policy", json=WHY, headers=api.headers())
        assert (answer.status_code, list(api.problem(answer)[2])) == (422, ["fields"])
        assert api.rows() == before

    @pytest.mark.parametrize(
        ("fields", "wrong"),
        [
            ({"fail_max": 0}, ["fields.fail_max"]),
            ({"fail_max": True}, ["fields.fail_max"]),
            ({"fail_max": None}, ["fields.fail_max"]),
            ({"patience": 1}, ["fields.patience"]),
            ({"roles": 5}, ["fields.roles"]),
            ({"roles": {"erase": 5}}, ["fields.roles.erase"]),
            ({"roles": {"erase": {"fail_max": -1}}}, ["fields.roles.erase.fail_max"]),
            ({"a\x00b": 1}, ["fields.(unprintable)"]),
            ({"classify": {"failure_statuses": [10**12]}}, ["fields.classify.failure_statuses"]),
            ({"stuck_timeout_s": 1}, ["fields.stuck_timeout_s"]),
        ],
    )
    def test_a_policy_that_is_wrong_is_refused_by_the_field_of_the_body(
        self, api: Api, fields: Any, wrong: list[str]
    ) -> None:
        before = api.rows()
        body = {"fields": fields, **WHY}
        answer = api.app.test_client().put(f"{CRM}/policy", json=body, headers=api.headers())
        status, _, named = api.problem(answer)
        assert (status, list(named)) == (422, wrong)
        assert api.rows() == before

    def test_a_role_that_there_is_not_is_refused(self, api: Api) -> None:
        body = {"fields": {"roles": {"a\x00": {"fail_max": 1}}}, **WHY}
        answer = api.app.test_client().put(f"{CRM}/policy", json=body, headers=api.headers())
        assert api.problem(answer)[0] == 422

    def test_a_host_has_no_rate(self, api: Api) -> None:
        body, path = {"rate_per_second": 5, **WHY}, f"{BREAKERS}/host:api.example/policy"
        answer = api.app.test_client().put(path, json=body, headers=api.headers())
        assert (api.problem(answer)[0], list(api.problem(answer)[2])) == (422, ["rate_per_second"])

    def test_attempts_limited_at_run_time_lower_fail_max(self, api: Api) -> None:
        path = "/api/v1/retries/policies/resolvers/crm"
        api.app.test_client().put(path, json={"policy": {"max_attempts": 3}}, headers=api.headers())
        api.runtime.breakers.refresh_policies()
        assert api.runtime.breakers.policy("resolver:crm").fail_max == 2
        assert api.get(f"{CRM}/policy").get_json()["roles"]["erase"]["fail_max"] == 2

    def test_outages_are_told_from_the_database(self, api: Api) -> None:
        record = L2SyncFailureRecord("resolver:crm", "open", clock.now(), "ConnectionError", "closed")
        OutageLog(api.runtime.db).add(record)
        found = api.get(f"{BREAKERS}/outages").get_json()
        assert [(each["breaker"], each["new"]) for each in found["timeline"]] == [("resolver:crm", "open")]
        assert (found["errors"], found["drift"]) == ({"ConnectionError": 1}, [])
