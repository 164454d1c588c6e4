"""What need not be kept any more?"""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

from effaced.console.retentions import view as retentions
from tests.browser.seed import OLD, House
from tests.integration.console.conftest import HTMX, Visitor, count_events, ref_of

REASON = "Ten years are over."
PATH = "/console/retentions"


def erase(house: House, person: int) -> str:
    request_id = house.ask(person)
    house.approve(request_id)
    house.run()
    return ref_of(house, request_id)


def chosen(page: str) -> list[str]:
    return re.findall(r'name="ids" value="([^"]+)"', page)


def invoices(house: House) -> int:
    with house.runtime.db.read() as session:
        return session.scalar(text("SELECT count(*) FROM invoices")) or 0


def test_it_lists_what_has_come_due_with_its_basis_and_nothing_else(house: House, ada: Visitor) -> None:
    due = [erase(house, person) for person in OLD[:2]]
    erase(house, 1)
    assert sorted(ada.refs(PATH)) == sorted(due)
    page = ada.get(PATH).text
    assert "tax law, ten years" in page
    assert "until billed_on + 10 years" in page


def test_the_overview_has_the_number_and_leads_there(house: House, ada: Visitor) -> None:
    erase(house, OLD[0])
    (need,) = re.findall(rf'<a[^>]+href="{PATH}".*?</a>', ada.get("/console/").text, re.DOTALL)
    assert re.findall(r">\s*([^<>\s][^<>]*)<", need)[:2] == ["1", "Retention ended"]


def test_a_confirmation_counts_before_anything_happens(house: House, ada: Visitor) -> None:
    erase(house, OLD[0])
    before = invoices(house)
    page = ada.post(f"{PATH}/confirm", {"ids": chosen(ada.get(PATH).text)}).text
    assert "Erase data of 1 request whose retention has ended?" in page
    assert "<strong>1 row</strong> will be deleted in your database. This can't be undone." in page
    assert invoices(house) == before


def test_erasing_says_what_became_of_each_request_and_leaves_events(house: House, ada: Visitor) -> None:
    for person in OLD[:2]:
        erase(house, person)
    before, ids = invoices(house), chosen(ada.get(PATH).text)
    page = ada.post(f"{PATH}/erase", {"ids": ids, "reason": REASON}).text
    assert "2 of 2 requests done" in page
    assert page.count("invoices: 1 deleted") == 2
    assert (before - invoices(house), count_events(house, "RETENTION_ENDED")) == (2, 2)
    assert ada.refs(PATH) == []


def test_the_request_s_story_tells_it_with_the_reason(house: House, ada: Visitor) -> None:
    ref = erase(house, OLD[0])
    ada.post(f"{PATH}/erase", {"ids": chosen(ada.get(PATH).text), "reason": REASON})
    page = ada.get(f"/console/requests/{ref}").text
    assert "Retention ended: 1 row of invoices deleted." in page
    assert REASON in page


def test_without_a_reason_the_form_comes_back_and_nothing_goes(house: House, ada: Visitor) -> None:
    erase(house, OLD[0])
    before = invoices(house)
    answer = ada.post(f"{PATH}/erase", {"ids": chosen(ada.get(PATH).text), "reason": " "}, headers=HTMX)
    assert answer.status_code == 422
    assert "The reason is missing." in answer.text
    assert invoices(house) == before


def test_what_somebody_lives_under_again_can_t_be_chosen(house: House, ada: Visitor) -> None:
    erase(house, OLD[0])
    with house.runtime.db.begin() as session:
        session.execute(text(f"UPDATE customers SET name = 'Back' WHERE id = {OLD[0]}"))
    page = ada.get(PATH).text
    assert "Key in use again" in page
    assert chosen(page) == []


def test_an_auditor_sees_it_and_can_t_erase(house: House, cleo: Visitor) -> None:
    erase(house, OLD[0])
    page = cleo.get(PATH).text
    assert "invoices" in page
    assert chosen(page) == []
    before = invoices(house)
    assert cleo.post(f"{PATH}/erase", {"ids": [], "reason": REASON}).status_code == 403
    assert invoices(house) == before


def test_an_empty_list_says_once_what_would_be_here(ada: Visitor) -> None:
    assert ada.get(PATH).text.count("No retention has ended") == 1


def test_what_takes_long_is_left_to_the_scheduler_and_shown_as_under_way(
    house: House, ada: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retentions, "_PATIENCE", 0)
    ref = erase(house, OLD[0])
    before, ids = invoices(house), chosen(ada.get(PATH).text)
    page = ada.post(f"{PATH}/erase", {"ids": ids, "reason": REASON}).text
    assert "0 of 1 request done" in page
    assert "The scheduler continues with it" in page
    listed = ada.get(PATH).text
    assert "Being erased" in listed
    assert chosen(listed) == []
    house.runtime.end_retentions()
    assert (before - invoices(house), ada.refs(PATH)) == (1, [])
    assert REASON in ada.get(f"/console/requests/{ref}").text
