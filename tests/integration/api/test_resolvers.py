"""Systems over HTTP: what they can do, how they do, and pausing them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from attempts_cast import Try, write
from officers import add_officer
from sqlalchemy import select
from werkzeug.test import TestResponse

from effaced.accounts.api_keys import create_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.scopes import Scope
from effaced.audit.tables import AuditEvent
from effaced.breakers.outcomes import Outcome, OutcomeKind
from effaced.core import clock
from effaced.model import AttemptOutcome, CheckReason
from effaced.resolvers.check import Checked
from effaced.resolvers.read_backs import record_check
from effaced.triage.pause import pause

from .conftest import Api

PATH = "/api/v1/resolvers"
CRM = f"{PATH}/crm"
TOKEN = "very-secret-token"
RESOLVERS = f"""
version: 1
resolvers:
  crm:
    kind: http
    ref: crm_contact
    base_url: https://api.example/v3
    auth: {{bearer: {TOKEN}}}
    rate_per_second: 10
    timeout: 20
    max_attempts: 9
    after: [archive]
    canary: c-canary
    erase: {{method: DELETE, path: "/people/{{ref}}"}}
    verify: {{method: GET, path: "/people/{{ref}}", present: [200], absent: [404]}}
    gone: [404]
  archive: {{kind: manual, ref: crm_contact}}
