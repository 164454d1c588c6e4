from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from quick_app import make_app
from sqlalchemy import select

from effaced.accounts.tables import ApiKey
from effaced.audit.tables import AuditEvent, Note
from effaced.core import clock
from effaced.core.crypto import new_key
from effaced.model import RequestStatus
from effaced.requests.tables import Request

Api = Any  # the class lives in conftest.py, which is not a module to import from


# --- taken in ---


def test_a_request_is_taken_in(api: Api) -> None:
    with clock.pretend(datetime(2026, 3, 2, 9, 30, tzinfo=UTC)):
        answer = api.post(api.erasure("4"))
    body = answer.get_json()
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"/api/v1/requests/{body['id']}"
    assert re.fullmatch(r"ER-\w{4}-\w{4}", body.pop("ref"))
    assert body.pop("due_at").startswith("2026-04-02T")
    assert body == {
        "id": body["id"],
        "kind": "erasure",
        "status": "review",
        "state": "review",
        "received_at": "2026-03-02T09:30:00.000Z",
        "executed_at": None,
        "completed_at": None,
        "closed_at": None,
        "corrections": [],
        "metadata": {},
        "steps": {"total": 0, "done": 0},
        "unverified": 0,
        "evidence": None,
        "verification": None,
        "progress": None,
        "duplicate_of": None,
        "plan": None,
        "retry": None,
        "sandbox": False,
        "entries": None,
        "events": None,
        "links": {"self": f"/api/v1/requests/{body['id']}"},
    }


def test_the_request_is_the_key_s_and_the_reason_a_sealed_note(api: Api) -> None:
    request_id = api.post(api.erasure(reason="called on Monday")).get_json()["id"]
    with api.runtime.db.read() as session:
        stored = session.scalars(select(Request)).one()
        note = session.scalars(select(Note)).one()
    assert (str(stored.id), stored.api_key_id) == (request_id, api.key.id)
    assert note.request_id == stored.id
    assert b"Monday" not in (note.text_sealed or b"")


def test_without_approvals_the_request_is_executed_before_the_answer(trusted_api: Api) -> None:
    answer = trusted_api.post(trusted_api.erasure("4"))
    assert (answer.status_code, answer.get_json()["status"]) == (201, "approved")
    rows = trusted_api.rows()
    assert (rows["customers"], rows["effaced_outbox"]) == (5, 1)
    assert trusted_api.get(answer.headers["Location"]).get_json()["status"] == "running"


def test_a_request_that_waits_for_approval_changes_nothing_of_the_company_s(api: Api) -> None:
    api.post(api.erasure("4"))
    rows = api.rows()
    assert (rows["customers"], rows["effaced_outbox"]) == (6, 0)


def test_a_second_request_of_one_key_for_one_person_is_a_duplicate_of_the_first(api: Api) -> None:
    first = api.post(api.erasure("4")).get_json()
    second = api.post(api.erasure("4"))
    body = second.get_json()
    assert (second.status_code, second.headers["Location"]) == (200, body["links"]["self"])
    assert (body["duplicate_of"], body["status"]) == (first["id"], "received")
    assert body["id"] != first["id"]
    assert body["ref"] != first["ref"]
    assert api.get(body["links"]["self"]).get_json()["duplicate_of"] == first["id"]
    assert api.get(first["links"]["self"]).get_json()["duplicate_of"] is None


def test_another_key_learns_nothing_of_the_request_that_its_own_is_a_duplicate_of(api: Api) -> None:
    other = api.new_key("crm")
    first = api.post(api.erasure("4")).get_json()
    second = api.post(api.erasure("4"), token=other)
    where = second.headers["Location"]
    assert second.status_code == 201
    assert second.get_json()["duplicate_of"] is None
    every = ("", "?expand=entries&expand=events", "/entries", "/events", "/attempts")
    for answer in (second, *(api.get(f"{where}{more}", token=other) for more in every)):
        assert first["id"] not in answer.text
        assert first["ref"] not in answer.text
    for answer in [api.get(f"{first['links']['self']}{more}") for more in every]:
        assert answer.status_code == 200
        assert second.get_json()["id"] not in answer.text
        assert second.get_json()["ref"] not in answer.text


def test_the_log_does_not_tell_the_person(api: Api, logs: list[Any]) -> None:
    api.post(api.erasure("4", reason="I am p4@example.org"), idempotency_key="p4@example.org")
    api.post(api.erasure("p4@example.org"))
    api.post({"p4@example.org": 1})
    api.get("/api/v1/requests/p4@example.org")
    assert len([entry for entry in logs if entry["event"] == "web_request"]) == 4
    assert "p4" not in str(logs)


def test_the_answer_does_not_tell_the_person(api: Api) -> None:
    answer = api.post(api.erasure("4", reason="I am p4@example.org"))
    assert "p4" not in answer.text
    assert "p4" not in api.get(answer.headers["Location"]).text


