"""Is it really gone?"""

from __future__ import annotations

import re

from sqlalchemy import insert

from effaced import clock
from effaced.model import OutboxOperation, OutboxStatus, StepOutcome, Verification, new_id
from effaced.outbox.tables import OutboxRow
from tests.browser.seed import House
from tests.integration.console.conftest import Visitor, ref_of


def erase(house: House, person: int) -> str:
    request_id = house.ask(person)
    house.approve(request_id)
    house.run()
    return ref_of(house, request_id)


def outcomes(page: str) -> list[str]:
    return re.findall(r'data-label="Read-back"><span class="badge \w+"><svg.*?</svg>([^<]+)</span>', page)


def test_failures_come_first_then_what_is_still_to_be_looked_at(house: House, ada: Visitor) -> None:
    house.script.silent.add(("crm", "2"))
    house.script.still_there.add(("files", "3"))
    for person in (3, 2, 1):
        erase(house, person)
    shown = outcomes(ada.get("/console/verified").text)
    assert shown == ["Still present", "Not looked at yet", *["Confirmed gone"] * 4]


def test_outcomes_are_counted_by_system(house: House, ada: Visitor) -> None:
    house.script.still_there.add(("files", "1"))
    erase(house, 1)
    erase(house, 2)
    table = ada.get("/console/verified").text.split("</table>")[0]
    rows = [
        re.findall(r">(?:<a [^>]+>)?(?:<span class=\"dim\">)?(\w+)", row) for row in table.split("<tr")[2:]
    ]
    assert [[cell for cell in row if cell in ("crm", "files") or cell.isdigit()] for row in rows] == [
        ["files", "1", "0", "1"],
        ["crm", "0", "0", "2"],
    ]


def test_a_number_leads_to_exactly_its_read_backs(house: House, ada: Visitor) -> None:
    house.script.still_there.add(("files", "1"))
    failed = erase(house, 1)
    erase(house, 2)
    assert ada.refs("/console/verified?outcome=still_present&resolver=files") == [failed]
    assert len(ada.refs("/console/verified?outcome=confirmed&resolver=crm")) == 2


def test_load_more_walks_through_all_outcomes_once(house: House, ada: Visitor) -> None:
    request_id, now = house.ask(1), clock.now()
    values = {
        "request_id": request_id,
        "operation": OutboxOperation.ERASE,
        "resolver": "crm",
        "subject_key_id": "k1",
        "subject_hmac": "0" * 64,
        "ref_kind": "person",
        "status": OutboxStatus.SUCCEEDED,
        "attempts": 1,
        "token": 1,
        "claimed_alone": False,
        "crashes": 0,
        "enqueued_at": now,
        "aging_since": now,
        "times_parked": 0,
        "outcome": StepOutcome.ERASED,
    }
    each = (*[Verification.CONFIRMED] * 60, *[Verification.DUE] * 50, *[Verification.STILL_PRESENT] * 51)
    with house.runtime.db.begin() as session:
        session.execute(
            insert(OutboxRow), [{**values, "entry_id": new_id(), "verification": one} for one in each]
        )
    assert len(ada.refs("/console/verified")) == 161
    assert len(ada.refs("/console/verified?outcome=due")) == 50


def test_an_empty_list_says_what_would_be_here(ada: Visitor) -> None:
    assert "Nothing was read back yet" in ada.get("/console/verified").text
    assert "No read-back matches" in ada.get("/console/verified?outcome=due").text
