"""Two API keys ask for one person: neither is told of the other."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from effaced.accounts.tables import ApiKey
from effaced.audit.events import RequestCancelled
from effaced.audit.tables import AuditEvent
from effaced.model import RequestStatus, new_id
from effaced.requests.close import close_unexecuted
from effaced.requests.complete import complete_operations
from effaced.requests.status import RequestEvent, transition
from effaced.requests.tables import Request
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner

from .conftest import Api


def seen(api: Api, request: dict[str, Any], token: str | None = None) -> tuple[str, list[str]]:
    """The status of a request and the types of its events, which both routes must agree on."""
    shown = api.whole(request["links"]["self"], token=token)
    assert api.trail(request, token=token) == shown["events"]
    return shown["status"], [each["type"] for each in shown["events"]]


def key_id(api: Api, name: str) -> str:
    with api.runtime.db.read() as session:
        return str(session.scalar(select(ApiKey.id).where(ApiKey.name == name)))


@pytest.mark.parametrize("approvals", [0, 1])
def test_a_duplicate_of_another_key_s_request_looks_as_if_nobody_else_had_asked(
    api: Api, approvals: int
) -> None:
    other = api.new_key("crm", approvals)
    api.post(api.erasure("4"))
    answer = api.post(api.erasure("4"), token=other)
    expected = "review" if approvals else "approved"
    assert (answer.status_code, answer.get_json()["status"]) == (201, expected)
    assert seen(api, answer.get_json(), other) == (expected, ["REQUEST_RECEIVED"])


def test_the_key_that_asked_first_is_not_told_that_another_one_asked_too(api: Api) -> None:
    other = api.new_key("crm")
    first = api.post(api.erasure("4")).get_json()
    api.post(api.erasure("4"), token=other)
    assert seen(api, first) == ("review", ["REQUEST_RECEIVED"])
    assert key_id(api, "crm") not in str(api.trail(first))


def test_a_key_is_told_that_it_asked_twice_itself(api: Api) -> None:
    first, second = (api.post(api.erasure("4")).get_json() for _ in range(2))
    api.post(api.erasure("4"), token=api.new_key("crm"))
    assert seen(api, first) == ("review", ["REQUEST_RECEIVED", "REQUEST_REPEATED"])
    assert seen(api, second) == ("received", ["REQUEST_RECEIVED", "REQUEST_DUPLICATE"])


def test_the_duplicate_runs_and_completes_with_the_other_key_s_request_without_saying_so(api: Api) -> None:
    other = api.new_key("crm")
    first = api.post(api.erasure("4")).get_json()
    second = api.post(api.erasure("4"), token=other).get_json()
    with api.runtime.db.begin() as session:
        original = session.get_one(Request, UUID(first["id"]))
        transition(session, original, RequestEvent.APPROVED, by=f"officer:{new_id()}")
        api.runtime.executor.carry_out(session, original)
    assert seen(api, second, other)[0] == "running"
    complete(api, first["id"])
    status, types = seen(api, second, other)
    assert (status, types) == ("completed", ["REQUEST_RECEIVED"])


def test_a_released_duplicate_does_not_say_that_it_was_one(api: Api) -> None:
    other = api.new_key("crm")
    first = api.post(api.erasure("4")).get_json()
    second = api.post(api.erasure("4"), token=other).get_json()
    with api.runtime.db.begin() as session:
        original = session.get_one(Request, UUID(first["id"]))
        close_unexecuted(
            session,
            original,
            RequestEvent.CANCELLED,
            RequestCancelled(),
            resolution="cancelled",
            actor=f"officer:{new_id()}",
        )
    assert seen(api, second, other) == ("review", ["REQUEST_RECEIVED"])


def test_the_trail_itself_still_has_everything_for_officers(api: Api) -> None:
    api.post(api.erasure("4"))
    api.post(api.erasure("4"), token=api.new_key("crm"))
    with api.runtime.db.read() as session:
        types = set(session.scalars(select(AuditEvent.type)))
    assert {"REQUEST_DUPLICATE", "REQUEST_REPEATED"} <= types


def test_a_correction_overtaken_by_another_key_s_erasure_does_not_name_it(api: Api) -> None:
    correction = api.post(api.rectification("4", name="Ann")).get_json()
    trusted = api.new_key("crm", 0)
    erasure = api.post(api.erasure("4"), token=trusted).get_json()
    lines = api.trail(correction)
    assert lines[-1]["type"] == "REQUEST_SUPERSEDED"
    assert lines[-1]["payload"]["by"] is None
    assert erasure["id"] not in json.dumps(lines)


def test_a_correction_overtaken_by_the_same_key_s_erasure_names_it(trusted_api: Api) -> None:
    careful = trusted_api
    with careful.runtime.db.begin() as session:
        session.get_one(ApiKey, careful.key.id).approvals_needed = 1
    correction = careful.post(careful.rectification("4", name="Ann")).get_json()
    with careful.runtime.db.begin() as session:
        session.get_one(ApiKey, careful.key.id).approvals_needed = 0
    erasure = careful.post(careful.erasure("4")).get_json()
    assert careful.trail(correction)[-1]["payload"]["by"] == erasure["id"]


def complete(api: Api, request_id: str) -> None:
    """Make the calls of every open request."""
    outbox = Outbox(api.runtime.db.sessions, keyring=api.runtime.keyring)
    runner = SagaRunner(api.runtime.registry, outbox, on_operations_complete=complete_operations)
    asyncio.run(runner.run_once())
    with api.runtime.db.read() as session:
        assert session.get_one(Request, UUID(request_id)).status is RequestStatus.COMPLETED
