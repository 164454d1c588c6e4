"""A system without an interface: a person is told what to do, shown whom it is about, and attests it."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import select

from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.errors import ResolverError
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterStatus, OutboxStatus, RequestStatus, StepOutcome
from tests.browser.seed import INSTRUCTIONS, ON_PAPER, House
from tests.integration.console.conftest import HTMX, NOON, Visitor, count_events, ref_of, status_of

PERSON = ON_PAPER[0]
REASON = "To find the folder."
NOTE = "Shredded on Monday, with Ben."


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def waiting(house: House) -> UUID:
    """A request whose only open call is the archive's."""
    request_id = house.ask(PERSON)
    house.approve(request_id)
    house.run()
    house.run()
    return request_id


def path(house: House, request_id: UUID, resolver: str = "archive") -> str:
    entry = house.entry(request_id, resolver)
    return f"/console/requests/{ref_of(house, request_id)}/calls/{entry.entry_id}"


def page(visitor: Visitor, house: House, request_id: UUID) -> str:
    return visitor.get(f"/console/requests/{ref_of(house, request_id)}").text


# --- what the page says ---


def test_a_call_that_comes_after_another_says_so(house: House, ada: Visitor) -> None:
    house.pause("crm")
    request_id = house.ask(PERSON)
    house.approve(request_id)
    house.run()
    assert "archive Waits for another system crm first" in words(page(ada, house, request_id))


def test_a_parked_call_waits_for_a_person_with_instructions_and_a_date(house: House, ada: Visitor) -> None:
    request_id = waiting(house)
    told = words(page(ada, house, request_id))
    assert "archive Waiting for a person" in told
    assert INSTRUCTIONS in told
    assert "Attest by 16 Mar 2026, 12:00 in 14 days" in told
    assert "An officer has to do archive by hand and attest it below." in told
    assert f"{path(house, request_id)}/attest" in page(ada, house, request_id)


def test_an_auditor_reads_the_instructions_and_gets_no_form(house: House, cleo: Visitor) -> None:
    request_id = waiting(house)
    seen = page(cleo, house, request_id)
    assert INSTRUCTIONS in seen
    assert "/attest" not in seen
    assert "/reveal" not in seen


def test_the_lists_tell_a_person_from_a_vendor(house: House, ada: Visitor) -> None:
    ref = ref_of(house, waiting(house))
    assert ada.refs("/console/requests?blocked=person") == [ref]
    assert ada.refs("/console/requests?blocked=vendor") == []
    assert ada.refs("/console/scheduled?waits=person") == [ref]
    assert ada.refs("/console/scheduled?waits=vendor") == []
    assert "A person" in ada.get("/console/scheduled").text


# --- showing the reference ---


def test_the_reference_is_shown_once_and_never_kept(house: House, ada: Visitor) -> None:
    request_id = waiting(house)
    before = page(ada, house, request_id)
    answer = ada.post(f"{path(house, request_id)}/reveal", {"reason": REASON})
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert f"K-{PERSON}" in answer.text
    assert "paper file" in answer.text
    for seen in (before, page(ada, house, request_id), ada.get(path(house, request_id)).text):
        assert f"K-{PERSON}" not in seen


def test_who_saw_the_reference_and_why_is_in_the_trail(house: House, ada: Visitor) -> None:
    request_id = waiting(house)
    ada.post(f"{path(house, request_id)}/reveal", {"reason": REASON})
    with house.runtime.db.read() as session:
        event = session.scalars(select(AuditEvent).where(AuditEvent.type == "REFERENCE_REVEALED")).one()
    assert (event.actor, event.request_id) == (f"officer:{house.ada.id}", request_id)
    assert f"K-{PERSON}" not in str(event.payload)
    told = words(page(ada, house, request_id))
    assert "The reference to the person at archive was shown. Ada Okafor" in told
    assert REASON in told


def test_without_a_reason_nothing_is_shown(house: House, ada: Visitor) -> None:
    request_id = waiting(house)
    answer = ada.post(f"{path(house, request_id)}/reveal", {"reason": " "}, headers=HTMX)
    assert answer.status_code == 422
    assert answer.text.strip().startswith('<section id="hand-')
    assert "The reason is missing." in answer.text
    assert f"K-{PERSON}" not in answer.text
    assert count_events(house, "REFERENCE_REVEALED") == 0


def test_the_values_to_correct_are_shown_with_the_reference(house: House, ada: Visitor) -> None:
    request_id = house.correct(PERSON, name="Zenobia", email="z@example.org")
    house.approve(request_id)
    house.run()
    house.run()
    seen = page(ada, house, request_id)
    assert "Zenobia" not in seen
    assert "z@example.org" not in seen
    answer = ada.post(f"{path(house, request_id)}/reveal", {"reason": REASON}, headers=HTMX)
    assert "Zenobia" in answer.text
    assert "z@example.org" in answer.text


# --- attesting ---