# --- who may ---


@pytest.mark.parametrize(
    ("header", "error"),
    [
        (None, False),
        ("", False),
        ("Bearer", False),
        ("Basic c2hvcDpzaG9w", False),
        ("Bearer nonsense", True),
        (f"Bearer eff_aaaaaaaa_{'a' * 32}", True),
        ("Bearer \xe9", True),
    ],
)
def test_without_a_valid_key_nobody_gets_in(
    make_api: Callable[..., Api], migrated_sqlite_url: str, header: str | None, error: bool
) -> None:
    api = make_api(migrated_sqlite_url)
    before = api.rows()
    headers = {} if header is None else {"Authorization": header}
    client = api.app.test_client()
    for answer in (
        client.post("/api/v1/requests", json=api.erasure(), headers=headers),
        client.get("/api/v1/requests/x", headers=headers),
    ):
        assert api.problem(answer) == (401, "unauthenticated", {})
        challenge = answer.headers["WWW-Authenticate"]
        assert challenge.startswith('Bearer realm="effaced"')
        assert ("invalid_token" in challenge) is error
    assert api.rows() == before


def test_a_revoked_key_does_not_get_in(api: Api) -> None:
    with api.runtime.db.begin() as session:
        session.get_one(ApiKey, api.key.id).revoked_at = clock.now()
    assert api.post(api.erasure()).status_code == 401


def test_using_a_key_is_noted(api: Api) -> None:
    at = datetime(2026, 3, 2, tzinfo=UTC)
    with clock.pretend(at):
        api.get("/api/v1/requests/x")
    with api.runtime.db.read() as session:
        assert session.get_one(ApiKey, api.key.id).last_used_at == at


# --- what is refused changes nothing ---


def test_an_unknown_person_is_refused_without_repeating_who(api: Api) -> None:
    before = api.rows()
    for unknown in ("4711", "4.0", "04", "abc", "9" * 30, "-1", " 4", "é"):
        answer = api.post(api.erasure(unknown))
        assert api.problem(answer) == (422, "refused", {"subject.id": "no such person in table customers"})
        assert unknown == "4.0" or f'"{unknown}"' not in answer.text
    assert api.rows() == before


@pytest.mark.parametrize(
    ("data", "content_type", "status", "slug"),
    [
        (b"{", "application/json", 400, "malformed-json"),
        (b"", "application/json", 400, "malformed-json"),
        (b"kind=erasure", "application/x-www-form-urlencoded", 415, "unsupported-media-type"),
        (b"[]", "application/json", 422, "refused"),
        (b" " * 2_000_000, "application/json", 413, "body-too-large"),
    ],
)
def test_a_body_that_is_none_changes_nothing(
    make_api: Callable[..., Api],
    migrated_sqlite_url: str,
    data: bytes,
    content_type: str,
    status: int,
    slug: str,
) -> None:
    api = make_api(migrated_sqlite_url)
    before = api.rows()
    assert api.problem(api.send(data, content_type))[:2] == (status, slug)
    assert api.rows() == before


def test_a_body_may_be_as_large_as_the_settings_say(
    make_api: Callable[..., Api], migrated_sqlite_url: str
) -> None:
    api = make_api(migrated_sqlite_url, max_body_bytes=2_048)
    body = b'{"kind": "erasure", "subject": {"id": "1"}}'
    assert api.send(body.ljust(2_048)).status_code == 201
    assert api.send(body.ljust(2_049)).status_code == 413


def test_an_empty_reason_is_refused_by_name(api: Api) -> None:
    before = api.rows()
    assert api.problem(api.post(api.erasure(reason="  ")))[2] == {"reason": "is missing"}
    assert api.rows() == before


def test_an_error_carries_the_id_under_which_the_log_has_it(api: Api, logs: list[Any]) -> None:
    answer = api.app.test_client().post("/api/v1/requests", headers={"X-Trace-Id": "from-the-proxy"})
    assert answer.get_json()["trace_id"] == answer.headers["X-Trace-Id"] == "from-the-proxy"
    assert [entry["event"] for entry in logs] == ["web_request"]
    assert "request_id" not in answer.get_json()


@pytest.mark.parametrize("given", ["", "short", "x" * 65, "a b c d e f", "ada@example.org"])
def test_a_trace_id_that_can_not_be_used_is_replaced(api: Api, given: str) -> None:
    answer = api.app.test_client().post("/api/v1/requests", headers={"X-Trace-Id": given})
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Trace-Id"])


def test_a_field_of_a_policy_whose_name_may_be_personal_is_not_repeated(api: Api) -> None:
    answer = api.post(api.erasure(retry={"ada@example.org": 1}))
    assert api.problem(answer)[2] == {"retry.(unprintable)": "has characters that are not allowed here"}
    assert "ada" not in answer.text


