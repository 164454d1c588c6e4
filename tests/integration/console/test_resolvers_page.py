"""What waits for which system, and what is paused?"""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from sqlalchemy import select

from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.errors import ResolverError
from effaced.model import OutboxStatus
from effaced.outbox.flow import ALL, flow_state
from effaced.resolvers.protocols import CredentialsRefused, Scheduled
from tests.browser.seed import House
from tests.integration.console.conftest import HTMX, NOON, Visitor, count_events, ref_of

REASON = "Their maintenance until the evening."
PAGE = "/console/resolvers"


def card(page: str, name: str) -> str:
    """One system's card as it is read: tags gone, spaces single."""
    found = re.search(rf'id="system-{name}">(.*?)</li>', page, re.DOTALL)
    assert found is not None, name
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[1])).strip()


def paused(house: House, name: str) -> bool:
    with house.runtime.db.read() as session:
        return flow_state(session, name).paused


def test_each_system_shows_its_kind_and_what_waits_for_it(house: House, ada: Visitor) -> None:
    house.script.answers["crm", "1"] = lambda: ResolverError("no", code="http_400")
    house.script.answers["mailing", "1"] = lambda: Scheduled(clock.now() + timedelta(days=3))
    house.approve(house.ask(1))
    house.run()
    house.approve(house.ask(2))
    page = ada.get(PAGE).text
    assert card(page, "crm").startswith(
        "crm python Breaker closed calls go out. Waiting 1 In flight 0 Parked 0 Failed steps 1"
    )
    assert card(page, "mailing").startswith(
        "mailing python Breaker closed calls go out. Waiting 1 In flight 0 Parked 1"
    )
    told = card(page, "archive")
    assert told.startswith("archive manual Nothing is called here: an officer does the work and attests it.")
    assert "Waiting 0 In flight 0 For a person 0" in told
    assert "After crm" in card(page, "archive")


def test_failures_in_a_row_are_shown_with_how_many_open_the_breaker(house: House, ada: Visitor) -> None:
    house.script.answers["crm", "1"] = lambda: OSError("down")
    house.approve(house.ask(1))
    for hours in range(2):
        with clock.pretend(NOON + timedelta(hours=hours)):
            house.run()
            page = ada.get(PAGE).text
    assert "Breaker closed calls go out; 2 failures in a row, opens at 5." in card(page, "crm")
    assert "in a row" not in card(page, "mailing")


def test_the_numbers_lead_to_exactly_their_lists(house: House, ada: Visitor) -> None:
    house.script.answers["mailing", "1"] = lambda: Scheduled(clock.now() + timedelta(days=3))
    house.script.answers["crm", "1"] = lambda: ResolverError("no", code="http_400")
    request_id = house.ask(1)
    house.approve(request_id)
    house.run()
    page = ada.get(PAGE).text
    for path in ("/console/scheduled?resolver=mailing", "/console/abandoned?resolver=crm"):
        assert f'href="{path}"' in page
        assert ada.refs(path) == [ref_of(house, request_id)]


def test_a_pause_stops_the_calls_and_says_who_why_and_until_when(house: House, ada: Visitor) -> None:
    answer = ada.post(f"{PAGE}/pause", {"resolver": "crm", "reason": REASON, "hours": "5"})
    assert (answer.status_code, answer.location) == (303, PAGE)
    page = ada.get(PAGE).text
    assert "crm is paused." in page
    told = card(page, "crm")
    assert f"Ada Okafor: “{REASON}” Since 2 Mar 2026, 12:00" in told
    assert "until 2 Mar 2026, 17:00 (in 5 hours)." in told
    request_id = house.ask(1)
    house.approve(request_id)
    house.run()
    assert house.entry(request_id, "crm").status is OutboxStatus.PENDING
    assert house.entry(request_id, "crm").attempts == 0
    assert house.entry(request_id, "mailing").status is OutboxStatus.SUCCEEDED


def test_a_pause_ends_by_itself(house: House, ada: Visitor) -> None:
    ada.post(f"{PAGE}/pause", {"resolver": "crm", "reason": REASON, "hours": "0,5"})
    assert paused(house, "crm")
    with clock.pretend(NOON + timedelta(minutes=31)):
        assert not paused(house, "crm")
        assert "Paused" not in card(ada.get(PAGE).text, "crm")


def test_a_pause_and_its_end_are_events_with_a_note(house: House, ada: Visitor) -> None:
    ada.post(f"{PAGE}/pause", {"resolver": "crm", "reason": REASON})
    ada.post(f"{PAGE}/resume", {"resolver": "crm", "reason": "They are back."})
    with house.runtime.db.read() as session:
        events = session.scalars(select(AuditEvent).where(AuditEvent.type.like("RESOLVER_%"))).all()
    assert [(event.type, event.actor) for event in events] == [
        ("RESOLVER_PAUSED", f"officer:{house.ada.id}"),
        ("RESOLVER_RESUMED", f"officer:{house.ada.id}"),
    ]
    assert all(event.payload["note_id"] for event in events)
    assert REASON not in str([event.payload for event in events])


