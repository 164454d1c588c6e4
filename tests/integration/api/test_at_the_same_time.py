"""Calls that arrive together: the database decides, and nobody hears an error for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from sqlalchemy import select
from werkzeug.test import TestResponse

from effaced.audit.tables import AuditEvent

Api = Any
CALLERS = 4


def together(api: Api, calls: list[tuple[dict[str, Any], str | None]]) -> list[TestResponse]:
    """Send all calls at once."""
    _ = api.runtime.plan  # so that nobody waits for the map while the others run ahead
    start = Barrier(len(calls))

    def send(call: tuple[dict[str, Any], str | None]) -> TestResponse:
        start.wait(timeout=30)
        answer: TestResponse = api.post(call[0], idempotency_key=call[1])
        return answer

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(send, calls))


def events(api: Api, kind: str) -> int:
    with api.runtime.db.read() as session:
        return len(session.scalars(select(AuditEvent).where(AuditEvent.type == kind)).all())


def test_one_person_sent_in_by_many_at_once_gets_one_original_and_its_duplicates(api: Api) -> None:
    for subject_id in ("1", "2", "3"):
        answers = together(api, [(api.erasure(subject_id), None)] * CALLERS)
        assert sorted(answer.status_code for answer in answers) == [200] * (CALLERS - 1) + [201]
        bodies = [answer.get_json() for answer in answers]
        (original,) = [body["id"] for body in bodies if body["duplicate_of"] is None]
        assert {body["duplicate_of"] or original for body in bodies} == {original}
        assert len({body["id"] for body in bodies}) == CALLERS
    assert events(api, "REQUEST_RECEIVED") == 3 * CALLERS
    assert events(api, "REQUEST_REPEATED") == 3 * (CALLERS - 1)


def test_one_call_sent_many_times_at_once_has_one_effect_and_one_answer(api: Api) -> None:
    for subject_id in ("1", "2", "3"):
        answers = together(api, [(api.erasure(subject_id), f"key-{subject_id}")] * CALLERS)
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.text for answer in answers}) == 1
        replays = [answer.headers.get("Idempotent-Replay") for answer in answers]
        assert (replays.count(None), replays.count("true")) == (1, CALLERS - 1)
    assert api.rows()["effaced_requests"] == 3
    assert events(api, "REQUEST_REPEATED") == 0


def test_one_key_with_two_bodies_at_once_goes_to_one_of_them(api: Api) -> None:
    answers = together(api, [(api.erasure(subject_id), "one-key") for subject_id in ("1", "2")])
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    assert api.rows()["effaced_requests"] == 1


def test_executing_at_once_erases_each_person_once(trusted_api: Api) -> None:
    calls = [(trusted_api.erasure(subject_id), None) for subject_id in ("1", "1", "2", "2")]
    answers = together(trusted_api, calls)
    assert [answer.status_code for answer in answers].count(201) == 2
    assert {answer.status_code for answer in answers} <= {200, 201}
    rows = trusted_api.rows()
    assert (rows["effaced_requests"], rows["effaced_outbox"], rows["customers"]) == (4, 2, 4)