# --- Idempotency-Key ---


def test_the_same_call_again_gets_the_same_answer_and_has_no_effect(api: Api) -> None:
    first = api.post(api.erasure("4"), idempotency_key="a-1")
    before = api.rows()
    again = api.post(api.erasure("4"), idempotency_key="a-1")
    assert (again.status_code, again.text) == (201, first.text)
    assert again.headers["Location"] == first.headers["Location"]
    assert (first.headers.get("Idempotent-Replay"), again.headers["Idempotent-Replay"]) == (None, "true")
    assert api.rows() == before


def test_a_replay_stays_what_it_was_when_the_request_moves_on(trusted_api: Api) -> None:
    first = trusted_api.post(trusted_api.erasure("4"), idempotency_key="a-1")
    with trusted_api.runtime.db.begin() as session:
        session.scalars(select(Request)).one().status = RequestStatus.COMPLETED
    assert trusted_api.post(trusted_api.erasure("4"), idempotency_key="a-1").text == first.text


def test_the_answer_about_a_duplicate_is_replayed_too(api: Api) -> None:
    api.post(api.erasure("4"))
    first = api.post(api.erasure("4"), idempotency_key="a-1")
    again = api.post(api.erasure("4"), idempotency_key="a-1")
    assert (again.status_code, again.text) == (200, first.text)
    assert api.rows()["effaced_requests"] == 2
    with api.runtime.db.read() as session:
        repeated = session.scalars(select(AuditEvent).where(AuditEvent.type == "REQUEST_REPEATED")).all()
    assert len(repeated) == 1


def test_blanks_in_the_body_do_not_make_it_another(api: Api) -> None:
    headers = {**api.headers(), "Idempotency-Key": "a-1"}
    sent = [b'{"kind":"erasure","subject":{"id":"4"}}', b' {"subject": {"id": "4"}, "kind": "erasure"}']
    answers = [
        api.app.test_client().post(
            "/api/v1/requests", data=data, content_type="application/json", headers=headers
        )
        for data in sent
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].text == answers[1].text


def test_the_same_key_with_another_body_is_a_conflict(api: Api) -> None:
    api.post(api.erasure("4"), idempotency_key="a-1")
    before = api.rows()
    assert api.problem(api.post(api.erasure("5"), idempotency_key="a-1")) == (
        409,
        "idempotency-key-reused",
        {},
    )
    assert api.rows() == before


def test_two_callers_may_use_one_word_as_key(api: Api) -> None:
    other = api.new_key("crm")
    assert api.post(api.erasure("4"), idempotency_key="a-1").status_code == 201
    assert api.post(api.erasure("5"), idempotency_key="a-1", token=other).status_code == 201


def test_a_refused_call_leaves_its_key_free(api: Api) -> None:
    assert api.post(api.erasure("4711"), idempotency_key="a-1").status_code == 422
    assert api.post(api.erasure("4"), idempotency_key="a-1").status_code == 201


def test_a_call_is_recognised_after_the_keys_were_rotated(
    make_api: Callable[..., Api], make_runtime: Callable[..., Any], migrated_sqlite_url: str
) -> None:

    old = new_key("k1")
    api = make_api(migrated_sqlite_url, keys=old)
    first = api.post(api.erasure("4"), idempotency_key="a-1")
    rotated = make_app(make_runtime(migrated_sqlite_url, keys=f"{new_key('k2')},{old}"))
    headers = {**api.headers(), "Idempotency-Key": "a-1"}
    again = rotated.test_client().post("/api/v1/requests", json=api.erasure("4"), headers=headers)
    assert (again.status_code, again.text) == (201, first.text)


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 201, "\xe9", "a\tb"])
def test_a_key_that_is_none_is_refused_by_name(
    make_api: Callable[..., Api], migrated_sqlite_url: str, key: str
) -> None:
    api = make_api(migrated_sqlite_url)
    before = api.rows()
    said = {"Idempotency-Key": "must have 1 to 200 visible ASCII characters"}
    assert api.problem(api.post(api.erasure(), idempotency_key=key)) == (422, "refused", said)
    assert api.rows() == before


def test_neither_key_nor_body_are_kept_readable(api: Api) -> None:
    api.post(api.erasure("4"), idempotency_key="ada@example.org")
    with api.runtime.db.read() as session:
        row = session.connection().exec_driver_sql("SELECT * FROM effaced_idempotency").one()
    assert "ada@" not in str(row)


def test_a_name_that_is_there_twice_is_refused_and_nobody_is_erased(api: Api) -> None:
    """JSON would let the last one win."""
    answer = api.send(b'{"kind": "erasure", "subject": {"id": "1"}, "subject": {"id": "2"}}')
    assert api.problem(answer) == (422, "refused", {"subject": "is there twice"})
    assert api.rows()["effaced_requests"] == 0
