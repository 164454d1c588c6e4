"""What needs me now? The numbers are the lists."""

from __future__ import annotations

import html
import re
from datetime import timedelta

from effaced.audit.append import append_one
from effaced.audit.events import AbsenceSpiked
from effaced.model import RequestStatus
from tests.browser.seed import House, fill
from tests.integration.console.conftest import NOON, Visitor, add_requests

_NEED = re.compile(
    r'<a class="need [a-z]+" href="([^"]+)">\s*<span class="need-count">([\d,]+)</span>\s*'
    r'<span class="need-name"><svg.*?</svg>([^<]+)</span>',
    re.DOTALL,
)
_SYSTEM = re.compile(r'<li class="card system paused"')


def needs(visitor: Visitor) -> dict[str, tuple[int, str]]:
    page = visitor.get("/console/").text
    return {name: (int(count), html.unescape(url)) for url, count, name in _NEED.findall(page)}


def test_each_number_is_the_length_of_the_list_it_links_to(house: House, ada: Visitor) -> None:
    fill(house, NOON)
    found = needs(ada)
    paused = found.pop("Paused systems")
    assert paused == (len(_SYSTEM.findall(ada.get(paused[1]).text)), "/console/resolvers?state=paused")
    assert paused[0]
    held = found.pop("Open breakers")
    listed = ada.get(held[1]).text.count('<li class="card system')
    assert held == (listed, "/console/resolvers?state=open")
    assert {name: len(ada.refs(url)) for name, (_, url) in found.items()} == {
        name: count for name, (count, _) in found.items()
    }
    assert all(count for count, _ in found.values()), "the cast has a case of each"


def test_a_closed_request_is_not_overdue(house: House, ada: Visitor) -> None:
    add_requests(house, 1, due_in=timedelta(days=-3), status=RequestStatus.COMPLETED, closed_at=NOON)
    assert needs(ada)["Overdue"][0] == 0


def test_due_soon_counts_days_and_not_hours(house: House, ada: Visitor) -> None:
    end_of_day = timedelta(hours=11, minutes=59)
    add_requests(house, 1, due_in=timedelta(days=7) + end_of_day)
    add_requests(house, 1, due_in=timedelta(days=8) + end_of_day)
    assert needs(ada)["Due in 7 days"][0] == 1
    assert "in 7 days" in ada.get("/console/requests?due=7d").text


def test_a_request_that_is_overdue_is_not_also_due_soon(house: House, ada: Visitor) -> None:
    add_requests(house, 1, due_in=timedelta(hours=-1))
    assert (needs(ada)["Overdue"][0], needs(ada)["Due in 7 days"][0]) == (1, 0)


def test_the_chart_has_its_numbers_in_a_table(house: House, ada: Visitor) -> None:
    add_requests(house, 3, due_in=timedelta(days=9))
    page = ada.get("/console/").text
    assert re.search(r'<th scope="row">2 Mar 2026</th><td class="num">3</td><td class="num">0</td>', page)
    assert "2 Mar: 3 received" in page


def test_a_system_that_suddenly_knows_nobody_is_shown_here_and_on_its_page(
    house: House, ada: Visitor
) -> None:
    spiked = AbsenceSpiked(resolver="crm", absent=19, answers=20, absent_before=2, answers_before=22)
    with house.runtime.db.begin() as session:
        append_one(session, spiked)
    page = ada.get("/console/").text
    assert "Suddenly finds nobody:" in page
    assert "Nothing needs you now." not in page
    assert 'href="/console/resolvers/crm"' in page
    assert "19 of 20 people as absent within an hour" in ada.get("/console/resolvers/crm").text
    assert "suddenly knows nobody" not in ada.get("/console/resolvers/files").text


def test_an_empty_house_says_that_nothing_needs_anybody(ada: Visitor) -> None:
    page = ada.get("/console/").text
    assert "Nothing needs you now." in page
    assert "No open requests" in page
    assert "No requests in the last 30 days" in page
