"""Is it really gone?"""

from __future__ import annotations

import re

from sqlalchemy import insert, select

from effaced.core import clock
from effaced.deadletters.tables import DeadLetter
from effaced.model import OutboxOperation, OutboxStatus, StepOutcome, Verification, new_id
from effaced.outbox.tables import OutboxRow
from tests.browser.seed import House
from tests.integration.console.conftest import HTMX, Visitor, count_events, ref_of

REASON = "The vendor confirmed by e-mail."


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
    assert shown == ["Still present", "Not verified yet", *["Confirmed gone"] * 4]


def test_outcomes_are_counted_by_system(house: House, ada: Visitor) -> None:
    house.script.still_there.add(("files", "1"))
    erase(house, 1)
    erase(house, 2)
    table = ada.get("/console/verified").text.split("</table>")[0]
    rows = [
        re.findall(r">(?:<a [^>]+>)?(?:<span class=\"dim\">)?(\w+)", row) for row in table.split("<tr")[2:]
    ]
    assert [[cell for cell in row if cell in ("crm", "files") or cell.isdigit()] for row in rows] == [
        ["files", "1", "0", "0", "0", "1"],
        ["crm", "0", "0", "0", "0", "2"],
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


def test_a_failed_read_back_is_made_again_on_demand(house: House, ada: Visitor) -> None:
    house.script.still_there.add(("files", "1"))
    erase(house, 1)
    again = re.findall(r'href="(/console/verified/[^"]+)"', ada.get("/console/verified").text)
    assert len(again) == 1, "what was confirmed has no reference left to ask with"
    assert "Verify files again?" in ada.get(again[0]).text
    house.script.still_there.clear()
    answer = ada.post(again[0], {"reason": REASON})
    assert answer.location == "/console/verified"
    assert "files will be called to erase and then read back again." in ada.get("/console/verified").text
    house.run()
    assert outcomes(ada.get("/console/verified").text) == ["Confirmed gone"] * 2
    assert count_events(house, "ERASURE_READ_BACK_REQUESTED") == 1


def test_an_officer_who_has_seen_that_it_is_gone_attests_it(house: House, ada: Visitor) -> None:
    house.script.still_there.add(("files", "1"))
    erase(house, 1)
    with house.runtime.db.read() as session:
        letter_id = session.scalars(select(DeadLetter.id)).one()
    page = ada.get(f"/console/abandoned/{letter_id}").text
    assert 'value="resolve"' not in page, "a word about the person is needed, not about the letter"
    (call,) = re.findall(r'href="(/console/requests/[^"]+/calls/[^"]+)"', page)
    assert "Attest that the data is gone" in ada.get(call).text
    ada.post(f"{call}/attest", {"note": REASON})
    assert outcomes(ada.get("/console/verified").text) == ["Attested gone", "Confirmed gone"]
    assert "Resolved" in ada.get(f"/console/abandoned/{letter_id}").text
    assert "Nothing needs you now." in ada.get("/console/").text


def test_looking_again_without_a_reason_changes_nothing(house: House, ada: Visitor) -> None:
    house.script.still_there.add(("files", "1"))
    erase(house, 1)
    (again,) = re.findall(r'href="(/console/verified/[^"]+)"', ada.get("/console/verified").text)
    answer = ada.post(again, {"reason": " "}, headers=HTMX)
    assert answer.status_code == 422
    assert answer.text.strip().startswith('<div id="again"')
    assert "The reason is missing." in answer.text
    assert outcomes(ada.get("/console/verified").text)[0] == "Still present"


def test_what_has_no_reference_any_more_can_not_be_looked_at(house: House, ada: Visitor) -> None:
    request_id = house.ask(1)
    house.approve(request_id)
    house.run()
    path = f"/console/verified/{house.entry(request_id, 'crm').entry_id}"
    assert "the reference to the person is gone" in ada.get(path).text
    ada.post(path, {"reason": REASON})
    assert "Nothing can be read back here" in ada.get("/console/verified").text
    assert count_events(house, "ERASURE_READ_BACK_REQUESTED") == 0


def test_an_auditor_is_not_offered_to_look_again(house: House, cleo: Visitor) -> None:
    house.script.still_there.add(("files", "1"))
    request_id = house.ask(1)
    house.approve(request_id)
    house.run()
    assert "Verify again" not in cleo.get("/console/verified").text
    path = f"/console/verified/{house.entry(request_id, 'files').entry_id}"
    assert "Waiting for an officer." in cleo.get(path).text


def test_an_empty_list_says_what_would_be_here(ada: Visitor) -> None:
    assert "No read-backs yet" in ada.get("/console/verified").text
    assert "No read-back matches" in ada.get("/console/verified?outcome=due").text