def test_an_attestation_completes_the_request(house: House, ada: Visitor) -> None:
    request_id = waiting(house)
    answer = ada.post(f"{path(house, request_id)}/attest", {"note": NOTE})
    assert answer.location == f"/console/requests/{ref_of(house, request_id)}"
    assert status_of(house, request_id) is RequestStatus.COMPLETED
    assert house.entry(request_id, "archive").outcome is StepOutcome.ATTESTED
    told = words(page(ada, house, request_id))
    assert "Attested. The request is completed." in told
    assert "archive was erased by hand, as attested by an officer." in told
    assert NOTE in told


def test_an_attestation_without_a_note_changes_nothing_and_says_so(house: House, ada: Visitor) -> None:
    request_id = waiting(house)
    answer = ada.post(f"{path(house, request_id)}/attest", {"note": ""})
    assert answer.status_code == 422
    assert "The note is missing." in answer.text
    assert house.entry(request_id, "archive").status is OutboxStatus.SCHEDULED


def test_a_note_that_is_too_long_is_kept_in_the_form(house: House, ada: Visitor) -> None:
    request_id = waiting(house)
    long = "because " * 300
    answer = ada.post(f"{path(house, request_id)}/attest", {"note": long}, headers=HTMX)
    assert answer.status_code == 422
    assert long in answer.text


def test_in_htmx_an_attestation_brings_the_request_anew_and_a_toast(house: House, ada: Visitor) -> None:
    request_id = waiting(house)
    answer = ada.post(f"{path(house, request_id)}/attest", {"note": NOTE}, headers=HTMX)
    assert answer.headers["HX-Retarget"] == "#request"
    assert answer.headers["HX-Push-Url"] == f"/console/requests/{ref_of(house, request_id)}"
    assert answer.text.strip().startswith('<div id="request"')
    assert json.loads(answer.headers["HX-Trigger"])["toast"]["text"].startswith("Attested.")


def test_a_second_attestation_finds_the_first(house: House, ada: Visitor) -> None:
    request_id = waiting(house)
    for _ in range(2):
        answer = ada.post(f"{path(house, request_id)}/attest", {"note": NOTE})
    assert answer.status_code == 303
    assert "nothing is left to attest" in page(ada, house, request_id)
    assert count_events(house, "STEP_ATTESTED") == 1


def test_an_abandoned_call_can_be_attested_and_its_letter_closes(house: House, ada: Visitor) -> None:
    house.script.answers["crm", "1"] = lambda: ResolverError("no", code="http_400")
    request_id = house.ask(1)
    house.approve(request_id)
    house.run()
    where = path(house, request_id, "crm")
    assert f'href="{where}"' in ada.get("/console/abandoned").text
    assert "crm: erase by hand" in words(ada.get(where).text)
    ada.post(f"{where}/attest", {"note": NOTE})
    assert status_of(house, request_id) is RequestStatus.COMPLETED
    with house.runtime.db.read() as session:
        letter = session.scalars(select(DeadLetter)).one()
    assert (letter.status, letter.resolution) == (DeadLetterStatus.RESOLVED, "attested")


def test_what_nobody_attested_in_time_is_a_dead_letter_with_advice(house: House, ada: Visitor) -> None:
    request_id = waiting(house)
    with clock.pretend(NOON + timedelta(days=15)):
        house.run()
    seen = words(ada.get("/console/abandoned").text)
    assert "AttestationOverdue" in seen
    assert "Nobody attested it in time. Do it by hand, then attest" in seen
    told = words(page(ada, house, request_id))
    assert "A failed step needs a decision: do it by hand and attest, or retry for a new date." in told


# --- what is not theirs ---


@pytest.mark.parametrize("what", ["", "/reveal", "/attest"])
def test_a_call_of_another_request_is_not_found_here(house: House, ada: Visitor, what: str) -> None:
    request_id, other = waiting(house), house.ask(1)
    strange = path(house, request_id).replace(ref_of(house, request_id), ref_of(house, other))
    answer = ada.post(f"{strange}{what}", {"reason": "x", "note": "x"}) if what else ada.get(strange)
    assert answer.status_code == 404
    assert count_events(house, "REFERENCE_REVEALED") == count_events(house, "STEP_ATTESTED") == 0


# --- while the page polls ---


def test_a_poll_leaves_the_forms_alone_until_other_calls_need_a_person(house: House, ada: Visitor) -> None:
    house.script.answers["mailing", str(PERSON)] = lambda: ResolverError("no", code="http_400")
    request_id = waiting(house)
    poll = re.findall(r'hx-get="([^"]+)" hx-trigger="poll"', page(ada, house, request_id))[0].replace(
        "&amp;", "&"
    )
    with clock.pretend(NOON + timedelta(minutes=2)):
        answer = ada.get(poll, headers=HTMX)
        assert answer.status_code == 200
        assert 'id="hands"' not in answer.text
    entry = house.entry(request_id, "mailing")
    ada.post(f"/console/requests/{ref_of(house, request_id)}/calls/{entry.entry_id}/attest", {"note": NOTE})
    assert 'id="hands" class="stack" hx-swap-oob="true"' in ada.get(poll, headers=HTMX).text