"""
WHY = {"reason": "maintenance at the vendor"}


@pytest.fixture
def api(make_api: Callable[..., Api], migrated_url: str) -> Api:
    """A caller that operates, and whose own requests are executed at once."""
    made = make_api(migrated_url, resolvers=RESOLVERS)
    return with_key(made, Scope.OPERATE_WRITE, Scope.REQUESTS_WRITE)


def with_key(api: Api, *scopes: Scope) -> Api:
    with api.runtime.db.begin() as session:
        key, token = create_api_key(
            session, NewApiKey(name="+".join(scopes), approvals_needed=0, scopes=scopes), actor="cli"
        )
    return replace(api, key=key, token=token)


def post(
    api: Api, path: str, body: Any, *, token: str | None = None, idempotency_key: str | None = None
) -> TestResponse:
    headers = api.headers(token)
    if idempotency_key is not None:
        headers["Idempotency-Key"] = idempotency_key
    return api.app.test_client().post(path, json=body, headers=headers)


def trail(api: Api) -> list[str]:
    with api.runtime.db.read() as session:
        types = session.scalars(select(AuditEvent.type).order_by(AuditEvent.id))
        return [each for each in types if each.startswith("RESOLVER_")]


class TestLooking:
    def test_a_system_says_what_it_can_do_and_within_which_limits(self, api: Api) -> None:
        crm, archive = api.get(PATH).get_json()["data"]
        assert (crm["resolver"], crm["kind"], crm["host"], crm["reference"]) == (
            "crm", "http", "api.example", "crm_contact",
        )  # fmt: skip
        assert (crm["operations"], crm["manual"], crm["after"]) == (["erase", "verify"], False, ["archive"])
        assert crm["limits"]["timeout_s"] == 20
        assert (crm["limits"]["rate_per_second"], crm["limits"]["max_attempts"]) == (10, 9)
        assert (crm["limits"]["batch_size"], crm["limits"]["idempotent"]) == (None, True)
        assert (archive["operations"], archive["manual"]) == (["erase", "rectify"], True)
        assert (archive["breaker"], archive["last_day"], archive["read_back"]) == (None, None, None)
        assert api.get(CRM).get_json() == crm

    def test_no_address_token_or_canary_is_told(self, api: Api) -> None:
        told = api.get(PATH).text + api.get(CRM).text
        assert [each for each in (TOKEN, "https://", "/v3", "/people", "c-canary") if each in told] == []

    def test_entries_are_counted_by_status_with_the_oldest_that_is_due(self, api: Api) -> None:
        with clock.pretend(clock.now()) as now:
            began = now.at
            for number in ("1", "2"):
                assert api.post(api.erasure(number)).status_code == 201
                now.advance(timedelta(minutes=5))
            crm, archive = api.get(PATH).get_json()["data"]
        assert archive["entries"]["pending"] == 2
        assert archive["oldest_due_at"] == clock.text(began)
        # The other system comes first, so nothing of this one is due.
        assert crm["oldest_due_at"] is None
        assert set(crm["entries"]) == {"pending", "in_flight", "failed", "scheduled"}

    def test_the_last_day_is_in_figures(self, api: Api) -> None:
        now = clock.now()
        failed = [Try(now, outcome=AttemptOutcome.FAILURE, status_code=503)]
        write(api.runtime.db, [*failed, *(Try(now - timedelta(minutes=n)) for n in (60, 120, 180))])
        day = api.get(CRM).get_json()["last_day"]
        assert (day["calls"], day["success_rate"]) == (4, 0.75)
        assert 10 <= day["p95_latency_ms_estimate"] <= 25
        assert day["last_success_at"] == clock.text(now - timedelta(hours=1))

    def test_without_calls_there_is_no_rate(self, api: Api) -> None:
        assert api.get(CRM).get_json()["last_day"] == {
            "calls": 0, "success_rate": None, "p95_latency_ms_estimate": None, "last_success_at": None,
        }  # fmt: skip

    def test_a_breaker_that_blocks_is_told_also_if_it_is_the_host_s(self, api: Api) -> None:
        calls = api.runtime.breakers
        for _ in range(5):
            calls.settle(calls.admit("crm", "api.example"), [Outcome(OutcomeKind.FAILURE, 503)])
        breaker = api.get(CRM).get_json()["breaker"]
        assert (breaker["name"], breaker["state"], breaker["pinned"]) == ("resolver:crm", "open", False)
        assert breaker["blocked_until"] is not None
        post(api, "/api/v1/breakers/crm/reset", WHY)
        breaker = api.get(CRM).get_json()["breaker"]
        assert (breaker["state"], breaker["blocked_by_host"]) == ("closed", "host:api.example")

    def test_the_read_back_s_proof_is_that_of_the_last_check(self, api: Api) -> None:
        found = api.get(CRM).get_json()["read_back"]
        assert found == {"proof": "unproven", "reason": "never_checked", "checked_at": None}
        checked = Checked("crm", CheckReason.CANARY_SEEN, "")
        with api.runtime.db.begin() as session:
            registered = api.runtime.registry.get("crm")
            record_check(session, api.runtime.keyring, registered, checked, actor="cli")
        found = api.get(CRM).get_json()["read_back"]
        assert (found["proof"], found["reason"]) == ("proven", "canary_seen")
        assert found["checked_at"].endswith("Z")

    def test_the_rate_in_force_is_the_changed_one(self, api: Api) -> None:
        body = {"rate_per_second": 4, **WHY}
        api.app.test_client().put("/api/v1/breakers/crm/policy", json=body, headers=api.headers())
        found = api.get(CRM).get_json()
        assert (found["rate_per_second"], found["limits"]["rate_per_second"]) == (4, 10)

    def test_one_that_is_not_configured_any_more_is_still_listed(
        self, api: Api, make_api: Callable[..., Api]
    ) -> None:
        with api.runtime.db.begin() as session:
            pause(session, api.runtime.keyring, "former", actor="cli", reason="it was sold")
        former = api.get(PATH).get_json()["data"][-1]
        assert (former["resolver"], former["configured"], former["kind"]) == ("former", False, None)
        assert api.get(f"{PATH}/former").get_json() == former
        assert post(api, f"{PATH}/former/resume", WHY).get_json() == {"resolver": "former", "pause": None}

    @pytest.mark.parametrize("name", ["crn", "*", "%00", "anna@people.example"])
    def test_one_that_nobody_knows_is_not_found_and_not_repeated(self, api: Api, name: str) -> None:
        answer = api.get(f"{PATH}/{name}")
        assert api.problem(answer)[:2] == (404, "not-found")
        assert "anna" not in answer.text


class TestPausing:
    def test_paused_for_a_while_and_resumed(self, api: Api) -> None:
        with clock.pretend(clock.now()) as now:
            paused = post(api, f"{CRM}/pause", {"hours": 2, **WHY}).get_json()
            assert paused["pause"] == {
                "resolver": "crm",
                "since": clock.text(now.at),
                "until": clock.text(now.at + timedelta(hours=2)),
                "by": f"api_key:{api.key.id}",
                "code": "officer",
                "reason": WHY["reason"],
            }
            assert api.get(CRM).get_json()["pause"] == paused["pause"]
            assert post(api, f"{CRM}/resume", WHY).get_json() == {"resolver": "crm", "pause": None}
        assert api.get(CRM).get_json()["pause"] is None
        assert trail(api) == ["RESOLVER_PAUSED", "RESOLVER_RESUMED"]
        assert WHY["reason"] not in api.everything()

    def test_all_are_paused_together(self, api: Api) -> None:
        assert post(api, f"{PATH}/*/pause", WHY).get_json()["pause"]["resolver"] == "*"
        assert {each["pause"]["resolver"] for each in api.get(PATH).get_json()["data"]} == {"*"}
        assert post(api, f"{CRM}/pause", WHY).get_json()["pause"]["resolver"] == "crm"
        # Its own pause ends, that of all holds.
        assert post(api, f"{CRM}/resume", WHY).get_json()["pause"]["resolver"] == "*"
        assert post(api, f"{PATH}/*/resume", WHY).get_json()["pause"] is None

    def test_paused_twice_and_resumed_twice_is_a_conflict(self, api: Api) -> None:
        assert post(api, f"{CRM}/resume", WHY).status_code == 409
        assert post(api, f"{CRM}/pause", WHY).status_code == 200
        before = api.rows()
        assert api.problem(post(api, f"{CRM}/pause", WHY))[:2] == (409, "conflict")
        assert api.rows() == before

    def test_an_officer_who_paused_it_is_not_named(self, api: Api) -> None:
        with api.runtime.db.begin() as session:
            officer = add_officer(session, "Mara Example")
            actor = f"officer:{officer.id}"
            pause(session, api.runtime.keyring, "crm", actor=actor, reason="they called")
        answer = api.get(CRM)
        assert answer.get_json()["pause"]["by"] == actor
        assert "Mara" not in answer.text

    def test_the_same_call_again_has_no_effect_and_keeps_the_reason_to_itself(self, api: Api) -> None:
        first = post(api, f"{CRM}/pause", WHY, idempotency_key="pause-1").get_json()
        again = post(api, f"{CRM}/pause", WHY, idempotency_key="pause-1")
        without = {**first, "pause": {**first["pause"], "reason": None}}
        assert (again.status_code, again.get_json()) == (200, without)
        assert again.headers["Idempotent-Replay"] == "true"
        assert trail(api) == ["RESOLVER_PAUSED"]

    def test_the_same_call_many_times_at_once_has_one_effect_and_one_answer(self, api: Api) -> None:
        start = Barrier(4)

        def send(_: int) -> TestResponse:
            start.wait(timeout=30)
            return post(api, f"{CRM}/pause", WHY, idempotency_key="pause-at-once")

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(send, range(4)))
        assert [each.status_code for each in answers] == [200] * 4
        assert len({each.text for each in answers if "Idempotent-Replay" in each.headers}) == 1
        assert trail(api) == ["RESOLVER_PAUSED"]

    def test_a_name_that_is_none_is_not_found(self, api: Api) -> None:
        before = api.rows()
        for what in ("pause", "resume"):
            assert post(api, f"{PATH}/crn/{what}", WHY).status_code == 404
        assert api.rows() == before

    @pytest.mark.parametrize(
        ("body", "field"),
        [({}, "reason"), ({"reason": " "}, "reason"), ({"hours": 0, **WHY}, "hours"),
         ({"hours": 2161, **WHY}, "hours"), ({"hours": "2", **WHY}, "hours"), ({"until": 1, **WHY}, "until")],
    )  # fmt: skip
    def test_a_wrong_field_is_named_and_nothing_changed(
        self, api: Api, body: dict[str, Any], field: str
    ) -> None:
        before = api.rows()
        status, _, fields = api.problem(post(api, f"{CRM}/pause", body))
        assert (status, list(fields)) == (422, [field])
        assert api.rows() == before

    def test_reading_and_pausing_have_scopes_of_their_own(self, api: Api) -> None:
        reads, sends = with_key(api, Scope.OPERATE_READ), with_key(api, Scope.REQUESTS_WRITE)
        assert reads.get(PATH).status_code == 200
        assert [post(reads, f"{CRM}/{what}", WHY).status_code for what in ("pause", "resume")] == [403, 403]
        assert [sends.get(path).status_code for path in (PATH, CRM)] == [403, 403]
