"""One dead letter, and another try for a whole set of them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import select, update

from effaced.deadletters.record import record_failures
from effaced.deadletters.rules import Failure
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain, DeadLetterStatus, RequestStatus, new_id
from effaced.requests.tables import Request
from tests.browser.seed import House
from tests.integration.console.conftest import HTMX, NOON, Visitor, count_events
from tests.integration.console.test_abandoned_page import REASON, add_letters, fail, statuses

LIST = "/console/abandoned"
SETS = f"{LIST}/redrives"


def read(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def letter(house: House, letter_id: UUID) -> DeadLetter:
    with house.runtime.db.read() as session:
        found = session.get_one(DeadLetter, letter_id)
        session.expunge(found)
        return found


def a_message(house: House) -> UUID:
    """A letter over nothing that has to be erased."""
    failure = Failure(
        DeadLetterDomain.MESSAGE, None, None, "http_500", "attempts_exhausted", new_id(), "oncall", 8
    )
    with house.runtime.db.begin() as session:
        record_failures(session, [failure])
    with house.runtime.db.read() as session:
        mine = DeadLetter.domain == DeadLetterDomain.MESSAGE
        return session.scalars(select(DeadLetter.id).where(mine)).one()


def test_a_letter_tells_its_story_and_what_to_do(house: House, ada: Visitor) -> None:
    (each,) = fail(house, 1)
    told = read(ada.get(f"{LIST}/{each}").text)
    for words in (
        "crm: ResolverError",
        "Next A retry will not help until the cause is fixed. Fix it, then retry.",
        "Attempt 1 at crm failed",
        "A step failed permanently: external call, ResolverError.",
        "Retried 0 of 2",
        "Assigned to nobody",
    ):
        assert words in told


def test_a_letter_is_taken_and_given_back(house: House, ada: Visitor) -> None:
    (each,) = fail(house, 1)
    answer = ada.post(f"{LIST}/{each}/assign", {"to": "me"}, headers=HTMX)
    assert answer.text.strip().startswith('<div id="letter"')
    assert letter(house, each).assigned_to == house.ada.id
    assert "Ada Okafor" in ada.get(f"{LIST}?whose=me").text.split("<tbody")[1]
    assert ada.refs(f"{LIST}?whose=nobody") == []
    ada.post(f"{LIST}/{each}/assign", {"to": "nobody"})
    assert letter(house, each).assigned_to is None


def test_a_note_is_kept_and_an_empty_one_refused(house: House, ada: Visitor) -> None:
    (each,) = fail(house, 1)
    assert ada.post(f"{LIST}/{each}/notes", {"note": " "}).status_code == 422
    ada.post(f"{LIST}/{each}/notes", {"note": "Ticket 4711 at the vendor."})
    assert "Ticket 4711 at the vendor." in ada.get(f"{LIST}/{each}").text
    assert count_events(house, "DEAD_LETTER_NOTED") == 1


def test_a_letter_is_resolved_with_a_reason(house: House, ada: Visitor) -> None:
    each = a_message(house)
    answer = ada.post(f"{LIST}/{each}/decide", {"decision": "resolve", "reason": REASON})
    assert (answer.status_code, answer.location) == (303, f"{LIST}/{each}")
    assert letter(house, each).status is DeadLetterStatus.RESOLVED
    assert REASON in ada.get(f"{LIST}/{each}").text


def choices(page: str) -> list[str]:
    return re.findall(r'name="decision" value="(\w+)"', page)


def test_what_can_not_be_closed_is_not_offered_to_be_and_says_why(house: House, ada: Visitor) -> None:
    (each,) = fail(house, 1)
    page = ada.get(f"{LIST}/{each}").text
    assert choices(page) == ["review"]
    assert "The call behind this dead letter has not succeeded." in read(page)
    message = ada.get(f"{LIST}/{a_message(house)}").text
    assert choices(message) == ["resolve", "reject", "review"]
    assert "has not succeeded" not in message


def test_a_letter_over_an_execution_that_failed_is_not_offered_to_be_closed(
    house: House, ada: Visitor
) -> None:
    request_id = house.ask(3)
    failure = Failure(
        DeadLetterDomain.LOCAL_EXECUTION,
        request_id,
        None,
        "StillReachable",
        "local_execution",
        tables=("visits",),
    )
    with house.runtime.db.begin() as session:
        record_failures(session, [failure])
        session.execute(update(Request).values(status=RequestStatus.APPROVED, executed_at=None))
    with house.runtime.db.read() as session:
        each = session.scalars(select(DeadLetter.id)).one()
    page = ada.get(f"{LIST}/{each}").text
    assert choices(page) == ["review"]
    assert "The request behind this dead letter was not executed." in page
    assert "Rows left in visits" in read(page)
    assert "All failures" not in page
    with house.runtime.db.begin() as session:
        record_failures(session, [replace(failure, error="OperationalError", tables=())])
    told = read(ada.get(f"{LIST}/{each}").text)
    assert "Rows left in visits" in told
    assert "All failures StillReachable rows left in visits , OperationalError" in told


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"decision": "review", "reason": ""}, "The reason is missing."),
        ({"decision": "resolve", "reason": REASON}, "The call behind this dead letter has not succeeded."),
        ({"decision": "burn", "reason": REASON}, "Select a decision."),
    ],
)
def test_a_decision_that_is_refused_changes_nothing_and_keeps_what_was_typed(
    house: House, ada: Visitor, form: dict[str, str], said: str
) -> None:
    (each,) = fail(house, 1)
    answer = ada.post(f"{LIST}/{each}/decide", form, headers=HTMX)
    assert answer.status_code == 422
    assert said in answer.text.split('role="alert"')[1]
    assert f">{form['reason']}</textarea>" in answer.text
    assert statuses(house) == ["pending"]


def test_at_its_cap_a_requeue_says_that_it_is_forced(house: House, ada: Visitor) -> None:
    (each,) = fail(house, 1)
    with house.runtime.db.begin() as session:
        session.execute(update(DeadLetter).values(retry_count=2, status=DeadLetterStatus.REQUIRES_REVIEW))
    assert "Force a retry" in ada.get(f"{LIST}/{each}").text
    ada.post(f"{LIST}/requeue", {"ids": str(each), "reason": REASON})
    assert letter(house, each).status is DeadLetterStatus.REPLAYING


def test_an_auditor_reads_a_letter_and_finds_no_form(house: House, cleo: Visitor) -> None:
    (each,) = fail(house, 1)
    page = cleo.get(f"{LIST}/{each}").text.split('<main id="main"')[1]
    assert "Attempt 1 at crm failed" in page
    assert "<form" not in page


def test_a_letter_that_does_not_exist_has_no_page(ada: Visitor) -> None:
    assert ada.get(f"{LIST}/{UUID(int=7)}").status_code == 404


def test_facets_count_without_their_own_filter(house: House, ada: Visitor) -> None:
    fail(house, 1, 2)
    fail(house, 3, vendor="files")
    facets = read(ada.get(f"{LIST}?resolver=crm").text.split("facets")[1].split("</nav>")[0])
    assert "System crm 2 , selected: remove this filter files 1" in facets
    assert "Error ResolverError 2" in facets


def test_what_waits_too_long_is_marked_and_can_be_listed(house: House, ada: Visitor) -> None:
    fail(house, 1)
    assert ada.refs(f"{LIST}?late=yes") == []
    with house.runtime.db.begin() as session:
        session.execute(update(DeadLetter).values(created_at=NOON - timedelta(hours=24)))
    assert len(ada.refs(f"{LIST}?late=yes")) == 1
    assert "Late" in ada.get(LIST).text


def test_what_is_too_long_is_a_setting(house: House, ada: Visitor) -> None:
    (letter_id,) = fail(house, 1)
    hours = {"dead_letter_hours": {DeadLetterDomain.EXTERNAL_CALL: 48.0}}
    house.runtime.settings = house.runtime.settings.model_copy(update=hours)
    with house.runtime.db.begin() as session:
        session.execute(update(DeadLetter).values(created_at=NOON - timedelta(hours=47)))
    assert ada.refs(f"{LIST}?late=yes") == []
    with house.runtime.db.begin() as session:
        session.execute(update(DeadLetter).values(created_at=NOON - timedelta(hours=48)))
    assert len(ada.refs(f"{LIST}?late=yes")) == 1
    assert "Late" in ada.get(f"{LIST}/{letter_id}").text.split("Closed")[0]


def test_a_group_unfolds_into_its_oldest_letters(house: House, ada: Visitor) -> None:
    fail(house, 1, 2)
    fail(house, 3, vendor="files")
    page = ada.get(f"{LIST}?expand=external_call|crm|ResolverError").text
    inner = page.split('class="group-rows"')[1].split("</ul>")[0]
    assert inner.count("/console/abandoned/0") == 2
    assert "Retry these 2" in inner


def test_a_set_is_requeued_and_its_page_tells_what_became_of_each(house: House, ada: Visitor) -> None:
    fail(house, 1, 2)
    fail(house, 3, vendor="files")
    answer = ada.post(SETS, {"resolver": "crm", "reason": REASON})
    assert answer.status_code == 303
    page = ada.get(answer.location).text
    told = read(page)
    assert "All that were waiting for a person, at crm." in told
    assert "Done 2 of 2 Retried 2 Skipped 0" in told
    assert REASON in told
    assert "data-poll" not in page
    assert statuses(house) == ["pending", "replaying", "replaying"]
    assert "2 of 2" in read(ada.get(SETS).text)


def test_a_long_one_polls_to_its_end_and_then_no_more(house: House, ada: Visitor) -> None:
    add_letters(house, 130)
    where = ada.post(SETS, {"reason": REASON}).location
    page = ada.get(where).text
    assert "Done 100 of 130" in read(page)
    poll = re.search(r'hx-get="([^"]+seen=[^"]+)"', page)
    assert poll is not None
    assert ada.get(poll[1], headers=HTMX).status_code == 204
    house.runtime.advance_redrives()
    answer = ada.get(poll[1], headers=HTMX)
    assert answer.text.strip().startswith('<div id="live"')
    assert "data-poll" not in answer.text
    assert "Done 130 of 130" in read(answer.text)


def test_a_long_one_can_be_cancelled(house: House, ada: Visitor) -> None:
    add_letters(house, 130)
    where = ada.post(SETS, {"reason": REASON}).location
    assert ada.post(f"{where}/cancel").location == where
    told = read(ada.get(where).text)
    assert "Cancelled" in told
    assert "Done 100 of 130" in told
    ada.post(f"{where}/cancel")
    assert "This redrive is cancelled already." in ada.get(where).text


def test_those_at_their_cap_are_left_alone_unless_forced(house: House, ada: Visitor) -> None:
    fail(house, 1)
    with house.runtime.db.begin() as session:
        session.execute(update(DeadLetter).values(retry_count=2, status=DeadLetterStatus.REQUIRES_REVIEW))
    where = ada.post(SETS, {"reason": REASON}).location
    assert "has used up its tries; force it if the cause is mended" in ada.get(where).text
    where = ada.post(SETS, {"reason": REASON, "force": "1"}).location
    assert "Retried 1 Skipped 0" in read(ada.get(where).text)


def test_a_set_without_a_reason_is_refused_and_the_filter_kept(house: House, ada: Visitor) -> None:
    fail(house, 1)
    answer = ada.post(SETS, {"resolver": "crm", "reason": " ", "force": "1"}, headers=HTMX)
    assert answer.status_code == 422
    assert "The reason is missing." in answer.text
    assert 'name="resolver" value="crm"' in answer.text
    assert 'name="force" value="1" checked' in answer.text
    assert statuses(house) == ["pending"]


def test_an_auditor_watches_a_set_and_can_not_stop_it(house: House, ada: Visitor, cleo: Visitor) -> None:
    add_letters(house, 130)
    where = ada.post(SETS, {"reason": REASON}).location
    page = cleo.get(where).text.split('<main id="main"')[1]
    assert "Done 100 of 130" in read(page)
    assert "<form" not in page
    assert cleo.post(f"{where}/cancel").status_code == 403
