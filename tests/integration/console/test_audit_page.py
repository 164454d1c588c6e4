"""What was done, by whom?"""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta

import pytest
from sqlalchemy import select

from effaced.audit.append import Record, append
from effaced.audit.events import ApiKeyRevoked, PasswordChanged
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.model import new_id
from tests.browser.seed import House
from tests.integration.console.conftest import NOON, Visitor, count_events, ref_of

_NUMBER = re.compile(r'data-label="No." class="num dim">(\d+)</td>')


def numbers(visitor: Visitor, path: str) -> list[int]:
    """The events of a list, through all of its pages."""
    found: list[int] = []
    following: str | None = path
    while following:
        page = visitor.get(following).text
        found += [int(number) for number in _NUMBER.findall(page)]
        link = re.search(r'hx-get="([^"]+)" hx-target="#more"', page)
        following = link[1].replace("&amp;", "&") if link else None
    return found


def add_events(house: House, count: int) -> None:
    with house.runtime.db.begin() as session:
        append(session, [Record(ApiKeyRevoked(api_key_id=house.shop.id), actor="cli") for _ in range(count)])


def test_load_more_walks_through_all_events_once_newest_first(house: House, ada: Visitor) -> None:
    add_events(house, 120)
    walked = numbers(ada, "/console/audit?type=API_KEY_REVOKED")
    assert len(walked) == 120
    assert walked == sorted(set(walked), reverse=True)


def test_events_are_found_by_request(house: House, ada: Visitor) -> None:
    first, _second = house.ask(1), house.ask(2)
    ref = ref_of(house, first)
    assert ada.refs(f"/console/audit?ref={ref.lower()}") == [ref]


def test_events_are_found_by_actor(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    house.approve(request_id, by=house.ben)
    page = ada.get(f"/console/audit?actor=officer:{house.ben.id}").text
    assert len(_NUMBER.findall(page)) == 1
    assert 'data-label="Who">Ben Lindqvist' in page


def test_days_are_those_of_the_time_zone_and_the_last_is_included(house: House, ada: Visitor) -> None:
    for hours in (-13, -12, 11, 12):  # 23:00 the day before, midnight, 23:00, midnight after
        with clock.pretend(NOON + timedelta(hours=hours)):
            add_events(house, 1)
    day = "since=2026-03-02&until=2026-03-02"
    assert len(numbers(ada, f"/console/audit?type=API_KEY_REVOKED&{day}")) == 2


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("since=yesterday", "expected a day like 2026-03-31"),
        ("until=9999-12-31", "expected a day like 2026-03-31"),
        ("since=2026-03-02&until=2026-03-01", "The range ends before it begins."),
        ("ref=ER-9999-9999", "No request has this ref."),
        ("type=NONSENSE", "ERASURE_COMPLETED"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused_with_what_would(
    ada: Visitor, query: str, words: str
) -> None:
    answer = ada.get(f"/console/audit?{query}")
    assert answer.status_code == 422
    assert words in answer.text


def test_an_event_of_somebody_who_is_gone_keeps_the_end_of_the_id(house: House, ada: Visitor) -> None:
    nobody = new_id()
    with house.runtime.db.begin() as session:
        append(session, [Record(PasswordChanged(officer_id=nobody), actor=f"officer:{nobody}")])
    assert f"officer …{str(nobody)[-6:]}" in ada.get("/console/audit").text


def test_the_csv_has_the_events_of_the_filter(house: House, ada: Visitor) -> None:
    add_events(house, 3)
    answer = ada.post("/console/audit/export/csv", {"type": "API_KEY_REVOKED"})
    assert answer.mimetype == "text/csv"
    assert re.fullmatch(
        r'attachment; filename="effaced-audit-20260302T120000Z\.csv"', answer.headers["Content-Disposition"]
    )
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["type"] for row in rows] == ["API_KEY_REVOKED"] * 3


def test_json_lines_have_one_event_a_line(house: House, ada: Visitor) -> None:
    add_events(house, 3)
    answer = ada.post("/console/audit/export/jsonl", {"type": "API_KEY_REVOKED"})
    assert [json.loads(line)["type"] for line in answer.text.splitlines()] == ["API_KEY_REVOKED"] * 3


def test_an_export_is_an_event_itself(house: House, ada: Visitor) -> None:
    ada.post("/console/audit/export/csv")
    with house.runtime.db.read() as session:
        event = session.scalars(select(AuditEvent).where(AuditEvent.type == "AUDIT_EXPORTED")).one()
    assert event.actor == f"officer:{house.ada.id}"


def test_an_unknown_format_is_refused_and_exports_nothing(house: House, ada: Visitor) -> None:
    answer = ada.post("/console/audit/export/pdf")
    assert answer.status_code == 422
    assert "expected csv, jsonl" in answer.text
    assert count_events(house, "AUDIT_EXPORTED") == 0
