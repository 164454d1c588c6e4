"""People by keyed hashes: found by what is known of them, and only by who may know of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from quick_app import make_app
from sqlalchemy import select, text

from effaced.audit.tables import AuditEvent
from effaced.core.crypto import new_key

Api = Any
BY_EMAIL = {"identifier": "email", "value": "p1@example.org"}


@pytest.fixture
def officers(api: Api) -> str:
    """A key that sees everybody's requests."""
    return str(api.officers_key(api.officer("mara"), "decide:read"))


def search(api: Api, body: dict[str, Any], token: str | None = None) -> list[dict[str, Any]]:
    answer = api.post_to("/subjects/search", body, token=token)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.get_json()["data"]
    return found


def history(api: Api, key: str, token: str | None = None) -> list[str]:
    answer = api.get(f"/api/v1/subjects/{key}", token=token)
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.get_json()["data"]]


@pytest.mark.parametrize("body", [{"id": "1"}, BY_EMAIL, {**BY_EMAIL, "value": " P1@EXAMPLE.org "}])
def test_a_person_is_found_by_what_is_known_of_them(api: Api, body: dict[str, str]) -> None:
    sent = [api.post(api.erasure("1")).get_json() for _ in range(2)]
    api.post(api.erasure("2"))
    (found,) = search(api, body)
    assert (found["requests"], found["open"]) == (2, 2)
    assert set(history(api, found["key"])) == {each["id"] for each in sent}


def test_somebody_erased_is_found_as_before(trusted_api: Api) -> None:
    api = trusted_api
    sent = api.post(api.erasure("1")).get_json()
    asyncio.run(api.runtime.runner().run_once())
    for body in ({"id": "1"}, BY_EMAIL):
        (found,) = search(api, body)
        assert (found["requests"], found["open"]) == (1, 0)
        assert history(api, found["key"]) == [sent["id"]]


def test_the_key_filters_the_list_of_requests(api: Api) -> None:
    sent = api.post(api.erasure("1")).get_json()
    api.post(api.erasure("2"))
    (found,) = search(api, {"id": "1"})
    listed = api.get(f"/api/v1/requests?subject_key={found['key']}").get_json()["data"]
    assert [each["id"] for each in listed] == [sent["id"]]
    answer = api.get("/api/v1/requests?subject_key=1")
    assert list(api.problem(answer)[2]) == ["subject_key"]


# --- who may know ---


def test_somebody_unknown_looks_like_somebody_of_another_key(api: Api) -> None:
    other = api.new_key("other")
    api.post(api.erasure("1"))
    (known,) = search(api, {"id": "1"})
    key_id = known["key"].partition(".")[0]
    assert search(api, {"id": "1"}, other) == search(api, {"id": "999"}, other) == []
    assert search(api, BY_EMAIL, other) == []
    theirs, nobodys = (
        api.get(f"/api/v1/subjects/{key}", token=other) for key in (known["key"], f"{key_id}.{'0' * 64}")
    )
    assert (theirs.status_code, nobodys.status_code) == (404, 404)
    assert theirs.get_json()["detail"] == nobodys.get_json()["detail"]


def test_of_a_person_of_two_keys_each_sees_its_own_requests(api: Api, officers: str) -> None:
    other = api.new_key("other")
    mine = api.post(api.erasure("1")).get_json()["id"]
    theirs = api.post(api.erasure("1"), token=other).get_json()["id"]
    for token, sent in ((None, [mine]), (other, [theirs]), (officers, [mine, theirs])):
        (found,) = search(api, {"id": "1"}, token)
        assert found["requests"] == len(sent)
        assert set(history(api, found["key"], token)) == set(sent)


def test_an_officers_key_finds_everybody_and_the_trail_names_the_officer(api: Api, officers: str) -> None:
    api.post(api.erasure("1"))
    assert len(search(api, BY_EMAIL, officers)) == 1
    search(api, {"id": "1"})
    with api.runtime.db.read() as session:
        query = select(AuditEvent).where(AuditEvent.type == "SUBJECT_SEARCHED").order_by(AuditEvent.id)
        first, second = session.scalars(query)
    assert (first.actor.partition(":")[0], second.actor) == ("officer", f"api_key:{api.key.id}")
    assert (first.payload["kind"], first.payload["found"]) == ("email", 1)
    assert first.payload["api_key_id"]
    assert second.payload == {"kind": "subject_id", "found": 1}
    assert "p1@example.org" not in api.everything()


