"""Keys over the API, as an attacker who has one would use them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from effaced.accounts.officers import deactivate_officer
from effaced.accounts.scopes import Scope
from effaced.accounts.tables import ApiKey, Officer
from effaced.audit.tables import AuditEvent
from effaced.model import Role

Api = Any
KEYS, REQUESTS = "keys:write", "requests:write"
NOBODY = "00000000-0000-7000-8000-000000000000"


def problem_codes(answer: Any) -> dict[str, str]:
    return {each["field"]: each["code"] for each in answer.get_json()["errors"]}


def id_of(api: Api, token: str) -> str:
    return str(api.get("/api/v1/me", token=token).get_json()["id"])


@pytest.fixture
def manager(api: Api) -> str:
    """A key that manages keys and sends requests, which need an approval."""
    return str(api.new_key("manager", scopes=(KEYS, REQUESTS)))


# --- who calls ---


def test_every_key_may_ask_who_it_is(api: Api) -> None:
    mara = api.officer("mara")
    token = api.officers_key(mara, "decide:approve", metadata_keys=["ticket"])
    me = api.get("/api/v1/me", token=token).get_json()
    assert me["officer"] == {"id": str(mara.id), "name": "mara", "role": "officer"}
    assert me["scopes"] == ["decide:read", "decide:approve"]
    assert (me["sandbox"], me["approvals_needed"], me["metadata_keys"]) == (False, 1, ["ticket"])
    assert me["calls_per_minute"] == 600
    sandbox = api.new_key("trial", sandbox=True)
    assert api.get("/api/v1/me", token=sandbox).get_json()["sandbox"] is True


def test_a_key_stops_with_its_officer(api: Api) -> None:
    mara = api.officer("mara")
    token = api.officers_key(mara)
    assert api.get("/api/v1/me", token=token).status_code == 200
    with api.runtime.db.begin() as session:
        deactivate_officer(session, session.get_one(Officer, mara.id), actor="cli")
    assert api.problem(api.get("/api/v1/me", token=token))[:2] == (401, "unauthenticated")


def test_a_key_stops_when_its_officer_becomes_an_auditor(api: Api) -> None:
    mara = api.officer("mara")
    token = api.officers_key(mara)
    with api.runtime.db.begin() as session:
        session.get_one(Officer, mara.id).role = Role.AUDITOR
    assert api.get("/api/v1/me", token=token).status_code == 401


# --- creating ---


def test_a_key_is_created_and_its_token_works_once_shown(api: Api, manager: str) -> None:
    body = {"name": "web shop", "scopes": ["requests:read"], "metadata_keys": ["ticket"]}
    answer = api.post_to("/keys", body, token=manager)
    assert answer.status_code == 201
    created = answer.get_json()
    assert created["scopes"] == ["requests:read"]
    shown = api.get(answer.headers["Location"], token=manager).get_json()
    assert shown == {name: value for name, value in created.items() if name != "token"}
    assert api.get("/api/v1/me", token=created["token"]).get_json()["id"] == created["id"]
    with api.runtime.db.read() as session:
        query = select(AuditEvent).where(AuditEvent.type == "API_KEY_CREATED").order_by(AuditEvent.id.desc())
        event = session.scalars(query).first()
    assert event is not None
    assert event.actor == f"api_key:{id_of(api, manager)}"
    assert event.payload["api_key_id"] == created["id"]


def test_a_repeated_call_creates_no_second_key_and_shows_no_token(api: Api, manager: str) -> None:
    first, second = (
        api.post_to("/keys", {"name": "web shop"}, token=manager, Idempotency_Key="one") for _ in range(2)
    )
    assert first.get_json()["token"].startswith("eff_")
    assert second.headers["Idempotent-Replay"] == "true"
    assert second.get_json() == {**first.get_json(), "token": None}
    assert first.get_json()["token"] not in api.everything()


@pytest.mark.parametrize("scope", sorted(set(Scope) - {"keys:read", "keys:write", "requests:read", REQUESTS}))
def test_no_scope_is_handed_out_that_the_calling_key_lacks(api: Api, manager: str, scope: str) -> None:
    before = api.rows()
    answer = api.post_to("/keys", {"name": "more", "scopes": [REQUESTS, scope]}, token=manager)
    assert answer.status_code == 422
    assert problem_codes(answer)["scopes"] == "beyond_own_rights"
    assert api.rows() == before


def test_a_key_that_reads_hands_out_nothing_that_writes(api: Api) -> None:
    token = api.new_key("reader", scopes=(KEYS, "requests:read", "operate:read"))
    for scope in ("requests:write", "operate:write"):
        answer = api.post_to("/keys", {"name": scope, "scopes": [scope]}, token=token)
        assert problem_codes(answer) == {"scopes": "beyond_own_rights"}
    assert api.post_to("/keys", {"name": "fine", "scopes": ["operate:read"]}, token=token).status_code == 201


def test_no_key_needs_fewer_approvals_than_the_one_that_creates_it(api: Api, manager: str) -> None:
    answer = api.post_to("/keys", {"name": "at once", "approvals_needed": 0}, token=manager)
    assert problem_codes(answer) == {"approvals_needed": "beyond_own_rights"}
    trusted = api.new_key("trusted", approvals_needed=0, scopes=(KEYS, REQUESTS))
    assert api.post_to("/keys", {"name": "at once", "approvals_needed": 0}, token=trusted).status_code == 201
    # Nor by way of a key between that needs more.
    careful = api.post_to("/keys", {"name": "careful", "scopes": [KEYS, REQUESTS]}, token=trusted).get_json()
    answer = api.post_to("/keys", {"name": "again", "approvals_needed": 0}, token=careful["token"])
    assert problem_codes(answer) == {"approvals_needed": "beyond_own_rights"}


def test_no_key_is_created_for_another_officer(api: Api, manager: str) -> None:
    mara, olga = api.officer("mara"), api.officer("olga")
    maras = api.officers_key(mara, "decide:approve", KEYS)
    body = {"name": "more", "scopes": ["decide:approve"], "officer_id": str(olga.id)}
    assert problem_codes(api.post_to("/keys", body, token=maras)) == {"officer_id": "beyond_own_rights"}
    answer = api.post_to("/keys", {**body, "scopes": [REQUESTS]}, token=manager)
    assert problem_codes(answer)["officer_id"] == "beyond_own_rights"


def test_a_key_of_an_officer_creates_keys_of_the_same_officer_only(api: Api) -> None:
    """Else the officer could send with one key what they approve with the other."""
    mara = api.officer("mara")
    token = api.officers_key(mara, "decide:approve", KEYS, REQUESTS)
    answer = api.post_to("/keys", {"name": "plain", "scopes": [REQUESTS]}, token=token)
    assert problem_codes(answer) == {"scopes": "missing"}
    created = api.post_to("/keys", {"name": "sends", "scopes": [REQUESTS, "decide:read"]}, token=token)
    assert created.get_json()["officer_id"] == str(mara.id)
    sent = api.post(api.erasure(), token=created.get_json()["token"]).get_json()
    answer = api.post_to(f"/requests/{sent['id']}/approve", {"reason": "mine"}, token=token)
    assert answer.status_code == 422
    assert "You entered this request" in answer.get_json()["detail"]


def test_a_sandbox_key_gets_no_other_scope_and_creates_nothing(api: Api, manager: str) -> None:
    answer = api.post_to("/keys", {"name": "s", "scopes": [KEYS], "sandbox": True}, token=manager)
    assert problem_codes(answer) == {"scopes": "not_allowed"}
    created = api.post_to("/keys", {"name": "s", "sandbox": True}, token=manager).get_json()
    assert created["sandbox"] is True
    answer = api.post_to("/keys", {"name": "live"}, token=created["token"])
    assert api.problem(answer)[:2] == (403, "forbidden")


def test_a_key_that_sends_requests_creates_none(api: Api) -> None:
    for path, body in (("/keys", {"name": "x"}), (f"/keys/{api.key.id}/revoke", None)):
        assert api.problem(api.post_to(path, body))[:2] == (403, "forbidden")
    for path in ("/api/v1/keys", f"/api/v1/keys/{api.key.id}"):
        assert api.get(path).status_code == 403


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "shop"}, "name"),  # is taken
        ({"name": " " * 3}, "name"),
        ({"name": "\u202e"}, "name"),
        ({"name": "x", "approvals_needed": True}, "approvals_needed"),
        ({"name": "x", "approvals_needed": 2}, "approvals_needed"),
        ({"name": "x", "approvals_needed": -(2**70)}, "approvals_needed"),
        ({"name": "x", "scopes": []}, "scopes"),
        ({"name": "x", "scopes": ["*"]}, "scopes.0"),
        ({"name": "x", "scopes": "keys:write"}, "scopes"),
        ({"name": "x", "officer_id": "1"}, "officer_id"),
        ({"name": "x", "officer_id": NOBODY}, "officer_id"),
        ({"name": "x", "sandbox": "yes"}, "sandbox"),
        ({"name": "x", "metadata_keys": ["Ticket"]}, "metadata_keys.0"),
        ({"name": "x", "metadata_keys": ["ticket\n"]}, "metadata_keys.0"),
        ({"name": "x", "metadata_keys": [f"k{n}" for n in range(11)]}, "metadata_keys"),
        ({"name": "x", "token": "eff_mine"}, "token"),
    ],
)
def test_a_wrong_key_is_refused_by_field_and_nothing_is_made(
    api: Api, manager: str, body: dict[str, Any], field: str
) -> None:
    before = api.rows()
    answer = api.post_to("/keys", body, token=manager)
    assert answer.status_code in (409, 422)
    assert field in problem_codes(answer)
    assert api.rows() == before


# --- revoking ---


def test_a_key_revokes_what_can_do_no_more(api: Api, manager: str) -> None:
    other = api.new_key("other")
    answer = api.post_to(f"/keys/{id_of(api, other)}/revoke", token=manager)
    assert answer.status_code == 200
    assert answer.get_json()["revoked_at"] is not None
    assert api.get("/api/v1/me", token=other).status_code == 401
    again = api.post_to(f"/keys/{answer.get_json()['id']}/revoke", token=manager)
    assert again.status_code == 409


def test_a_key_revokes_nothing_that_can_do_more(api: Api, manager: str) -> None:
    mara = api.officer("mara")
    stronger = [api.new_key("operator", scopes=("operate:write",)), api.officers_key(mara)]
    for token in stronger:
        answer = api.post_to(f"/keys/{id_of(api, token)}/revoke", token=manager)
        assert problem_codes(answer) == {"key_id": "beyond_own_rights"}
        assert api.get("/api/v1/me", token=token).status_code == 200


def test_a_key_of_one_officer_revokes_none_of_another(api: Api) -> None:
    maras = api.officers_key(api.officer("mara"), "decide:approve", KEYS)
    olgas = api.officers_key(api.officer("olga"), "decide:approve", KEYS)
    answer = api.post_to(f"/keys/{id_of(api, olgas)}/revoke", token=maras)
    assert problem_codes(answer) == {"key_id": "beyond_own_rights"}


def test_a_key_can_end_itself(api: Api, manager: str) -> None:
    assert api.post_to(f"/keys/{id_of(api, manager)}/revoke", token=manager).status_code == 200
    assert api.post_to("/keys", {"name": "after"}, token=manager).status_code == 401


@pytest.mark.parametrize("key_id", [NOBODY, "shop", "%00", "1" * 500])
def test_a_key_that_is_not_there_is_404(api: Api, manager: str, key_id: str) -> None:
    assert api.get(f"/api/v1/keys/{key_id}", token=manager).status_code == 404
    assert api.post_to(f"/keys/{key_id}/revoke", token=manager).status_code == 404


# --- reading ---


def test_keys_are_listed_in_pages_without_what_makes_them_keys(api: Api, manager: str) -> None:
    for number in range(5):
        api.new_key(f"key {number}")
    names, after = [], ""
    while True:
        page = api.get(f"/api/v1/keys?limit=2{after}", token=manager).get_json()
        names += [each["name"] for each in page["data"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert names == ["shop", "manager", *(f"key {number}" for number in range(5))]
    with api.runtime.db.read() as session:
        hashes = list(session.scalars(select(ApiKey.token_hash)))
    everything = api.get("/api/v1/keys", token=manager).text
    assert not any(each in everything for each in [*hashes, manager])
