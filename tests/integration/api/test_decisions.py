"""Officers decide over the API: plans, approvals and attestations, under the console's rules."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import column, select, table, text, update
from sqlalchemy.exc import OperationalError

from effaced.accounts.officers import deactivate_officer, lock_deciding_officer
from effaced.accounts.tables import ApiKey, Officer
from effaced.audit.tables import AuditEvent
from effaced.core.errors import Refused
from effaced.model import Role
from effaced.requests.tables import Approval, Request
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.testing import VerifyingRecordingResolver

Api = Any
REASON = {"reason": "checked by telephone"}
BY_HAND = """
version: 1
resolvers:
  archive: {kind: manual, ref: crm_contact}
"""


@pytest.fixture
def by_hand(make_api: Any, migrated_url: str) -> Api:
    """Executed at once, and a person does the work at the only system."""
    return make_api(migrated_url, approvals_needed=0, resolvers=BY_HAND)


def approve(api: Api, request_id: str, token: str, **body: Any) -> Any:
    return api.post_to(f"/requests/{request_id}/approve", {**REASON, **body}, token=token)


def sent(api: Api, subject_id: str = "1", **more: Any) -> str:
    answer = api.post(api.erasure(subject_id), **more)
    assert answer.status_code == 201, answer.text
    return str(answer.get_json()["id"])


def events(api: Api, kind: str) -> list[AuditEvent]:
    with api.runtime.db.read() as session:
        return list(
            session.scalars(select(AuditEvent).where(AuditEvent.type == kind).order_by(AuditEvent.id))
        )


def status_of(api: Api, request_id: str) -> str:
    with api.runtime.db.read() as session:
        return session.get_one(Request, UUID(request_id)).status.value


# --- plans ---


def test_a_plan_says_what_would_be_erased_and_called_and_changes_nothing(api: Api) -> None:
    request_id = sent(api)
    before = api.rows()
    plan = api.get(f"/api/v1/requests/{request_id}/plan").get_json()
    assert plan["kind"] == "erasure"
    assert plan["rows"] == 1
    assert [(each["table"], each["rows"]) for each in plan["tables"]] == [("customers", 1)]
    assert plan["calls"] == [{"resolver": "crm", "called": True, "note": None}]
    assert plan["datamap_hash"] == api.runtime.datamap.hash
    assert api.rows() == before
    assert status_of(api, request_id) == "review"


def test_a_plan_names_systems_that_do_not_know_the_person(api: Api) -> None:
    with api.runtime.db.begin() as session:
        session.execute(update(table("customers", column("crm_ref"))).values(crm_ref=None))
    plan = api.get(f"/api/v1/requests/{sent(api)}/plan").get_json()
    assert plan["calls"] == [{"resolver": "crm", "called": False, "note": "no_reference"}]


def test_a_plan_of_a_rectification_counts_rows_per_table_and_shows_no_value(correcting_api: Api) -> None:
    body = {"kind": "rectification", "subject": {"id": "1"}, "corrections": {"email": "new@example.org"}}
    answer = correcting_api.post_to("/requests/plan", body)
    assert answer.status_code == 200
    assert answer.get_json()["corrections"] == [{"table": "customers", "columns": ["email"], "rows": 1}]
    assert answer.get_json()["calls"] == [{"resolver": "archive", "called": True, "note": None}]
    assert "new@example.org" not in answer.text


def test_planning_before_sending_keeps_nothing(api: Api) -> None:
    before = api.rows()
    answer = api.post_to("/requests/plan", {"subject": {"id": "2"}})
    assert (answer.status_code, answer.get_json()["rows"]) == (200, 1)
    assert api.rows() == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"subject": {"id": "999"}}, "subject.id"),
        ({"subject": {"id": "1", "type": "employee"}}, "subject.type"),
        ({"subject": {"id": "1"}, "corrections": {"email": "a@b.example"}}, "corrections"),
        ({"kind": "rectification", "subject": {"id": "1"}}, "corrections"),
        ({"kind": "rectification", "subject": {"id": "1"}, "corrections": {"shoe": 1}}, "corrections.shoe"),
        ({}, "subject"),
    ],
)
def test_a_plan_is_refused_as_the_request_would_be(api: Api, body: dict[str, Any], field: str) -> None:
    assert field in api.problem(api.post_to("/requests/plan", body))[2]


def test_an_executed_request_has_no_plan(trusted_api: Api) -> None:
    answer = trusted_api.get(f"/api/v1/requests/{sent(trusted_api)}/plan")
    assert trusted_api.problem(answer)[:2] == (409, "conflict")


def test_the_plan_of_another_keys_request_is_nobodys(api: Api) -> None:
    other = api.new_key("other")
    assert api.get(f"/api/v1/requests/{sent(api)}/plan", token=other).status_code == 404


# --- approving ---


def test_an_approval_executes_and_the_trail_names_officer_and_key(api: Api) -> None:
    mara = api.officer("mara")
    token = api.officers_key(mara)
    request_id = sent(api)
    answer = approve(api, request_id, token)
    assert (answer.status_code, answer.get_json()["status"]) == (200, "approved")
    assert status_of(api, request_id) == "running"
    (event,) = events(api, "REQUEST_APPROVED")
    assert event.actor == f"officer:{mara.id}"
    with api.runtime.db.read() as session:
        key = session.scalars(select(ApiKey).where(ApiKey.officer_id == mara.id)).one()
    assert event.payload["api_key_id"] == str(key.id)
    assert REASON["reason"] not in api.everything()


def test_a_key_without_the_scope_approves_nothing(api: Api) -> None:
    request_id = sent(api)
    tokens = [api.token, api.officers_key(api.officer("mara"), "decide:read")]
    tokens.append(api.officers_key(api.officer("olga"), "decide:attest"))
    for token in tokens:
        assert api.problem(approve(api, request_id, token))[:2] == (403, "forbidden")
    assert status_of(api, request_id) == "review"


def test_two_keys_of_one_officer_are_one_officer(api: Api) -> None:
    mara = api.officer("mara")
    first, second = api.officers_key(mara), api.officers_key(mara)
    request_id = sent(api)
    need(api, request_id, 2)
    assert approve(api, request_id, first).get_json()["status"] == "review"
    answer = approve(api, request_id, second)
    assert (answer.status_code, status_of(api, request_id)) == (422, "review")
    olga = api.officers_key(api.officer("olga"))
    assert approve(api, request_id, olga).get_json()["status"] == "approved"
    assert status_of(api, request_id) == "running"


def need(api: Api, request_id: str, approvals: int) -> None:
    with api.runtime.db.begin() as session:
        session.get_one(Request, UUID(request_id)).approvals_needed = approvals


def test_nobody_approves_what_their_own_key_has_sent(api: Api) -> None:
    mara = api.officer("mara")
    token = api.officers_key(mara, "requests:write", "decide:approve")
    request_id = sent(api, token=token)
    answer = approve(api, request_id, token)
    assert answer.status_code == 422
    assert "You entered this request" in answer.get_json()["detail"]
    assert approve(api, request_id, api.officers_key(mara)).status_code == 422
    assert approve(api, request_id, api.officers_key(api.officer("olga"))).status_code == 200


def test_an_officer_who_was_deactivated_decides_nothing(api: Api) -> None:
    mara = api.officer("mara")
    token, request_id = api.officers_key(mara), sent(api)
    with api.runtime.db.begin() as session:
        deactivate_officer(session, session.get_one(Officer, mara.id), actor="cli")
    assert approve(api, request_id, token).status_code == 401
    # Nor in a call that had been let in just before: the decision looks again.
    with api.runtime.db.begin() as session:
        assert lock_deciding_officer(session, mara.id) is None
    assert status_of(api, request_id) == "review"


def test_no_officer_is_deactivated_in_the_middle_of_a_decision(
    make_api: Any, migrated_postgres_url: str
) -> None:
    api = make_api(migrated_postgres_url)
    mara = api.officer("mara")
    with api.runtime.db.begin() as deciding:
        assert lock_deciding_officer(deciding, mara.id) is not None
        with api.runtime.db.sessions() as session:
            session.execute(text("SET LOCAL lock_timeout = '50ms'"))
            session.get_one(Officer, mara.id).active = False
            with pytest.raises(OperationalError):
                session.flush()


def test_an_approval_for_another_data_map_than_was_seen_is_refused(api: Api) -> None:
    token, request_id = api.officers_key(api.officer("mara")), sent(api)
    assert approve(api, request_id, token, datamap_hash="0" * 64).status_code == 409
    seen = api.get(f"/api/v1/requests/{request_id}/plan", token=token).get_json()["datamap_hash"]
    assert approve(api, request_id, token, datamap_hash=seen).status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "reason"),
        ({"reason": ""}, "reason"),
        ({"reason": " \u200b"}, "reason"),
        ({"reason": "x" * 2001}, "reason"),
        ({"reason": 1}, "reason"),
        ({"reason": "x", "datamap_hash": "x"}, "datamap_hash"),
        ({"reason": "x", "officer": "olga"}, "officer"),
    ],
)
def test_a_wrong_approval_is_refused_by_field(api: Api, body: dict[str, Any], field: str) -> None:
    token, request_id = api.officers_key(api.officer("mara")), sent(api)
    answer = api.post_to(f"/requests/{request_id}/approve", body, token=token)
    assert field in api.problem(answer)[2]
    assert status_of(api, request_id) == "review"


def test_what_is_not_waiting_for_approval_is_409(trusted_api: Api) -> None:
    token = trusted_api.officers_key(trusted_api.officer("mara"))
    assert approve(trusted_api, sent(trusted_api), token).status_code == 409
    assert approve(trusted_api, "nonsense", token).status_code == 404


def test_a_repeated_approval_has_one_effect(api: Api) -> None:
    token, request_id = api.officers_key(api.officer("mara")), sent(api)
    path = f"/requests/{request_id}/approve"
    first, second = (api.post_to(path, REASON, token=token, Idempotency_Key="once") for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.headers["Idempotent-Replay"] == "true"
    assert len(events(api, "REQUEST_APPROVED")) == 1


@pytest.mark.parametrize("approvals", [1, 2])
def test_fifty_parallel_approvals_by_two_officers_execute_once(api: Api, approvals: int) -> None:
    people = [api.officer("mara"), api.officer("olga")]
    tokens = [api.officers_key(each) for each in people for _ in range(2)]
    request_id = sent(api)
    need(api, request_id, approvals)
    calls = [tokens[number % len(tokens)] for number in range(50)]
    start = Barrier(len(calls))

    def send(token: str) -> int:
        start.wait(timeout=60)
        return int(approve(api, request_id, token).status_code)

    with ThreadPoolExecutor(len(calls)) as pool:
        answers = Counter(pool.map(send, calls))
    assert answers[200] == approvals
    assert set(answers) <= {200, 409, 422}
    assert len(events(api, "REQUEST_APPROVED")) == approvals
    # Where another call had the request locked just then, it was left to the sweep.
    api.runtime.executor.execute_due()
    assert len(events(api, "LOCAL_ERASURE_EXECUTED")) == 1
    with api.runtime.db.read() as session:
        assert len(session.scalars(select(Approval)).all()) == approvals
    rows = api.rows()
    assert (rows["effaced_outbox"], rows["customers"]) == (1, 5)


# --- attesting ---


def waiting_entry(api: Api) -> tuple[str, str]:
    """A request, and its call that waits for a person."""
    request_id = sent(api)
    asyncio.run(api.runtime.runner().run_once())
    (entry,) = api.get(f"/api/v1/requests/{request_id}/entries").get_json()["data"]
    assert entry["status"] == "scheduled"
    return request_id, entry["id"]


def test_an_attestation_completes_the_request_and_the_trail_names_officer_and_key(by_hand: Api) -> None:
    mara = by_hand.officer("mara")
    request_id, entry_id = waiting_entry(by_hand)
    answer = by_hand.post_to(f"/entries/{entry_id}/attest", REASON, token=by_hand.officers_key(mara))
    assert answer.status_code == 200
    assert (answer.get_json()["status"], answer.get_json()["evidence"]) == ("succeeded", "attested")
    assert status_of(by_hand, request_id) == "completed"
    (event,) = events(by_hand, "STEP_ATTESTED")
    assert event.actor == f"officer:{mara.id}"
    assert UUID(event.payload["api_key_id"])


def test_a_read_back_that_found_the_data_can_be_attested(trusted_api: Api) -> None:
    api = trusted_api
    vendor = VerifyingRecordingResolver(absent=lambda _: False)
    api.runtime.__dict__["registry"] = ResolverRegistry([Registered("crm", "crm_contact", vendor)])
    request_id = sent(api)
    asyncio.run(api.runtime.runner().run_once())
    (entry,) = api.get(f"/api/v1/requests/{request_id}/entries").get_json()["data"]
    token = api.officers_key(api.officer("mara"))
    assert api.post_to(f"/entries/{entry['id']}/attest", REASON, token=token).status_code == 200
    assert status_of(api, request_id) == "completed"
    (event,) = events(api, "ERASURE_READ_BACK_ATTESTED")
    assert UUID(event.payload["api_key_id"])


def test_only_the_scope_attests(by_hand: Api) -> None:
    _, entry_id = waiting_entry(by_hand)
    mara = by_hand.officer("mara")
    for token in (by_hand.token, by_hand.officers_key(mara, "decide:approve")):
        answer = by_hand.post_to(f"/entries/{entry_id}/attest", REASON, token=token)
        assert by_hand.problem(answer)[:2] == (403, "forbidden")


def test_what_is_done_is_attested_once(by_hand: Api) -> None:
    _, entry_id = waiting_entry(by_hand)
    token = by_hand.officers_key(by_hand.officer("mara"))
    path = f"/entries/{entry_id}/attest"
    assert [by_hand.post_to(path, REASON, token=token).status_code for _ in range(2)] == [200, 409]


@pytest.mark.parametrize("entry_id", ["nonsense", "%00", "00000000-0000-7000-8000-000000000000"])
def test_a_call_that_is_not_there_is_404(api: Api, entry_id: str) -> None:
    token = api.officers_key(api.officer("mara"))
    assert api.post_to(f"/entries/{entry_id}/attest", REASON, token=token).status_code == 404


def test_an_auditor_has_no_key_that_decides(api: Api) -> None:
    with pytest.raises(Refused) as refused:
        api.officers_key(api.officer("ada", Role.AUDITOR))
    assert [each.where for each in refused.value.problems] == ["officer_id"]