def test_a_key_for_something_else_finds_nobody(api: Api) -> None:
    token = api.new_key("operator", scopes=("operate:write", "audit:read", "keys:write"))
    assert api.post_to("/subjects/search", {"id": "1"}, token=token).status_code == 403
    assert api.get(f"/api/v1/subjects/k1.{'0' * 64}", token=token).status_code == 403


# --- rotation ---


def test_requests_from_before_a_rotation_are_found_too(
    make_api: Any, make_runtime: Any, migrated_url: str
) -> None:
    old, new = new_key("k1"), new_key("k2")
    before = make_api(migrated_url, keys=old)
    first = before.post(before.erasure("1")).get_json()["id"]
    runtime = make_runtime(migrated_url, keys=f"{new},{old}")
    after = type(before)(make_app(runtime), runtime, before.key, before.token)
    with runtime.db.begin() as session:  # so that the next one is no duplicate
        session.execute(text("UPDATE effaced_requests SET closed_at = received_at, status = 'cancelled'"))
    second = after.post(after.erasure("1")).get_json()["id"]
    for body in ({"id": "1"}, BY_EMAIL):
        keys = [each["key"] for each in search(after, body)]
        assert sorted(key.partition(".")[0] for key in keys) == ["k1", "k2"]
        assert {each for key in keys for each in history(after, key)} == {first, second}


# --- wrong ---


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"id"}),
        ({"id": ""}, {"id"}),
        ({"id": 1}, {"id"}),
        ({"id": "a\x00"}, {"id"}),
        ({"id": "1", "identifier": "email"}, {"identifier"}),
        ({"id": "1", "identifier": "email", "value": "x"}, {"identifier", "value"}),
        ({"id": "1", "type": "pet"}, {"type"}),
        ({"identifier": "email"}, {"value"}),
        ({"value": "x"}, {"identifier"}),
        ({"identifier": "email", "value": "x", "type": "customers"}, {"type"}),
        ({"identifier": "shoe", "value": "x"}, {"identifier"}),
        ({"identifier": "subject_id", "value": "1"}, {"identifier"}),
        ({"identifier": "confirmed:x", "value": "1"}, {"identifier"}),
        ({"identifier": "email", "value": "x" * 321}, {"value"}),
        ({"email": "p1@example.org"}, {"email"}),
    ],
)
def test_a_wrong_search_is_refused_by_field(api: Api, body: dict[str, Any], fields: set[str]) -> None:
    answer = api.post_to("/subjects/search", body)
    assert answer.status_code == 422
    assert set(api.problem(answer)[2]) == fields
    assert "p1@example.org" not in answer.text


@pytest.mark.parametrize("key", ["1", "k1.", "k1.xyz", f"k1.{'0' * 63}", "%00", "k1." + "A" * 64, "a" * 5000])
def test_what_is_no_key_is_404(api: Api, key: str) -> None:
    assert api.get(f"/api/v1/subjects/{key}").status_code == 404


@pytest.mark.parametrize("person", ["9" * 256, "-1", "1e9", "'; --", "\u202e", "{{7*7}}", "1|2"])
def test_an_id_that_nobody_can_have_is_nobody(api: Api, person: str) -> None:
    assert search(api, {"id": person}) == []


def test_a_history_comes_in_pages(api: Api) -> None:
    sent = [api.post(api.erasure("1")).get_json()["id"] for _ in range(5)]
    (found,) = search(api, {"id": "1"})
    seen, after = [], ""
    while True:
        page = api.get(f"/api/v1/subjects/{found['key']}?limit=2{after}").get_json()
        assert page["key"] == found["key"]
        seen += [each["id"] for each in page["data"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert sorted(seen) == sorted(sent)
