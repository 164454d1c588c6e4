"""Sandbox keys: checked and planned as if it were real, and never executed by anything."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, text

from effaced.accounts.api_keys import authenticate
from effaced.core import clock
from effaced.core.db import Base
from effaced.core.errors import Refused
from effaced.model import RequestKind
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.tables import SandboxRequest
from effaced.retries.metrics import RetryMetrics

Api = Any
# What a call or housekeeping writes anyway.
ASIDE = {"effaced_api_keys", "effaced_retry_buckets"}


@pytest.fixture
def trial(api: Api) -> str:
    return str(api.new_key("trial", approvals_needed=0, sandbox=True, metadata_keys=["ticket"]))


def contents(api: Api) -> dict[str, list[Any]]:
    tables = [each for each in Base.metadata.sorted_tables if each.name not in ASIDE]
    with api.runtime.db.read() as session:
        found = {each.name: sorted(map(repr, session.execute(select(each)))) for each in tables}
        return {**found, "customers": list(map(repr, session.execute(text("SELECT * FROM customers"))))}


def do_everything(api: Api) -> None:
    """All that workers, scheduler and `effaced drain` do."""
    runtime = api.runtime
    runtime.restart_waits()
    runtime.advance_redrives()
    assert runtime.executor.execute_due(limit=100) == 0
    assert asyncio.run(runtime.runner().run_once()) == 0
    assert asyncio.run(runtime.deliverer().run()) == 0
    runtime.report_absence_spikes()
    runtime.end_retentions()
    runtime.tidy()
    RetryMetrics(runtime.db).aggregate_hourly()


def test_nothing_ever_executes_what_a_sandbox_key_has_sent(api: Api, trial: str) -> None:
    do_everything(api)
    before = contents(api)
    erased = api.post(api.erasure("1"), token=trial)
    corrected = api.post(api.rectification("2", email="new@example.org"), token=trial)
    assert (erased.status_code, corrected.status_code) == (201, 201)
    for each in (erased, corrected):
        assert api.runtime.executor.execute_now(UUID(each.get_json()["id"])) is False
    do_everything(api)
    after = contents(api)
    assert len(after.pop("effaced_sandbox_requests")) == 2
    del before["effaced_sandbox_requests"]
    assert after == before


def test_the_answer_has_the_plan_and_says_that_it_is_a_trial(api: Api, trial: str) -> None:
    answer = api.post(api.erasure("1", metadata={"ticket": "T-1"}, reason="by mail"), token=trial).get_json()
    assert (answer["sandbox"], answer["status"], answer["metadata"]) == (True, "approved", {"ticket": "T-1"})
    assert answer["plan"]["rows"] == 1
    assert answer["plan"]["calls"] == [{"resolver": "crm", "called": True, "note": None}]
    path = f"/api/v1/requests/{answer['id']}"
    assert api.get(path, token=trial).get_json() == answer
    assert api.get(f"{path}/plan", token=trial).get_json() == answer["plan"]
    assert api.get(f"/api/v1/requests/{answer['ref'].lower()}", token=trial).get_json() == answer


def test_nothing_of_the_person_is_kept(api: Api, trial: str) -> None:
    api.post(api.rectification("3", name="Zebulon"), token=trial)
    api.post(api.erasure("3", reason="Zebulon wrote"), token=trial, idempotency_key="k")
    hmacs = [each.hmac for each in api.runtime.keyring.fingerprints("3", purpose="subject")]
    kept = api.everything()
    assert not any(each in kept for each in ["Zebulon", "p3@example.org", "c-3", *hmacs])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "erasure", "subject": {"id": "999"}}, "subject.id"),
        ({"kind": "erasure", "subject": {"id": "1", "type": "pet"}}, "subject.type"),
        ({"kind": "erasure", "subject": {"id": "1"}, "corrections": {"name": "x"}}, "corrections"),
        ({"kind": "rectification", "subject": {"id": "1"}}, "corrections"),
        ({"kind": "rectification", "subject": {"id": "1"}, "corrections": {"shoe": 1}}, "corrections.shoe"),
        ({"kind": "erasure", "subject": {"id": "1"}, "retry": {"max_attempts": 0}}, "retry.max_attempts"),
        ({"kind": "erasure", "subject": {"id": "1"}, "metadata": {"order": "1"}}, "metadata.order"),
        ({"kind": "erasure", "subject": {"id": "1"}, "metadata": {"ticket": "a@b"}}, "metadata.ticket"),
    ],
)
def test_it_refuses_what_a_live_key_is_refused(
    api: Api, trial: str, body: dict[str, Any], field: str
) -> None:
    live = api.new_key("live", metadata_keys=["ticket"])
    before = api.rows()
    tried, sent = api.post(body, token=trial), api.post(body, token=live)
    assert api.problem(tried) == api.problem(sent)
    assert field in api.problem(tried)[2]
    assert api.rows() == before


def test_a_sandbox_key_sees_its_own_trials_only(api: Api, trial: str) -> None:
    other = api.new_key("other trial", sandbox=True)
    real = api.post(api.erasure("1")).get_json()
    mine = [api.post(api.erasure(str(n)), token=trial).get_json() for n in range(1, 6)]
    theirs = api.post(api.erasure("1"), token=other).get_json()
    listed, after = [], ""
    while True:
        page = api.get(f"/api/v1/requests?limit=2{after}", token=trial).get_json()
        listed += page["data"]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert listed == mine[::-1]
    for hidden in (real, theirs):
        for path in ("", "/plan"):
            assert api.get(f"/api/v1/requests/{hidden['id']}{path}", token=trial).status_code == 404
    # And nobody with a live key sees trials.
    assert [each["id"] for each in api.get("/api/v1/requests").get_json()["data"]] == [real["id"]]
    assert api.get(f"/api/v1/requests/{theirs['id']}").status_code == 404
    officers = api.officers_key(api.officer("mara"))
    assert api.get(f"/api/v1/requests/{theirs['id']}", token=officers).status_code == 404
    approved = api.post_to(f"/requests/{theirs['id']}/approve", {"reason": "x"}, token=officers)
    assert approved.status_code == 404


def test_filters_of_real_requests_are_refused_by_name(api: Api, trial: str) -> None:
    answer = api.get("/api/v1/requests?status=review&kind=erasure", token=trial)
    assert set(api.problem(answer)[2]) == {"status", "kind"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/requests/1/entries"),
        ("get", "/requests/1/events"),
        ("get", "/requests/1/attempts"),
        ("post", "/subjects/search"),
        ("get", f"/subjects/k1.{'0' * 64}"),
        ("post", "/requests/1/approve"),
        ("post", "/entries/1/attest"),
        ("get", "/keys"),
        ("post", "/keys"),
    ],
)
def test_a_sandbox_key_calls_nothing_else(api: Api, trial: str, method: str, path: str) -> None:
    headers = api.headers(trial)
    answer = getattr(api.app.test_client(), method)(f"/api/v1{path}", headers=headers)
    assert api.problem(answer)[:2] == (403, "forbidden")


def test_a_trial_does_not_make_the_real_request_a_duplicate(api: Api, trial: str) -> None:
    api.post(api.erasure("1"), token=trial)
    answer = api.post(api.erasure("1"))
    assert (answer.status_code, answer.get_json()["duplicate_of"]) == (201, None)


def test_intake_itself_refuses_a_sandbox_key(api: Api, trial: str) -> None:
    """Whichever door it might come in by."""
    with api.runtime.db.begin() as session:
        key = authenticate(session, trial)
        plan = api.runtime.plan_on(session)
        asked = IntakeRequest(RequestKind.ERASURE, "1", api_key=key)
        with pytest.raises(Refused):
            receive(session, api.runtime.keyring, plan, asked)


def test_trials_are_deleted_after_thirty_days(api: Api, trial: str) -> None:
    with clock.pretend(clock.now()) as at:
        api.post(api.erasure("1"), token=trial)
        at.advance(timedelta(days=29))
        api.runtime.tidy()
        api.post(api.erasure("2"), token=trial)
        at.advance(timedelta(days=2))
        api.runtime.tidy()
    with api.runtime.db.read() as session:
        assert len(session.scalars(select(SandboxRequest)).all()) == 1


def test_a_repeated_trial_is_one_trial(api: Api, trial: str) -> None:
    first, second = (api.post(api.erasure("1"), token=trial, idempotency_key="k") for _ in range(2))
    assert first.get_json() == second.get_json()
    assert len(api.get("/api/v1/requests", token=trial).get_json()["data"]) == 1