def test_what_was_paused_is_resumed_and_called(house: House, ada: Visitor) -> None:
    house.pause("crm")
    request_id = house.ask(1)
    house.approve(request_id)
    ada.post(f"{PAGE}/resume", {"resolver": "crm", "reason": "They are back."})
    house.run()
    assert house.entry(request_id, "crm").status is OutboxStatus.SUCCEEDED


def test_everything_can_be_paused_and_resumed(house: House, ada: Visitor) -> None:
    ada.post(f"{PAGE}/pause", {"resolver": ALL, "reason": REASON})
    page = ada.get(PAGE).text
    assert "Everything is paused." in page
    assert "Paused with everything" in card(page, "crm")
    assert paused(house, "mailing")
    ada.post(f"{PAGE}/resume", {"resolver": ALL, "reason": "Go on."})
    assert not paused(house, "mailing")


def test_credentials_that_are_refused_show_as_a_pause_by_itself(house: House, ada: Visitor) -> None:
    house.script.answers["crm", "1"] = lambda: CredentialsRefused("no", code="http_401", status_code=401)
    house.approve(house.ask(1))
    house.run()
    assert "It refused our credentials, so it was paused automatically." in card(ada.get(PAGE).text, "crm")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"reason": " "}, "The reason is missing."),
        ({"reason": REASON, "hours": "soon"}, "The hours of a pause must be a number."),
        ({"reason": REASON, "hours": "0"}, "The hours of a pause must be more than 0 and at most 2160."),
        ({"reason": REASON, "hours": "nan"}, "The hours of a pause must be more than 0 and at most 2160."),
        ({"reason": REASON, "hours": "99999"}, "The hours of a pause must be more than 0 and at most 2160."),
    ],
)
def test_a_refused_pause_changes_nothing_and_keeps_what_was_typed(
    house: House, ada: Visitor, form: dict[str, str], said: str
) -> None:
    answer = ada.post(f"{PAGE}/pause", {"resolver": "crm", **form}, headers=HTMX)
    assert answer.status_code == 422
    assert answer.text.strip().startswith('<section id="list"')
    assert said in answer.text
    assert answer.text.count('<details class="fold steer" open>') == 1
    assert form["reason"].strip() in answer.text
    assert f'value="{form.get("hours", "")}"' in answer.text
    assert not paused(house, "crm")
    assert count_events(house, "RESOLVER_PAUSED") == 0


def test_a_system_that_nobody_knows_is_refused(house: House, ada: Visitor) -> None:
    assert ada.post(f"{PAGE}/pause", {"resolver": "cmr", "reason": REASON}).status_code == 422
    assert count_events(house, "RESOLVER_PAUSED") == 0


def test_a_second_pause_finds_the_first(house: House, ada: Visitor) -> None:
    house.pause("crm")
    answer = ada.post(f"{PAGE}/pause", {"resolver": "crm", "reason": REASON}, headers=HTMX)
    toast = json.loads(answer.headers["HX-Trigger"])["toast"]
    assert (toast["text"], toast["tone"]) == ("'crm' is paused already.", "warn")
    assert count_events(house, "RESOLVER_PAUSED") == 1


def test_in_htmx_the_list_comes_anew_with_a_toast(house: House, ada: Visitor) -> None:
    answer = ada.post(f"{PAGE}/pause", {"resolver": "crm", "reason": REASON}, headers=HTMX)
    assert answer.text.strip().startswith('<section id="list"')
    assert "Paused" in card(answer.text, "crm")
    assert json.loads(answer.headers["HX-Trigger"])["toast"]["text"] == "crm is paused."


def test_only_what_is_paused_can_be_shown(house: House, ada: Visitor) -> None:
    assert "Nothing is paused" in ada.get(f"{PAGE}?state=paused").text
    house.pause("crm")
    assert re.findall(r'id="system-(\w+)"', ada.get(f"{PAGE}?state=paused").text) == ["crm"]


def test_an_auditor_sees_why_and_no_form(house: House, cleo: Visitor) -> None:
    house.pause("crm", reason=REASON)
    page = cleo.get(PAGE).text
    assert REASON in page
    assert "/console/resolvers/pause" not in page
    assert "/console/resolvers/resume" not in page


def test_a_system_that_is_gone_from_the_file_and_has_entries_is_shown(house: House, ada: Visitor) -> None:
    house.approve(house.ask(1))
    registry = house.runtime.registry
    registry._by_name.pop("mailing")
    assert "Not configured" in card(ada.get(PAGE).text, "mailing")


def test_the_overview_has_a_banner_while_something_is_paused(house: House, ada: Visitor) -> None:
    assert "Paused:" not in ada.get("/console/").text
    house.pause("crm")
    assert "<strong>Paused:</strong> crm." in ada.get("/console/").text
    house.pause(ALL)
    assert "<strong>Everything is paused</strong>" in ada.get("/console/").text


def test_a_waiting_call_says_that_its_system_is_paused(house: House, ada: Visitor) -> None:
    house.pause("crm")
    request_id = house.ask(1)
    house.approve(request_id)
    house.run()
    page = ada.get(f"/console/requests/{ref_of(house, request_id)}").text
    assert "crm is paused: an officer has to resume it." in page
    assert "when resumed" in page
