"""Metadata of requests: declared per key, found by, shown to officers, and erased at every closure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, text

from effaced.deadletters.tables import DeadLetter
from effaced.model import CLOSED, RequestStatus
from effaced.requests.status import TRANSITIONS, Who, transition, transition_many
from effaced.requests.tables import IdempotentAnswer, Request
from effaced.triage.subject_changed import cancel_for_changed_subject

Api = Any
TICKET = {"ticket": "T-4711"}


@pytest.fixture
def careful(api: Api) -> str:
    """Its requests need an approval."""
    return str(api.new_key("careful", metadata_keys=["ticket", "order"]))


@pytest.fixture
def trusted(api: Api) -> str:
    """Its requests are executed at once."""
    return str(api.new_key("trusted", approvals_needed=0, metadata_keys=["ticket"]))


def send(api: Api, token: str, subject_id: str = "1", **more: Any) -> str:
    answer = api.post(api.erasure(subject_id, metadata=TICKET, **more), token=token)
    assert answer.status_code in (200, 201), answer.text
    assert answer.get_json()["metadata"] == TICKET
    return str(answer.get_json()["id"])


def correct(api: Api, token: str, subject_id: str = "1", **corrections: str) -> str:
    body = {**api.rectification(subject_id, **corrections), "metadata": TICKET}
    answer = api.post(body, token=token)
    assert answer.status_code == 201, answer.text
    return str(answer.get_json()["id"])


def request_of(api: Api, request_id: str) -> Request:
    with api.runtime.db.read() as session:
        return session.get_one(Request, UUID(request_id))


def run_calls(api: Api) -> None:
    asyncio.run(api.runtime.runner().run_once())


def test_metadata_is_shown_while_the_request_is_open(api: Api, careful: str) -> None:
    request_id = send(api, careful)
    assert api.get(f"/api/v1/requests/{request_id}", token=careful).get_json()["metadata"] == TICKET


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"phone": "1"}, "metadata.phone"),
        ({"ticket": ""}, "metadata.ticket"),
        ({"ticket": "a b"}, "metadata.ticket"),
        ({"ticket": "a@b.example"}, "metadata.ticket"),
        ({"ticket": "x" * 65}, "metadata.ticket"),
        ({"ticket": "T-1\n"}, "metadata.ticket"),
        ({"ticket": "ä"}, "metadata.ticket"),
        ({"ticket": 1}, "metadata.ticket"),
        ({"ticket": None}, "metadata.ticket"),
        ({"ticket": {"a": "b"}}, "metadata.ticket"),
        ({f"k{n}": "x" for n in range(11)}, "metadata"),
        ("ticket", "metadata"),
    ],
)
def test_what_is_not_declared_or_no_plain_reference_is_refused(
    api: Api, careful: str, metadata: Any, field: str
) -> None:
    before = api.rows()
    answer = api.post(api.erasure(metadata=metadata), token=careful)
    assert field in api.problem(answer)[2]
    assert api.rows() == before


def test_a_key_that_declares_nothing_attaches_nothing(api: Api) -> None:
    assert api.problem(api.post(api.erasure(metadata=TICKET)))[0] == 422
    assert api.post(api.erasure(metadata={})).status_code == 201


def test_requests_are_found_by_metadata(api: Api, careful: str) -> None:
    wanted = send(api, careful, "1")
    body = api.erasure("2", metadata={"ticket": "T-4712", "order": "T-4711"})
    api.post(body, token=careful)
    path = "/api/v1/requests?metadata_key=ticket&metadata_value=T-4711"
    assert [each["id"] for each in api.get(path, token=careful).get_json()["data"]] == [wanted]
    assert api.get(path).get_json()["data"] == []  # another key's
    officers = api.officers_key(api.officer("mara"), "decide:read")
    assert [each["id"] for each in api.get(path, token=officers).get_json()["data"]] == [wanted]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("metadata_key=ticket", "metadata_value"),
        ("metadata_value=x", "metadata_key"),
        ("metadata_key=a.b&metadata_value=x", "metadata_key"),
        ("metadata_key=ticket&metadata_value='", "metadata_value"),
        ('metadata_key=a"]&metadata_value=x', "metadata_key"),
    ],
)
def test_a_wrong_filter_is_refused_by_name(api: Api, query: str, field: str) -> None:
    assert field in api.problem(api.get(f"/api/v1/requests?{query}"))[2]


# --- erased at every closure ---


def completed(api: Api, careful: str, trusted: str) -> list[str]:
    request_id = send(api, trusted)
    run_calls(api)
    return [request_id]


def completed_without_calls(api: Api, careful: str, trusted: str) -> list[str]:
    with api.runtime.db.begin() as session:
        session.execute(text("UPDATE customers SET crm_ref = NULL"))
    return [send(api, trusted)]


def completed_with_its_original(api: Api, careful: str, trusted: str) -> list[str]:
    original, duplicate = send(api, careful), send(api, trusted)
    with api.runtime.db.begin() as session:
        assert session.get_one(Request, UUID(duplicate)).duplicate_of == UUID(original)
    token = api.officers_key(api.officer("mara"))
    assert api.post_to(f"/requests/{original}/approve", {"reason": "x"}, token=token).status_code == 200
    run_calls(api)
    return [original, duplicate]


def superseded_by_an_erasure(api: Api, careful: str, trusted: str) -> list[str]:
    correction = correct(api, careful, email="new@example.org")
    send(api, trusted)
    return [correction]


def cancelled_for_another_person(api: Api, careful: str, trusted: str) -> list[str]:
    request_id = send(api, careful)
    with api.runtime.db.begin() as session:
        changed = "UPDATE customers SET email = 'else@example.org', crm_ref = 'else' WHERE id = 1"
        session.execute(text(changed))
    mara = api.officer("mara")
    path = f"/requests/{request_id}/approve"
    assert api.post_to(path, {"reason": "x"}, token=api.officers_key(mara)).status_code == 200
    with api.runtime.db.begin() as session:
        letter = session.scalars(select(DeadLetter)).one()
        cancel_for_changed_subject(
            session, api.runtime.keyring, letter.id, actor=f"officer:{mara.id}", reason="somebody else"
        )
    return [request_id]


WAYS: list[Callable[[Api, str, str], list[str]]] = [
    completed,
    completed_without_calls,
    completed_with_its_original,
    superseded_by_an_erasure,
    cancelled_for_another_person,
]


@pytest.mark.parametrize("close", WAYS, ids=lambda way: way.__name__)
def test_no_closed_request_keeps_its_metadata(
    api: Api, careful: str, trusted: str, close: Callable[[Api, str, str], list[str]]
) -> None:
    for request_id in close(api, careful, trusted):
        request = request_of(api, request_id)
        assert (request.status in CLOSED, request.metadata_values) == (True, None)
        assert request.closed_at is not None


def test_no_other_table_keeps_it_either(api: Api, trusted: str) -> None:
    body = api.erasure(metadata=TICKET)
    first = api.post(body, token=trusted, idempotency_key="once")
    run_calls(api)
    assert request_of(api, first.get_json()["id"]).status is RequestStatus.COMPLETED
    assert "T-4711" not in api.everything()
    again = api.post(body, token=trusted, idempotency_key="once")
    assert again.headers["Idempotent-Replay"] == "true"
    assert again.get_json() == {**first.get_json(), "metadata": None}


@pytest.mark.parametrize("line", [each for each in TRANSITIONS if each.target in CLOSED], ids=str)
def test_every_line_of_the_status_table_that_closes_erases_it(api: Api, careful: str, line: Any) -> None:
    request_id = UUID(send(api, careful))
    with api.runtime.db.begin() as session:
        session.get_one(Request, request_id).status = line.source
    with api.runtime.db.begin() as session:
        request = session.get_one(Request, request_id)
        by = "system" if Who.SYSTEM in line.who else "officer:1"
        transition(session, request, line.event, by=by)
        assert request.metadata_values is None
    assert request_of(api, str(request_id)).metadata_values is None
    if Who.SYSTEM not in line.who:
        return
    with api.runtime.db.begin() as session:
        request = session.get_one(Request, request_id)
        request.status, request.metadata_values = line.source, TICKET
    with api.runtime.db.begin() as session:
        session.execute(transition_many(line.event).where(Request.__table__.c.id == request_id))
    assert request_of(api, str(request_id)).metadata_values is None


def test_the_stored_answer_of_an_approval_does_not_have_it(api: Api, careful: str) -> None:
    sent = api.post(api.erasure(metadata=TICKET), token=careful).get_json()
    officers = api.officers_key(api.officer("mara"))
    path = f"/requests/{sent['id']}/approve"
    first, again = (
        api.post_to(path, {"reason": "checked"}, token=officers, Idempotency_Key="one") for _ in range(2)
    )
    assert (first.status_code, first.get_json()["metadata"]) == (200, TICKET)
    assert (again.headers["Idempotent-Replay"], again.get_json()["metadata"]) == ("true", None)
    with api.runtime.db.read() as session:
        assert TICKET["ticket"] not in repr(list(session.scalars(select(IdempotentAnswer.answer))))
