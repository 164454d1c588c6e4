"""What failed, and why? And try it again."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from sqlalchemy import insert, select

from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.errors import ResolverError
from effaced.deadletters.record import record_failures
from effaced.deadletters.rules import Failure
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus, OutboxStatus, new_id
from effaced.outbox.tables import OutboxRow
from tests.browser.seed import House
from tests.integration.console.conftest import HTMX, Visitor, count_events, ref_of

REASON = "Vendor is back since 14:00."
_CHOSEN = re.compile(r'<input type="hidden" name="ids" value="([^"]+)">')


def fail(house: House, *people: int, vendor: str = "crm") -> list[UUID]:
    """Requests whose call at the vendor is abandoned; their dead letters."""
    asked = []
    for person in people:
        house.script.answers[vendor, str(person)] = lambda: ResolverError("no", code="http_400")
        asked.append(house.ask(person))
        house.approve(asked[-1])
    house.run()
    with house.runtime.db.read() as session:
        return list(
            session.scalars(
                select(DeadLetter.id).where(DeadLetter.request_id.in_(asked)).order_by(DeadLetter.id)
            )
        )


def add_letters(house: House, count: int) -> None:
    request_id, now = house.ask(50), clock.now()
    values = {
        "domain": DeadLetterDomain.EXTERNAL_CALL,
        "failure_type": "TransientFailure",
        "error_code": "attempts_exhausted",
        "request_id": request_id,
        "resolver": "crm",
        "subject_key_id": "k1",
        "subject_hmac": "0" * 64,
        "status": DeadLetterStatus.PENDING,
        "retry_count": 0,
        "max_retries": 2,
        "context": {},
        "created_at": now,
        "updated_at": now,
        "recommended_action": "",
        "resolution": "",
    }
    with house.runtime.db.begin() as session:
        session.execute(
            insert(DeadLetter), [{**values, "id": new_id(), "entry_id": new_id()} for _ in range(count)]
        )


def statuses(house: House) -> list[str]:
    with house.runtime.db.read() as session:
        return sorted(status.value for status in session.scalars(select(DeadLetter.status)))


def test_a_dead_letter_shows_where_why_since_when_and_what_to_do(house: House, ada: Visitor) -> None:
    fail(house, 1)
    page = ada.get("/console/abandoned").text
    for words in ("crm", "ResolverError", "http_400", "Fix it, then retry.", "2 Mar 2026, 12:00", "Open"):
        assert words in page


def test_expired_ones_can_be_chosen_once_there_are_some(house: House, ada: Visitor) -> None:
    expired, other = fail(house, 1, 2)
    assert "Past their retention" not in ada.get("/console/abandoned").text
    with house.runtime.db.begin() as session:
        session.get_one(DeadLetter, expired).expires_at = clock.now()
    assert "expired=yes" in ada.get("/console/abandoned").text
    page = ada.get("/console/abandoned?expired=yes").text
    assert str(expired) in page
    assert str(other) not in page
    assert "past their retention" in page
    assert ada.get("/console/abandoned?expired=no").status_code == 422


def test_load_more_walks_through_all_letters_once_when_all_are_of_one_moment(
    house: House, ada: Visitor
) -> None:
    add_letters(house, 120)
    assert len(ada.refs("/console/abandoned")) == 120


def test_filters_narrow_by_system_error_and_place(house: House, ada: Visitor) -> None:
    fail(house, 1, 2)
    fail(house, 3, vendor="files")
    expected = {
        "resolver=crm": 2,
        "resolver=files": 1,
        "error=ResolverError": 3,
        "error=Other": 0,
        "domain=verification": 0,
        "status=resolved": 0,
        "status=all": 3,
    }
    assert {query: len(ada.refs(f"/console/abandoned?{query}")) for query in expected} == expected


def test_the_letters_of_one_request_are_found_from_its_page(house: House, ada: Visitor) -> None:
    fail(house, 1, 2)
    (first, _second) = ada.refs("/console/abandoned")
    page = ada.get(f"/console/requests/{first}").text
    assert f'href="/console/abandoned?ref={first}"' in page
    assert ada.refs(f"/console/abandoned?ref={first}") == [first]


def test_a_ref_that_nobody_has_is_refused(ada: Visitor) -> None:
    assert ada.get("/console/abandoned?ref=ER-9999-9999").status_code == 422


def test_groups_count_by_system_and_error(house: House, ada: Visitor) -> None:
    fail(house, 1, 2)
    fail(house, 3, vendor="files")
    groups = re.findall(
        r'group-count">(\d+)</span>\s*<span class="group-name">(\w+)', ada.get("/console/abandoned").text
    )
    assert groups == [("2", "crm"), ("1", "files")]


def test_before_a_requeue_the_count_and_the_choice_are_shown(house: House, ada: Visitor) -> None:
    first, second = fail(house, 1, 2)
    page = ada.post("/console/abandoned/confirm", {"ids": [str(first), str(second)], "selected": "1"}).text
    assert "Retry 2 failed steps?" in page
    assert "chosen one by one" in page
    assert sorted(_CHOSEN.findall(page)) == sorted([str(first), str(second)])
    assert statuses(house) == ["pending", "pending"]


def test_all_that_match_a_filter_are_confirmed_in_its_words(house: House, ada: Visitor) -> None:
    fail(house, 1, 2)
    fail(house, 3, vendor="files")
    page = ada.post("/console/abandoned/redrives/confirm", {"resolver": "crm"}).text
    assert "Retry 2 failed steps?" in page
    assert "all that are waiting for a person, at crm." in page
    assert statuses(house) == ["pending"] * 3


def test_of_a_filter_by_any_state_only_those_are_counted_that_will_be_taken(
    house: House, ada: Visitor
) -> None:
    _, done = fail(house, 1, 2)
    with house.runtime.db.begin() as session:
        session.get_one(DeadLetter, done).status = DeadLetterStatus.REPLAYING
    confirm = "/console/abandoned/redrives/confirm"
    assert "Retry 1 failed step?" in ada.post(confirm, {"status": "all"}).text
    assert "Nothing matches" in ada.post(confirm, {"status": "replaying"}).text


def test_a_single_one_is_requeued_by_its_button(house: House, ada: Visitor) -> None:
    first, _second = fail(house, 1, 2)
    page = ada.post("/console/abandoned/confirm", {"only": str(first)}).text
    assert "Retry 1 failed step?" in page
    assert _CHOSEN.findall(page) == [str(first)]


def test_nothing_chosen_is_said_so(house: House, ada: Visitor) -> None:
    fail(house, 1)
    assert "Nothing was selected" in ada.post("/console/abandoned/confirm", {"selected": "1"}).text


def test_requeueing_tries_the_call_again_and_tells_what_became_of_each(house: House, ada: Visitor) -> None:
    letters = fail(house, 1, 2)
    page = ada.post(
        "/console/abandoned/requeue", {"ids": [str(each) for each in letters], "reason": REASON}
    ).text
    assert "2 of 2 retried" in page
    assert statuses(house) == ["replaying", "replaying"]
    with house.runtime.db.read() as session:
        crm = session.scalars(select(OutboxRow.status).where(OutboxRow.resolver == "crm")).all()
    assert set(crm) == {OutboxStatus.PENDING}


def test_a_requeue_leaves_an_event_per_call_and_one_for_the_action(house: House, ada: Visitor) -> None:
    letters = fail(house, 1, 2)
    ada.post("/console/abandoned/requeue", {"ids": [str(each) for each in letters], "reason": REASON})
    assert count_events(house, "ERASURE_REQUEUED") == 2
    with house.runtime.db.read() as session:
        bulk = session.scalars(select(AuditEvent).where(AuditEvent.type == "BULK_REQUEUE")).one()
    assert (bulk.actor, bulk.payload["chosen"], bulk.payload["requeued"]) == (f"officer:{house.ada.id}", 2, 2)


def test_what_somebody_else_has_requeued_is_left_alone_and_named(house: House, ada: Visitor) -> None:
    first, second = fail(house, 1, 2)
    ada.post("/console/abandoned/requeue", {"ids": [str(first)], "reason": REASON})
    page = ada.post("/console/abandoned/requeue", {"ids": [str(first), str(second)], "reason": REASON}).text
    assert "1 of 2 retried" in page
    assert "Skipped" in page
    assert count_events(house, "ERASURE_REQUEUED") == 2


def test_a_requeue_without_a_reason_changes_nothing_and_keeps_the_choice(house: House, ada: Visitor) -> None:
    (letter,) = fail(house, 1)
    answer = ada.post(
        "/console/abandoned/requeue", {"ids": [str(letter)], "reason": " ", "words": "chosen one by one"}
    )
    assert answer.status_code == 422
    assert "The reason is missing." in answer.text
    assert _CHOSEN.findall(answer.text) == [str(letter)]
    assert statuses(house) == ["pending"]


def test_in_htmx_the_results_take_the_place_of_the_form(house: House, ada: Visitor) -> None:
    (letter,) = fail(house, 1)
    answer = ada.post("/console/abandoned/requeue", {"ids": [str(letter)], "reason": REASON}, headers=HTMX)
    assert answer.text.strip().startswith('<div id="confirm"')
    assert "1 of 1 retried" in answer.text


@pytest.mark.parametrize("ids", [["not-an-id"], ["' OR 1=1"]])
def test_ids_that_are_none_are_refused(ada: Visitor, ids: list[str]) -> None:
    assert ada.post("/console/abandoned/requeue", {"ids": ids, "reason": REASON}).status_code == 422


def test_a_replay_that_ends_well_closes_the_letter_and_the_request(house: House, ada: Visitor) -> None:
    (letter,) = fail(house, 1)
    house.script.answers.clear()
    ada.post("/console/abandoned/requeue", {"ids": [str(letter)], "reason": REASON})
    house.run()
    assert statuses(house) == ["resolved"]
    assert "No failed steps" in ada.get("/console/abandoned").text
    (ref,) = ada.refs("/console/abandoned?status=resolved")
    with house.runtime.db.read() as session:
        assert ref == ref_of(house, session.get_one(DeadLetter, letter).request_id)
    assert "Completed" in ada.get(f"/console/requests/{ref}").text


def test_a_message_that_could_not_be_delivered_belongs_to_no_request_and_is_requeued(
    house: House, ada: Visitor
) -> None:
    failure = Failure(
        DeadLetterDomain.MESSAGE, None, None, "http_500", "attempts_exhausted", new_id(), "oncall", 8
    )
    with house.runtime.db.begin() as session:
        record_failures(session, [failure])
    with house.runtime.db.read() as session:
        letter_id = session.scalars(select(DeadLetter.id)).one()
    page = ada.get("/console/abandoned").text
    assert "oncall" in page
    assert "Fix the target, then retry." in page
    assert "oncall" in ada.post("/console/abandoned/confirm", {"only": str(letter_id)}).text
    done = ada.post("/console/abandoned/requeue", {"ids": str(letter_id), "reason": REASON})
    assert "oncall" in done.text
    with house.runtime.db.read() as session:
        assert session.get_one(DeadLetter, letter_id).status is DeadLetterStatus.REPLAYING
