"""Where is everything?"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from sqlalchemy import select

from effaced.audit.tables import AuditEvent
from effaced.console.search_token import VALID
from effaced.core import clock
from effaced.model import RequestStatus
from effaced.requests.tables import Request
from tests.browser.seed import House, fill
from tests.integration.console.conftest import HTMX, NOON, Visitor, add_requests, count_events, ref_of, seated


def test_load_more_walks_through_all_rows_once_when_all_are_due_at_the_same_time(
    house: House, ada: Visitor
) -> None:
    ids = add_requests(house, 120, due_in=timedelta(days=20))
    walked = ada.refs("/console/requests")
    assert len(walked) == 120
    assert sorted(walked) == sorted(f"ER-{each.hex[-12:].upper()}" for each in ids)


def test_the_walk_in_the_other_order_is_the_same_walk_backwards(house: House, ada: Visitor) -> None:
    add_requests(house, 60, due_in=timedelta(days=20))
    add_requests(house, 60, due_in=timedelta(days=10))
    forwards, backwards = ada.refs("/console/requests"), ada.refs("/console/requests?order=latest")
    assert len(forwards) == 120
    assert forwards == list(reversed(backwards))


def test_a_row_that_goes_away_makes_the_walk_skip_nobody_else(house: House, ada: Visitor) -> None:
    add_requests(house, 120, due_in=timedelta(days=20))
    first = ada.get("/console/requests").text
    seen = re.findall(r'<a class="ref" href="/console/requests/([^"]+)"', first)
    with house.runtime.db.begin() as session:
        gone = session.scalars(select(Request).where(Request.ref == seen[3])).one()
        gone.closed_at, gone.status = clock.now(), RequestStatus.CANCELLED
    following = re.findall(r'hx-get="([^"]+)" hx-target="#more"', first)[0].replace("&amp;", "&")
    assert len(set(seen) | set(ada.refs(following))) == 120


FILTERS = {
    "": {"review", "running"},
    "?status=review": {"review"},
    "?status=closed": {"completed"},
    "?status=all": {"review", "running", "completed"},
    "?status=completed": {"completed"},
    "?kind=erasure": {"review", "running"},
    "?kind=rectification": {"review", "running"},
    "?blocked=person": {"running"},
    "?due=overdue": {"running"},
    "?due=7d": {"review", "running"},
    "?blocked=approval": {"review"},
    "?blocked=abandoned": {"running"},
    "?blocked=vendor": {"running"},
    "?blocked=hold": set(),
}


def test_a_filter_shows_exactly_what_it_says(house: House, ada: Visitor) -> None:
    fill(house, NOON)
    with house.runtime.db.read() as session:
        status = {row.ref: row.status for row in session.execute(select(Request.ref, Request.status))}
    shown = {path: {status[ref] for ref in ada.refs(f"/console/requests{path}")} for path in FILTERS}
    assert shown == FILTERS


def test_what_blocks_a_request_stands_in_its_row(house: House, ada: Visitor) -> None:
    fill(house, NOON, completed=0)
    blocked = ada.get("/console/requests?blocked=abandoned").text
    assert "Failed step: crm" in blocked
    assert "Failed step: payment" in blocked


def test_overdue_is_told_in_a_word_with_an_icon(house: House, ada: Visitor) -> None:
    add_requests(house, 1, due_in=timedelta(days=-2))
    page = ada.get("/console/requests").text
    assert re.search(r'<span class="mood bad"><svg class="icon".*?</svg>2 days overdue</span>', page)


def test_htmx_gets_the_list_and_a_browser_the_page(ada: Visitor) -> None:
    page, fragment = ada.get("/console/requests").text, ada.get("/console/requests", headers=HTMX).text
    assert page.startswith("<!doctype html>")
    assert fragment.strip().startswith('<section id="list"')
    assert fragment.strip() in page


@pytest.mark.parametrize("header", ["HX-Boosted", "HX-History-Restore-Request"])
def test_boosted_and_history_calls_get_the_whole_page(ada: Visitor, header: str) -> None:
    assert ada.get("/console/requests", headers=HTMX | {header: "true"}).text.startswith("<!doctype html>")


def test_htmx_gets_rows_alone_when_it_loads_more(house: House, ada: Visitor) -> None:
    add_requests(house, 60, due_in=timedelta(days=20))
    following = re.findall(r'hx-get="([^"]+)" hx-target="#more"', ada.get("/console/requests").text)[0]
    fragment = ada.get(following.replace("&amp;", "&"), headers=HTMX).text
    assert fragment.count('<tr role="row">') == 10
    assert "<section" not in fragment


def test_an_empty_list_says_what_would_be_here(ada: Visitor) -> None:
    assert "Requests that your systems send to the API appear here" in ada.get("/console/requests").text
    assert "No request matches" in ada.get("/console/requests?due=overdue").text


# --- searching for a person ---


def search(visitor: Visitor, value: str, kind: str = "email") -> str:
    return visitor.post("/console/requests/search", {"kind": kind, "value": value}).location


def test_a_person_is_found_by_an_identifier_in_any_spelling(house: House, ada: Visitor) -> None:
    mine, _other = house.ask(1), house.ask(2)
    assert ada.refs(search(ada, "  P1@Example.COM ")) == [ref_of(house, mine)]
    assert ada.refs(search(ada, "1", kind="subject_id")) == [ref_of(house, mine)]


def test_closed_requests_of_the_person_are_found_too(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    house.approve(request_id)
    house.run()
    assert ada.refs(search(ada, "p1@example.com")) == [ref_of(house, request_id)]


def test_what_was_searched_for_is_in_no_url(ada: Visitor) -> None:
    location = search(ada, "p1@example.com")
    assert set(parse_qs(urlsplit(location).query)) == {"subject"}
    # Longer than anything an opaque token could hold by chance.
    assert "p1@" not in unquote(location)
    assert "example.com" not in location


def test_nobody_found_is_said_so(ada: Visitor) -> None:
    assert "No request found for this identifier" in ada.get(search(ada, "nobody@example.com")).text


def test_a_search_leaves_an_event_without_what_was_searched_for(house: House, ada: Visitor) -> None:
    house.ask(1)
    search(ada, "p1@example.com")
    with house.runtime.db.read() as session:
        event = session.scalars(select(AuditEvent).where(AuditEvent.type == "SUBJECT_SEARCHED")).one()
    assert event.payload == {"kind": "email", "found": 1}
    assert event.actor == f"officer:{house.ada.id}"


def test_a_search_belongs_to_whoever_made_it(
    house: House, ada: Visitor, visitor: Callable[[], Visitor]
) -> None:
    location = search(ada, "p1@example.com")
    assert seated(visitor(), house.ben).get(location).status_code == 422


def test_a_search_is_forgotten_after_a_while(
    ada: Visitor, house: House, visitor: Callable[[], Visitor]
) -> None:
    location = search(ada, "p1@example.com")
    with clock.pretend(NOON + VALID):
        assert seated(visitor(), house.ada).get(location).status_code == 422


def test_an_empty_search_is_asked_again(house: House, ada: Visitor) -> None:
    answer = ada.post("/console/requests/search", {"kind": "email", "value": " "})
    assert answer.status_code == 422
    assert "Type what to look for." in answer.text
    assert count_events(house, "SUBJECT_SEARCHED") == 0


def test_a_refused_search_in_htmx_is_the_form_with_its_error(ada: Visitor) -> None:
    answer = ada.post("/console/requests/search", {"kind": "email", "value": ""}, headers=HTMX)
    assert answer.status_code == 422
    assert answer.text.strip().startswith('<form class="search" id="search"')


def test_an_unknown_kind_of_identifier_is_refused_with_the_known_ones(ada: Visitor) -> None:
    answer = ada.post("/console/requests/search", {"kind": "shoe_size", "value": "42"})
    assert answer.status_code == 422
    assert "expected subject_id, email" in answer.text
